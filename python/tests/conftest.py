"""A guest program, in a folder of its own that the tests work in."""

import os
import subprocess
from pathlib import Path

import pytest

# Jupyter's older releases, which Python 3.9 has, warn of folders otherwise.
os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")

SOURCE = Path(__file__).parent / "hello.c"


@pytest.fixture(scope="session")
def guest(tmp_path_factory):
    program = tmp_path_factory.mktemp("guest") / "hello"
    compiler = ["alpha-linux-gnu-gcc", "-O1", "-g", "-mcpu=ev5", "-mno-bwx"]
    subprocess.run([*compiler, SOURCE, "-o", program], check=True)
    return program


@pytest.fixture(autouse=True)
def hello(guest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hello").symlink_to(guest)
    return "./hello"
