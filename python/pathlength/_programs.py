"""Programs: to run, count and record them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from . import _pathlength
from ._command import as_options, execute
from ._keywords import Arguments, StrPath, Where, listed
from ._pathlength import Counts, PathlengthError
from ._progress import Progress, meter
from ._trace import Trace


def run(
    program: StrPath,
    *args: StrPath,
    cpu: Optional[str] = None,
    sysroot: Optional[StrPath] = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> int:
    """Runs a program and returns its exit status, or minus the signal that ended it.

    `cpu` decides which instructions exist: ev4, ev5, ev56, pca56, ev6 or ev67. Libraries are looked up in `sysroot`
    first. The streams are as for `subprocess.run`: files, descriptors or `subprocess.DEVNULL`.

    >>> pathlength.run("./hello", "world", cpu="ev5")
    0
    """
    options = as_options(cpu=cpu, sysroot=sysroot)
    arguments = ["run", *options, "--", program, *args]
    return execute(arguments, stdin=stdin, stdout=stdout, stderr=stderr).status


def count(
    program: StrPath,
    args: Arguments = (),
    *,
    unit: Optional[str] = None,
    units: Optional[int] = None,
    batch: Optional[int] = None,
    cache: Optional[Sequence[str]] = None,
    save: Optional[StrPath] = None,
    cpu: Optional[str] = None,
    sysroot: Optional[StrPath] = None,
    progress: Progress = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Counts:
    """Runs a program with its arguments, one or several, and counts its instructions.

    With `unit`, each call of that function is counted apart, everything it calls included; `units` of them are
    measured once three successive batches of `batch` calls have mean path lengths within 1 %. `cache` names two
    variables that count cache hits and misses: then 95 % of the accesses must hit, too.

    `save` names a file, NAME.counts, for the counts, which `compare` reads.

    `progress` is called with the number of units so far.

    >>> counts = pathlength.count("./hello", unit="greet", units=3, batch=2)
    >>> counts.units.num_rows
    3
    >>> "greet" in counts.functions["function"].to_pylist()
    True
    """
    if save is not None and not os.fspath(save).endswith(".counts"):
        raise ValueError(f"save={os.fspath(save)!r}: the name must end with .counts")
    options = as_options(cpu=cpu, sysroot=sysroot, unit=unit, units=units, batch=batch, output=save)
    if cache is not None:
        hits, misses = _two(cache)
        options += ["--cache", hits, misses]
    arguments = ["count", *options, "--", program, *listed(args)]
    # Without a listener of ours the command shows its own bar on a terminal.
    with meter(progress or False, " units") as show:
        ended = execute(arguments, on_units=show, stdin=stdin, stdout=stdout, stderr=stderr)
    if ended.counted is None:
        raise PathlengthError(f"{os.fspath(program)}: {ended.how} before anything was counted")
    counts = Counts(ended.counted)
    if counts.crash is not None:
        raise PathlengthError(f"{os.fspath(program)}: {counts.crash}")
    return counts


def trace(
    program: StrPath,
    args: Arguments = (),
    output: StrPath = "pathlength.trace",
    *,
    unit: Optional[str] = None,
    skip: Optional[int] = None,
    units: Optional[int] = None,
    from_: Where = None,
    until: Where = None,
    values: bool = False,
    heap: bool = False,
    cpu: Optional[str] = None,
    sysroot: Optional[StrPath] = None,
    progress: Progress = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Trace:
    """Runs a program, records every instruction and every address into the file `output`, and opens it.

    Options select a part of the run: the calls of the function `unit` (the first `skip` are left out, `units` is their
    number); or the part between `from_` and `until`, each a symbol, symbol+offset, image!symbol, an address as
    "0x120001000", or a number of instructions. `values` also records the values that instructions write, store and
    test, and `heap` the calls that allocate and free blocks of memory.

    `progress` is called with the number of bytes written. If the work is interrupted, the file has the recording until
    then.

    >>> trace = pathlength.trace("./hello", output="hello.trace", unit="greet", skip=1, units=2)
    >>> trace.header["unit"]
    'greet'
    """
    options = _plan(output, unit, skip, units, from_, until, values)
    options += as_options(heap=heap, cpu=cpu, sysroot=sysroot)
    arguments = ["trace", *options, "--", program, *listed(args)]
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    return _record(arguments, output, os.fspath(program), progress, streams)


def attach(
    process: int,
    output: StrPath = "pathlength.trace",
    *,
    children: bool = False,
    unit: Optional[str] = None,
    skip: Optional[int] = None,
    units: Optional[int] = None,
    from_: Where = None,
    until: Where = None,
    values: bool = False,
    progress: Progress = None,
) -> Trace:
    """Records a program that runs already, in a process that `pathlength run` or `pathlength.run` started.

    It returns when all that was asked for is recorded, or the program has ended; a KeyboardInterrupt ends it before.
    With `children`, the processes that it has forked are recorded, too. The rest is as for `trace`.
    """
    options = _plan(output, unit, skip, units, from_, until, values)
    if children:
        options.append("--children")
    return _record(["trace", *options, "--attach", str(process)], output, f"process {process}", progress, {})


def build(workload: str, folder: StrPath = "build") -> dict[str, Path]:
    """Builds a workload and returns the paths of its programs: "original", "byte-word" and "native".

    Builds are kept in `folder` until something changes.

    >>> pathlength.build("tpcb")["byte-word"]  # doctest: +SKIP
    PosixPath('build/tpcb/byte-word-135409835510/tpcb')
    """
    ended = execute(["build", "--folder", folder, workload])
    if ended.tables is None:
        raise PathlengthError(f"{workload}: the build {ended.how}")
    ((_, builds),) = _pathlength.tables(ended.tables)
    return {row["build"]: Path(row["program"]) for row in builds.to_pylist()}


def _record(arguments, output: StrPath, what: str, progress: Progress, streams: dict) -> Trace:
    with meter(progress, "B") as show:
        ended = execute(arguments, waiting=lambda: show(_size(output)), **streams)
    if ended.status != 0:
        raise PathlengthError(f"{what}: {ended.how}; the recording until then is in {os.fspath(output)}")
    return Trace(output)


def _plan(output, unit, skip, units, from_, until, values) -> list[str]:
    return as_options(output=output, unit=unit, skip=skip, units=units, from_=from_, until=until, values=values)


def _two(names: Sequence[str]) -> tuple[str, str]:
    if isinstance(names, str) or len(names) != 2:
        raise ValueError(f"cache={names!r}: give the names of two variables, that of hits and that of misses")
    return names[0], names[1]


def _size(path: StrPath) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
