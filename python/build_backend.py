"""Builds the wheel: maturin makes the extension, and beside it lies the `pathlength` command, of the same profile.

maturin alone packs an extension or a program, not both. Programs run in processes of the command's, as the engine
needs the low addresses of a process for the program's memory; Python's own process has other things there.
"""

import json
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (the hooks that need nothing more)
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).parent.parent
COMMAND = ROOT / "python/pathlength/bin/pathlength"


def _build_command(settings):
    """Puts the command where `[tool.maturin]` in pyproject.toml takes it from.

    The whole workspace is selected, so that dependencies have the same features as in the tests and in the extension,
    and are compiled once.
    """
    profile = maturin.get_maturin_pep517_args(settings) or ["--profile", "release"]
    build = ["cargo", "build", "--quiet", "--locked", "--workspace", "--bins", *profile]
    report = ["--message-format", "json-render-diagnostics"]
    messages = subprocess.run([*build, *report], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    executables = [json.loads(message).get("executable") for message in messages.splitlines()]
    [program] = [path for path in executables if path and Path(path).name == "pathlength"]
    COMMAND.parent.mkdir(exist_ok=True)
    subprocess.run(["strip", "-o", COMMAND, program], check=True)


def build_wheel(directory, settings=None, metadata=None):
    _build_command(settings)
    return maturin.build_wheel(directory, settings, metadata)


def build_editable(directory, settings=None, metadata=None):
    _build_command(settings)
    return maturin.build_editable(directory, settings, metadata)
