"""Runs the `pathlength` command, and receives its messages."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from ._pathlength import PathlengthError

COMMAND = str(Path(__file__).parent / "bin" / "pathlength")

# Seconds between two checks of a command that sends nothing, and seconds for it to end when it is interrupted.
PAUSE = 0.1
PATIENCE = 5.0


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    """Its exit status, or minus the signal that ended it."""
    counted: Optional[bytes]
    """The counts."""


def execute(
    arguments: Sequence[Any],
    *,
    on_units: Callable[[int], object] = lambda units: None,
    waiting: Callable[[], object] = lambda: None,
    **streams: Any,
) -> Ended:
    """Waits for the command's end. `on_units` is called with the units of work so far, `waiting` at intervals.

    Whatever interrupts us interrupts the command, too.
    """
    command = [COMMAND, *map(os.fspath, arguments)]
    read, write = os.pipe()
    try:
        environment = {**os.environ, "PATHLENGTH_MESSAGES": str(write)}
        process = subprocess.Popen(command, env=environment, pass_fds=[write], **streams)
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(write)
    try:
        return _listen(process, read, on_units, waiting)
    finally:
        # First close our end: the command does not wait for a reader.
        os.close(read)
        _end(process)


def _listen(
    process: subprocess.Popen, read: int, on_units: Callable[[int], object], waiting: Callable[[], object]
) -> Ended:
    counted = None
    for line in _lines(process, read):
        waiting()
        if line.startswith(b'{"counted":'):
            counted = line
        elif line:
            message = json.loads(line)
            if "failed" in message:
                raise PathlengthError(message["failed"])
            on_units(message["units"][0])
    return Ended(process.wait(), counted)


def _lines(process: subprocess.Popen, read: int) -> Iterator[bytes]:
    """The messages of the process until it ends; empty lines meanwhile.

    Its end is not the pipe's, which processes that it leaves behind may hold open.
    """
    pending = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(read, selectors.EVENT_READ)
        while True:
            has_ended = process.poll() is not None
            if selector.select(0 if has_ended else PAUSE):
                piece = os.read(read, 1 << 16)
                if not piece:
                    return
                pending += piece
                if b"\n" in piece:
                    *lines, rest = bytes(pending).split(b"\n")
                    pending = bytearray(rest)
                    yield from lines
            elif has_ended:
                return
            yield b""


def _end(process: subprocess.Popen) -> None:
    """Ends it if it has not ended, by a signal that lets it complete its files."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
