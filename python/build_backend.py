"""Builds the wheel: maturin makes the extension, and beside it lies the `pathlength` command, of the same profile.

maturin alone packs an extension or a program, not both. Programs run in processes of the command's, as the engine
needs the low addresses of a process for the program's memory; Python's own process has other things there.
"""

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


def _build_command(settings):
    """Puts the command where `[tool.maturin]` in pyproject.toml takes it from."""
    profile = maturin.get_maturin_pep517_args(settings) or ["--profile", "release"]
    install = ["cargo", "install", "--quiet", "--locked", "--force", "--no-track", "--path", "crates/cli"]
    subprocess.run([*install, "--root", "python/pathlength", *profile], cwd=ROOT, check=True)
    subprocess.run(["strip", "python/pathlength/bin/pathlength"], cwd=ROOT, check=True)


def build_wheel(directory, settings=None, metadata=None):
    _build_command(settings)
    return maturin.build_wheel(directory, settings, metadata)


def build_editable(directory, settings=None, metadata=None):
    _build_command(settings)
    return maturin.build_editable(directory, settings, metadata)
