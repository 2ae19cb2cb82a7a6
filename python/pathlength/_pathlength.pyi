"""The native part."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

import pyarrow as pa

VERSION: str

class PathlengthError(Exception):
    """What went wrong, where, and what to do."""

class TraceError(PathlengthError):
    """A file is no trace, or does not have the requested part."""

class TraceWarning(UserWarning):
    """A part of a trace cannot be read, and is left out."""

class Counts:
    """The counts of a run; with a unit of work, the mean of the units measured."""

    def __init__(self, message: bytes) -> None: ...
    @property
    def total(self) -> int:
        """Instructions of the whole run."""
    @property
    def exit_status(self) -> Optional[int]:
        """The program's exit status; None if a signal ended it."""
    @property
    def crash(self) -> Optional[str]:
        """How a signal ended the program, if one did."""
    @property
    def unaligned(self) -> int:
        """Accesses that were not aligned."""
    @property
    def forked(self) -> int:
        """Processes that the program and its children forked; they are not counted."""
    @property
    def mix(self) -> Mix:
        """How often each instruction was executed."""
    @property
    def instructions(self) -> pa.Table:
        """instruction, group, count, share"""
    @property
    def groups(self) -> pa.Table:
        """group, share"""
    @property
    def functions(self) -> pa.Table:
        """function, image, instructions, share"""
    @property
    def lines(self) -> pa.Table:
        """line, function, image, instructions, share"""
    @property
    def addresses(self) -> pa.Table:
        """address, instruction, where, instructions, share: a row for each instruction that was executed"""
    @property
    def images(self) -> pa.Table:
        """image, instructions, instructions_share"""
    @property
    def units(self) -> pa.Table:
        """unit, instructions, system_calls: the units measured"""
    @property
    def path_length(self) -> pa.Table:
        """Statistics of the units' path lengths."""
    @property
    def is_steady(self) -> bool:
        """Whether the units measured are of the steady state."""
    @property
    def blocks(self) -> pa.Table:
        """address, length, executions: of the whole run"""
    @property
    def system_calls(self) -> pa.Table:
        """system_call, calls: of the whole run"""

class Mix:
    """How often each instruction occurs, by its name."""

    def to_dict(self) -> dict[str, int]: ...
    def __getitem__(self, name: str) -> int: ...

class Execution:
    """A block that was executed."""

    @property
    def stream(self) -> int:
        """The number of its stream."""
    @property
    def instruction(self) -> int:
        """The number of its first instruction in its stream, from 1."""
    @property
    def block(self) -> int:
        """Which block: a row of the trace's blocks."""
    @property
    def address(self) -> int:
        """The address of its first instruction."""
    @property
    def length(self) -> int:
        """Its instructions."""
    @property
    def function(self) -> str:
        """image!function"""
    @property
    def addresses(self) -> list[int]:
        """The effective addresses of its loads and stores, in order."""
    @property
    def values(self) -> list[int]:
        """The values of its instructions that have one, in order, if values were recorded."""

class Mark:
    """A mark: an event that is no instruction."""

    @property
    def stream(self) -> int:
        """The number of its stream."""
    @property
    def instruction(self) -> int:
        """The number of the next instruction."""
    @property
    def kind(self) -> str:
        """order, gap, diverted, system_call, unit_begins, unit_ends, unit_left, or of the heap: heap_caller, heap_name, heap_size,
        heap_block, heap_freed, heap_copied, heap_gone, mapping_start, mapping_size, mapping_shared,
        mapping_private, mapping_offset, mapping_copied or mapping_gone"""
    @property
    def number(self) -> Optional[int]:
        """Of the unit, the system call, or in the order of all streams."""

class Selection:
    def __init__(
        self,
        *,
        functions: list[str],
        with_callees: bool,
        images: list[str],
        addresses: Optional[tuple[int, int]],
        data: Optional[tuple[int, int]],
        threads: list[tuple[int, Optional[int]]],
        instructions: Optional[tuple[int, int]],
        units: Optional[tuple[int, int]],
    ) -> None: ...

class Batches(Iterator[pa.RecordBatch]):
    @property
    def schema(self) -> pa.Schema: ...
    def __next__(self) -> pa.RecordBatch: ...

class Executions(Iterator[Union[Execution, Mark]]):
    def __next__(self) -> Union[Execution, Mark]: ...

class Trace:
    def __init__(self, path: Union[str, os.PathLike[str]]) -> None: ...
    @property
    def header(self) -> dict[str, Any]: ...
    @property
    def problems(self) -> list[tuple[int, str]]: ...
    @property
    def instructions(self) -> int: ...
    @property
    def images(self) -> pa.Table: ...
    @property
    def functions(self) -> pa.Table: ...
    @property
    def blocks(self) -> pa.Table: ...
    @property
    def streams(self) -> pa.Table: ...
    def records(self, selection: Selection) -> Batches: ...
    def executions(self, selection: Selection, marks: bool) -> Executions: ...
    def summary(
        self,
        selection: Selection,
        line_sizes: list[int],
        page_sizes: list[int],
        window: Optional[int],
        progress: Optional[Callable[[int], object]],
    ) -> dict[str, pa.Table]: ...

def tables(message: bytes) -> list[tuple[str, pa.Table]]: ...
def caches(
    trace: Trace,
    selection: Selection,
    machine: str,
    by: list[str],
    classify: bool,
    warm_up: int,
    progress: Optional[Callable[[int], object]],
) -> dict[str, pa.Table]: ...
def time(
    trace: Trace,
    selection: Selection,
    machine: str,
    by: list[str],
    warm_up: int,
    progress: Optional[Callable[[int], object]],
) -> dict[str, pa.Table]: ...
def machines() -> pa.Table: ...
def strides(
    trace: Trace,
    selection: Selection,
    by: str,
    arrays: list[str],
    depth: int,
    threshold: int,
    signed: bool,
    in_elements: bool,
    progress: Optional[Callable[[int], object]],
) -> dict[str, pa.Table]: ...
def page(title: str, spec: str) -> str: ...
def chart(kind: str, batch: pa.RecordBatch, category: str, values: list[str]) -> str: ...
def group_shares(mixes: list[tuple[str, Mix]]) -> pa.Table: ...
def paper(mode: str) -> list[Mix]: ...
