"""Traces."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union

import pyarrow as pa

from . import _pathlength
from ._pathlength import Execution, Mark, TraceError, TraceWarning
from ._progress import Progress, meter

Names = Union[str, Iterable[str]]
Numbers = Union[int, range, None]


class Trace:
    """A trace in a file.

    >>> trace = pathlength.Trace("hello.trace")
    >>> sum(execution.length for execution in trace.stream(0)) == trace.streams["instructions"][0].as_py()
    True

    All methods select a part of the trace by the same keywords, all of which must apply:

    - `stream`: one or several rows of `streams`, by their index;
    - `function` ("name" or "image!name"), `image` ("libc.so.6.1" or "libc"): one or several; with `with_callees`
      also all that the functions call;
    - `addresses`: instructions at these addresses; `data`: those that access these addresses;
    - `instructions`: by their number in their stream, from 1; `unit`: by the unit of work, from 0.

    Numbers and addresses are one, or a `range`.
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

    def stream(self, stream: int = 0, *, marks: bool = False, **wanted: Any) -> Iterator[Union[Execution, Mark]]:
        """The blocks that a thread executed, in order; with `marks` also what happened between them.

        >>> trace = pathlength.Trace("hello.trace")
        >>> [mark.kind for mark in trace.stream(marks=True) if isinstance(mark, pathlength.Mark)][:2]
        ['gap', 'unit_begins']
        """
        return self._trace.executions(self._wanted(stream, **wanted), marks)

    def records(self, stream: Union[int, Iterable[int], None] = None, **wanted: Any) -> pa.RecordBatchReader:
        """A row an instruction, in batches of some 65,000 that are made as they are read.

        The columns: stream, instruction (its number, from 1), pc, word, block, kind ("load", "store" or "other"); for
        loads and stores size and address; and value, if values were recorded.

        >>> records = pathlength.Trace("hello.trace").records(function="greet", unit=1)
        >>> table = records.read_all()
        >>> table["kind"][0].as_py()
        'other'
        """
        batches = self._trace.records(self._wanted(stream, **wanted))
        return pa.RecordBatchReader.from_batches(batches.schema, batches)

    def summary(
        self,
        stream: Union[int, Iterable[int], None] = None,
        *,
        line_sizes: Sequence[int] = (32, 64),
        page_sizes: Sequence[int] = (8 << 10, 64 << 10, 512 << 10, 4 << 20),
        window: Optional[int] = None,
        progress: Progress = None,
        **wanted: Any,
    ) -> dict[str, pa.Table]:
        """The tables of `pathlength show`, by name.

        `line_sizes` of cache lines and `page_sizes` are in bytes, `window` is a number of instructions. `progress`
        is called with the number of instructions gone through.

        >>> tables = pathlength.Trace("hello.trace").summary()
        >>> tables["functions"].column_names[:2]
        ['function', 'image']
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._wanted(stream, **wanted)
            return self._trace.summary(chosen, list(line_sizes), list(page_sizes), window, show)

    def caches(
        self,
        machine: Union[str, "os.PathLike[str]"] = "alphastation500",
        *,
        by: Names = (),
        classify: bool = False,
        warm_up: int = 0,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **wanted: Any,
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
        ['function', 'image', 'instructions']
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._wanted(stream, **wanted)
            name = os.fspath(machine)
            return _pathlength.caches(self._trace, chosen, name, _list(by), classify, warm_up, show)

    def time(
        self,
        machine: Union[str, "os.PathLike[str]"] = "alphastation500",
        *,
        by: Names = (),
        warm_up: int = 0,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **wanted: Any,
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
            chosen = self._wanted(stream, **wanted)
            return _pathlength.time(self._trace, chosen, os.fspath(machine), _list(by), warm_up, show)

    def strides(
        self,
        by: str = "array",
        *,
        array: Names = (),
        depth: int = 5,
        threshold: int = 128,
        signed: bool = False,
        in_elements: bool = False,
        stream: Union[int, Iterable[int], None] = None,
        progress: Progress = None,
        **wanted: Any,
    ) -> dict[str, pa.Table]:
        """How far apart the addresses are that are accessed one after another: `strides` has the most frequent ones of
        each series, `histograms` all.

        Series are references to an "array", or those of a "line", "function" or "instruction", or "all"; only those to
        one or several variables if `array` names them. Each is compared with those up to `depth` references back, while
        strides are at least `threshold` bytes; with 0 always. `signed` distinguishes descending strides,
        and be counted `in_elements`. The other words are those of `caches`.

        >>> tables = pathlength.Trace("hello.trace").strides("function", function="greet")
        >>> set(tables["strides"]["function"].to_pylist())
        {'greet'}
        """
        with meter(progress, " instructions", self.instructions) as show:
            chosen = self._wanted(stream, **wanted)
            arrays = _list(array)
            return _pathlength.strides(
                self._trace, chosen, by, arrays, depth, threshold, signed, in_elements, show
            )

    def __repr__(self) -> str:
        return f"<Trace {self.path}: {self.instructions:,} instructions>"

    def _wanted(
        self,
        stream: Union[int, Iterable[int], None] = None,
        *,
        function: Names = (),
        with_callees: bool = False,
        image: Names = (),
        addresses: Numbers = None,
        data: Numbers = None,
        instructions: Numbers = None,
        unit: Numbers = None,
    ) -> _pathlength.Selection:
        return _pathlength.Selection(
            functions=_list(function),
            with_callees=with_callees,
            images=_list(image),
            addresses=_ends("addresses", addresses),
            data=_ends("data", data),
            threads=self._threads(stream),
            instructions=_ends("instructions", instructions),
            units=_ends("unit", unit),
        )

    def _threads(self, stream: Union[int, Iterable[int], None]) -> list[tuple[int, Optional[int]]]:
        if stream is None:
            return []
        streams = self.streams.to_pylist()
        numbers = [stream] if isinstance(stream, int) else list(stream)
        for number in numbers:
            if not 0 <= number < len(streams):
                raise TraceError(f"{self.path} has no stream {number}: it has {len(streams)}, counted from 0")
        return [(streams[number]["process"], streams[number]["thread"]) for number in numbers]


def _list(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _ends(name: str, numbers: Numbers) -> Optional[tuple[int, int]]:
    """The first and the last."""
    if numbers is None:
        return None
    if isinstance(numbers, int):
        numbers = range(numbers, numbers + 1)
    if numbers.step != 1 or len(numbers) == 0 or numbers[0] < 0:
        raise ValueError(f"{name}={numbers}: give a number, or a range of some without gaps")
    return numbers[0], numbers[-1]
