"""Traces."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import pyarrow as pa

from . import _measured, _pathlength
from ._keywords import Names, Numbers, Part, Selection, listed, takes
from ._pathlength import Execution, Mark, TraceError, TraceWarning
from ._progress import Progress, meter

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Trace:
    """A trace in a file.

    >>> trace = pathlength.Trace("hello.trace")
    >>> sum(execution.length for execution in trace.stream(0)) == trace.streams["instructions"][0].as_py()
    True

    `stream`, `records`, `summary`, `caches`, `time` and `strides` select a part of the trace by the same keywords, all
    of which must apply: `stream`, one or several rows of `streams`, by their index; and `pathlength.Selection`'s.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        self.path = os.fspath(path)
        self._trace = _pathlength.Trace(self.path)
        for problem in self.problems:
            warnings.warn(problem, TraceWarning, stacklevel=2)

    @property
    def header(self) -> dict[str, Any]:
        """The header: program, arguments, cpu, has_values, unit, time, process."""
        return self._trace.header

    @property
    def problems(self) -> list[str]:
        """Parts that could not be read when the trace was opened; the rest can be used."""
        return [f"{self.path}: at byte {offset}: {what}" for offset, what in self._trace.problems]

    @property
    def instructions(self) -> int:
        """How many instructions it holds."""
        return self._trace.instructions

    @property
    def images(self) -> pa.Table:
        """The images that were mapped: path, start, end, build_id."""
        return self._trace.images

    @property
    def functions(self) -> pa.Table:
        """The functions that blocks belong to: function, image (a row of `images`), address, size."""
        return self._trace.functions

    @property
    def blocks(self) -> pa.Table:
        """The blocks: address, words (of its instructions), image and function (rows of those tables)."""
        return self._trace.blocks

    @property
    def streams(self) -> pa.Table:
        """The threads that were recorded: process, thread, instructions."""
        return self._trace.streams

    @takes(Selection)
    def stream(
        self, stream: Optional[int] = None, *, marks: bool = False, **selection: Unpack[Selection]
    ) -> Iterator[Union[Execution, Mark]]:
        """The blocks that a thread executed, the first if none is named; with `marks` also what happened between them.

        >>> trace = pathlength.Trace("hello.trace")
        >>> [mark.kind for mark in trace.stream(marks=True) if isinstance(mark, pathlength.Mark)][:2]
        ['gap', 'unit_begins']
        """
        if stream is None and not {"thread", "process"} & selection.keys():
            stream = 0
        return self._trace.executions(self._selection(stream, **selection), marks)

    @takes(Selection)
    def records(
        self, stream: Union[int, Iterable[int], None] = None, **selection: Unpack[Selection]
    ) -> pa.RecordBatchReader:
        """A row an instruction, in batches of some 65,000 that are made as they are read.

        The columns: stream, instruction (its number, from 1), pc, word, block, kind ("load", "store" or "other"); for
        loads and stores size and address; and value, if values were recorded.

        >>> records = pathlength.Trace("hello.trace").records(function="greet", unit_number=1)
        >>> table = records.read_all()
        >>> table["kind"][0].as_py()
        'other'
        """
        batches = self._trace.records(self._selection(stream, **selection))
        return pa.RecordBatchReader.from_batches(batches.schema, batches)

    @takes(Selection)
    def summary(
        self,
        stream: Union[int, Iterable[int], None] = None,
        *,
        line_sizes: Sequence[int] = (32, 64),
        page_sizes: Sequence[int] = (8 << 10, 64 << 10, 512 << 10, 4 << 20),
        window: Optional[int] = None,
        progress: Progress = None,
        **selection: Unpack[Selection],
    ) -> dict[str, pa.Table]:
        """The tables of `pathlength show`, by name.

        `line_sizes` of cache lines and `page_sizes` are in bytes, `window` is a number of instructions. `progress`
        is called with the number of instructions gone through.

        >>> tables = pathlength.Trace("hello.trace").summary()
        >>> tables["functions"].column_names[:2]
        ['function', 'image']
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._selection(stream, **selection)
            return self._trace.summary(chosen, list(line_sizes), list(page_sizes), window, show)

    @takes(Selection)
    def caches(
        self,
        machine: Union[str, "os.PathLike[str]"] = "alphastation500",
        *,
        by: Names = (),
        classify: bool = False,
        warm_up: int = 0,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **selection: Unpack[Selection],
    ) -> dict[str, pa.Table]:
        """What misses in the caches and translation buffers of a machine: the tables of `pathlength caches`, by name.

        `machine` is one of `pathlength.machines()`, or a file that describes one. `by` asks for tables by "function",
        "line", "instruction" and "unit", too. With `classify`, misses are classified, which takes several times
        as long. The first `warm_up` selected units of work are simulated and not counted. Only blocks of which all
        instructions are selected are simulated. `progress` is called with the number of instructions simulated.

        >>> tables = pathlength.Trace("hello.trace").caches("dec3000", by="function")
        >>> tables["structures"]["structure"].to_pylist()
        ['icache', 'dcache', 'bcache', 'itb', 'dtb']
        >>> tables["functions"].column_names[:3]
        ['function', 'image', 'share']
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._selection(stream, **selection)
            name = os.fspath(machine)
            return _pathlength.caches(self._trace, chosen, name, listed(by), classify, warm_up, show)

    @takes(Selection)
    def time(
        self,
        machine: Union[str, "os.PathLike[str]"] = "alphastation500",
        *,
        by: Names = (),
        warm_up: int = 0,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **selection: Unpack[Selection],
    ) -> dict[str, pa.Table]:
        """How long a machine takes, and what for: the tables of `pathlength time`, by name.

        The words are those of `caches`.

        >>> tables = pathlength.Trace("hello.trace").time("alphastation500")
        >>> list(tables)
        ['time', 'cycles', 'predictions']
        >>> sum(tables["cycles"]["cycles"].to_pylist()) == tables["time"]["cycles"][0].as_py()
        True
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._selection(stream, **selection)
            return _pathlength.time(self._trace, chosen, os.fspath(machine), listed(by), warm_up, show)

    @takes(Selection)
    def strides(
        self,
        by: str = "array",
        *,
        array: Names = (),
        depth: int = 5,
        minimum_stride: int = 128,
        signed: bool = False,
        in_elements: bool = False,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **selection: Unpack[Selection],
    ) -> dict[str, pa.Table]:
        """How far apart the addresses are that are accessed one after another: `strides` has the most frequent ones of
        each series, `histograms` all.

        Series are references to an "array", or those of a "line", "function" or "instruction", or "all"; only those to
        one or several variables if `array` names them. Each is compared with those up to `depth` references back, while
        strides are at least `minimum_stride` bytes; with 0 always. `signed` distinguishes descending strides,
        and be counted `in_elements`. The other words are those of `caches`.

        >>> tables = pathlength.Trace("hello.trace").strides("function", function="greet")
        >>> set(tables["strides"]["function"].to_pylist())
        {'greet'}
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._selection(stream, **selection)
            arrays = listed(array)
            return _pathlength.strides(
                self._trace, chosen, by, arrays, depth, minimum_stride, signed, in_elements, show
            )

    @takes(Part)
    def calls(self, *, by: Optional[str] = None, function: Names = (), **part: Unpack[Part]) -> dict[str, pa.Table]:
        """What calls cost: `pathlength.calls` of this trace.

        >>> tables = pathlength.Trace("hello.trace").calls(by="callee", function="greet")
        >>> "printf" in tables["callees"]["callee"].to_pylist()
        True
        """
        return _measured.calls(self, by=by, function=function, **part)

    @takes(Part)
    def units(self, *, slowest: bool = False, **part: Unpack[Part]) -> dict[str, pa.Table]:
        """What its units of work cost, and why the `slowest` costs most: `pathlength.units` of this trace.

        >>> pathlength.Trace("hello.trace").units()["distribution"]["calls"].to_pylist()
        [2, 2, 2]
        """
        return _measured.units(self, slowest=slowest, **part)

    @takes(Part)
    def annotate(
        self, *, function: Names = (), event: Optional[str] = None, machine: Optional[str] = None, **part: Unpack[Part]
    ) -> dict[str, pa.Table]:
        """Functions as source and disassembly, with executions, misses or cycles: `pathlength.annotate` of this trace.

        >>> list(pathlength.Trace("hello.trace").annotate(function="greet"))
        ['greet']
        """
        return _measured.annotate(self, function=function, event=event, machine=machine, **part)

    def check(self) -> dict[str, pa.Table]:
        """Whether the trace is consistent: `pathlength.check` of it.

        >>> list(pathlength.Trace("hello.trace").check())
        ['checked']
        """
        return _measured.check(self)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<Trace {self.path}: {self.instructions:,} instructions>"

    def _selection(
        self,
        stream: Union[int, Iterable[int], None] = None,
        *,
        function: Names = (),
        with_callees: bool = False,
        image: Names = (),
        addresses: Numbers = None,
        data: Numbers = None,
        thread: Names = (),
        process: Union[int, Iterable[int], None] = None,
        instructions: Numbers = None,
        unit_number: Numbers = None,
    ) -> _pathlength.Selection:
        return _pathlength.Selection(
            functions=listed(function),
            with_callees=bool(with_callees),
            images=listed(image),
            addresses=_ends("addresses", addresses),
            data=_ends("data", data),
            threads=[*self._threads(stream), *map(_thread, listed(thread)), *((one, None) for one in listed(process))],
            instructions=_ends("instructions", instructions),
            units=_ends("unit_number", unit_number),
        )

    def _threads(self, stream: Union[int, Iterable[int], None]) -> list[tuple[int, Optional[int]]]:
        if stream is None:
            return []
        streams = self.streams.to_pylist()
        numbers = listed(stream)
        for number in numbers:
            if not 0 <= number < len(streams):
                raise TraceError(f"{self.path} has no stream {number}: it has {len(streams)}, counted from 0")
        return [(streams[number]["process"], streams[number]["thread"]) for number in numbers]


def _thread(name: str) -> tuple[int, int]:
    process, _, thread = str(name).partition(".")
    if not (process.isdecimal() and thread.isdecimal()):
        raise ValueError(f"thread={name!r}: give process and thread, both counted from 0, as '0.1'")
    return int(process), int(thread)


def _ends(name: str, numbers: Numbers) -> Optional[tuple[int, int]]:
    """The first and the last."""
    if numbers is None:
        return None
    if isinstance(numbers, int):
        numbers = range(numbers, numbers + 1)
    if numbers.step != 1 or len(numbers) == 0 or numbers[0] < 0:
        raise ValueError(f"{name}={numbers}: give a number, or a range of some without gaps")
    return numbers[0], numbers[-1]
