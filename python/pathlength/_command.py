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

from ._keywords import listed
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
    """The message with the counts."""
    tables: Optional[bytes]
    """The message with the tables."""

    @property
    def how(self) -> str:
        """How it ended, for people."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        return f"ended by the signal {signal.Signals(-self.status).name}"


def as_options(**options: Any) -> list[str]:
    """As options of the command, those with several values several times; None, False and nothing leave a default."""
    words = []
    for name, value in options.items():
        name = f"--{name.rstrip('_').replace('_', '-')}"
        if value is True:
            words.append(name)
        elif value is not False:
            words += [f"{name}={os.fspath(one) if hasattr(one, '__fspath__') else one}" for one in listed(value)]
    return words


def execute(
    arguments: Sequence[Any],
    *,
    on_units: Callable[[int], object] = lambda units: None,
    on_problem: Callable[[str], object] = lambda problem: None,
    waiting: Callable[[], object] = lambda: None,
    **streams: Any,
) -> Ended:
    """Waits for the command's end. `on_units` is called with the units of work so far, `on_problem` with each
    part of a trace that cannot be read, `waiting` at intervals.

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
        return _listen(process, read, on_units, on_problem, waiting)
    finally:
        # First close our end: the command does not wait for a reader.
        os.close(read)
        _end(process)


def _listen(
    process: subprocess.Popen,
    read: int,
    on_units: Callable[[int], object],
    on_problem: Callable[[str], object],
    waiting: Callable[[], object],
) -> Ended:
    counted = tables = None
    for line in _lines(process, read):
        waiting()
        if line.startswith(b'{"counted":'):
            counted = line
        elif line.startswith(b'{"tables":'):
            tables = line
        elif line:
            message = json.loads(line)
            if "failed" in message:
                raise PathlengthError(message["failed"])
            if "problem" in message:
                on_problem(message["problem"])
            else:
                on_units(message["units"][0])
    return Ended(process.wait(), counted, tables)


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
