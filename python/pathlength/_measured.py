"""What the command finds out about programs, traces, saved counts and images, as tables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

import pyarrow as pa

from . import _pathlength
from ._command import as_options, execute
from ._keywords import Arguments, Names, Part, StrPath, listed, takes
from ._pathlength import PathlengthError, TraceWarning

if TYPE_CHECKING:
    from typing_extensions import Unpack

Tables = dict[str, pa.Table]
Value = Union[str, bool, int, float]

_STREAMS = ("stdin", "stdout", "stderr")


@takes(Part)
def caches(
    program: StrPath,
    args: Arguments = (),
    *,
    machine: Union[StrPath, Iterable[StrPath]] = "alphastation500",
    by: Optional[str] = None,
    inclusive: bool = False,
    children: bool = False,
    classify: bool = False,
    classes: Names = (),
    function: Names = (),
    threshold: Optional[float] = None,
    settings: Optional[Mapping[str, Value]] = None,
    sweep: Optional[Mapping[str, Iterable[Value]]] = None,
    **part: Unpack[Part],
) -> Tables:
    """What misses in a machine's caches and TLBs while a program runs: the tables of `pathlength caches`, by name.

    `program` may be a trace, too, of which `Trace.caches` makes several tables at once. `machine` is one or several of
    `pathlength.machines()`, or files that describe one. `by` asks for a table by "function", "line", "instruction" or
    "unit", too; or for one by "caller", "callee" or "call_tree" alone, of each `function` named, and without calls that
    cost less than `threshold` percent. `inclusive` adds to functions what they call. With `classify`, misses are
    classified. With `children`, all processes are simulated, each as if it had a processor to itself, and `by` may be
    "process". With `by="class"` and a `unit`, all that is executed is divided among the units' classes, which the rules
    `classes` find as `pathlength count --class` does, and what is outside of units. `settings` changes fields of the
    machine; `sweep` gives all values of one or two fields, which one table compares. `part` is described in
    `pathlength.Part`.

    >>> tables = pathlength.caches("./hello", machine="dec3000", by="function", unit="greet", warm_up=2)
    >>> tables["structures"]["structure"].to_pylist()
    ['icache', 'dcache', 'bcache', 'itb', 'dtb']
    >>> "greet" in tables["functions"]["function"].to_pylist()
    True
    >>> tables = pathlength.caches("./hello", by="class", unit="greet", classes="greet()")
    >>> tables["classes"]["class"].to_pylist()
    ['greet', '(outside units)']
    >>> tables = pathlength.caches("./hello", settings={"icache.ways": 2}, sweep={"dcache.size": ["8K", "16K"]})
    >>> tables["sweep"]["dcache_size"].to_pylist()
    ['8K', '16K']
    """
    options = dict(machine=machine, by=_rows(by), inclusive=inclusive, children=children, classify=classify)
    options |= {"set": _fields(settings), "sweep": _fields(sweep), "class": classes}
    return _tables("caches", program, args, options, part, function=function, threshold=threshold)


@takes(Part)
def time(
    program: StrPath,
    args: Arguments = (),
    *,
    machine: Union[StrPath, Iterable[StrPath]] = "alphastation500",
    by: Optional[str] = None,
    inclusive: bool = False,
    children: bool = False,
    classes: Names = (),
    function: Names = (),
    threshold: Optional[float] = None,
    settings: Optional[Mapping[str, Value]] = None,
    sweep: Optional[Mapping[str, Iterable[Value]]] = None,
    **part: Unpack[Part],
) -> Tables:
    """How long a machine takes for a program, and what for: the tables of `pathlength time`, by name.

    The keywords are those of `caches`.

    >>> tables = pathlength.time("./hello", by="unit", unit="greet", units=3)
    >>> list(tables), tables["units"].num_rows
    (['time', 'cycles', 'predictions', 'units'], 3)
    >>> tables["time"]["cycles"][0].as_py() > 0
    True
    """
    options = dict(machine=machine, by=_rows(by), inclusive=inclusive, children=children)
    options |= {"set": _fields(settings), "sweep": _fields(sweep), "class": classes}
    return _tables("time", program, args, options, part, function=function, threshold=threshold)


@takes(Part)
def calls(
    program: StrPath,
    args: Arguments = (),
    *,
    by: Optional[str] = None,
    classes: Names = (),
    function: Names = (),
    threshold: Optional[float] = None,
    **part: Unpack[Part],
) -> Tables:
    """What calls cost: the tables of `pathlength calls` for a program or a trace, by name.

    Without `by`: functions with all that they call, and the call tree. `by` is "function", "caller", "callee",
    "call_tree", "line", "instruction", "unit" or "class". The other keywords are those of `caches`.

    >>> tables = pathlength.calls("./hello", by="caller", function="greet")
    >>> callers = tables["callers"]
    >>> callers["caller"].to_pylist()
    ['main']
    """
    options = {"by": _rows(by), "class": classes}
    return _tables("calls", program, args, options, part, function=function, threshold=threshold)


@takes(Part)
def faults(
    program: StrPath,
    args: Arguments = (),
    *,
    by: Optional[str] = None,
    inclusive: bool = False,
    classes: Names = (),
    function: Names = (),
    threshold: Optional[float] = None,
    **part: Unpack[Part],
) -> Tables:
    """Which accesses of a program or a trace are unaligned: the tables of `pathlength faults`, by name.

    Without `by`: a summary, and the lines that fault with what would avoid it. `by` is "line", "data", "time",
    "function", "instruction", "unit", "caller", "callee", "call_tree" or "class". The other keywords are those of `caches`.

    >>> tables = pathlength.faults("./hello")
    >>> tables["summary"]["alignment_faults"].to_pylist()
    [0]
    """
    options = {"by": _rows(by), "inclusive": inclusive, "class": classes}
    return _tables("faults", program, args, options, part, function=function, threshold=threshold)


@takes(Part)
def units(
    program: StrPath,
    args: Arguments = (),
    *,
    event: Optional[str] = None,
    machine: Optional[StrPath] = None,
    chart: Optional[str] = None,
    slowest: bool = False,
    unit_number: Optional[int] = None,
    reference: Optional[int] = None,
    **part: Unpack[Part],
) -> Tables:
    """What the calls of the function `unit` cost: the tables of `pathlength units`, by name.

    Percentiles and a histogram. `event` is "instructions", or "misses" or "cycles" of a `machine`; the histogram is of the
    row `chart`. With `slowest`, or a `unit_number`, also the functions and lines of which that call executed more or less
    than the median call, or than the call `reference`.

    >>> tables = pathlength.units("./hello", unit="greet", slowest=True)
    >>> tables["distribution"].select(["event", "calls"]).to_pylist()[0]
    {'event': 'instructions', 'calls': ...}
    """
    options = dict(
        event=event, machine=machine, chart=chart, slowest=slowest, unit_number=unit_number, reference=reference
    )
    return _tables("units", program, args, options, part)


@takes(Part)
def annotate(
    program: StrPath,
    args: Arguments = (),
    *,
    function: Names = (),
    top: Optional[int] = None,
    event: Optional[str] = None,
    machine: Optional[StrPath] = None,
    source: Union[StrPath, Iterable[StrPath]] = (),
    **part: Unpack[Part],
) -> Tables:
    """Functions as source and disassembly, with executions, misses or cycles: a table for each, by its name.

    Each `function`, or without one the `top` most expensive. `event` is "instructions", or "misses" or "cycles" of a
    `machine`. `source`: folders with sources that are not where they were compiled.

    >>> greet = pathlength.annotate("./hello", function="greet")["greet"]
    >>> greet.column_names[:3], greet.column_names[-1]
    (['line', 'address', 'share'], 'code')
    """
    options = dict(top=top, event=event, machine=machine, source=source)
    return _tables("annotate", program, args, options, part, function=function)


@takes(Part)
def mrc(
    program: StrPath,
    args: Arguments = (),
    *,
    streams: Names = (),
    line_size: Optional[int] = None,
    largest: Optional[int] = None,
    granularity_hints: Optional[str] = None,
    classes: Names = (),
    **part: Unpack[Part],
) -> Tables:
    """Miss-ratio curves: the misses of caches of all sizes up to `largest` bytes, with lines of `line_size` bytes.

    A table for each of `streams`: "code", "data" and "both". With lines as long as pages the caches are TLBs, which map the
    regions of `granularity_hints` ("mappings", "program", "all" or ranges of addresses) by larger entries. With several
    functions as `unit`, or with `classes`, each class of units of work has its rows, as with `caches`.

    >>> curve = pathlength.mrc("./hello", streams="data", largest=64 << 10)["mrc_data"]
    >>> curve["size"].to_pylist()[-1]
    65536
    """
    options = dict(
        streams=",".join(listed(streams)) or None,
        line_size=line_size,
        largest=largest,
        granularity_hints=granularity_hints,
    )
    return _tables("mrc", program, args, {**options, "class": classes}, part)


def compare(
    a: StrPath,
    b: StrPath,
    args: Arguments = (),
    *,
    unit: Optional[str] = None,
    units: Optional[int] = None,
    batch: Optional[int] = None,
    top: Optional[int] = None,
    cpu: Optional[str] = None,
    sysroot: Optional[StrPath] = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Tables:
    """What two builds of a program do differently, most changed first: the tables of `pathlength compare`, by name.

    Both are run with the same arguments; each may also be counts that `count` saved, or a trace. With `unit`, the mean
    of the function's calls is compared, as `count` measures it. `top` leaves out all but the largest differences.

    >>> counts = pathlength.count("./hello", save="before.counts")
    >>> tables = pathlength.compare("before.counts", "./hello")
    >>> list(tables)
    ['images', 'groups', 'instructions', 'functions']
    """
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    options = as_options(unit=unit, units=units, batch=batch, top=top, cpu=cpu, sysroot=sysroot)
    return _received(["compare", *options, a, b, "--", *listed(args)], f"{os.fspath(a)}, {os.fspath(b)}", streams)


def static(
    images: Union[StrPath, Iterable[StrPath]], *, against: Union[StrPath, Iterable[StrPath]] = ()
) -> Tables:
    """The instructions that images consist of, without running them: the tables of `pathlength static`, by name.

    Executables and shared libraries, one or several; with the same images of another build, `against`, the differences.

    >>> tables = pathlength.static("./hello")
    >>> tables["images"]["image"].to_pylist()
    ['hello']
    """
    images, against = listed(images), listed(against)
    words = ["--against", *against] if against else []
    return _received(["static", *images, *words], ", ".join(map(os.fspath, images)), {})


def check(trace: StrPath) -> Tables:
    """Whether a trace is consistent: the tables of `pathlength check`, by name.

    `checked` has the numbers of instructions, addresses and violations; `violations` says where those are.

    >>> checked = pathlength.check("hello.trace")["checked"].to_pylist()
    >>> [row["count"] for row in checked if row["what"] == "violations"]
    [0]
    """
    return _received(["check", trace], os.fspath(trace), {})


def _rows(by: Optional[str]) -> Optional[str]:
    return by and by.replace("_", "-")


def _fields(values: Optional[Mapping[str, Union[Value, Iterable[Value]]]]) -> list[str]:
    """FIELD=VALUE or FIELD=VALUE,VALUE for each field of a machine."""
    texts = {field: [str(one).lower() if isinstance(one, bool) else str(one) for one in listed(value)]
             for field, value in (values or {}).items()}
    return [f"{field}={','.join(text)}" for field, text in texts.items()]


def _tables(
    command: str, program: StrPath, args: Arguments, options: dict, part: Mapping[str, object], **more: Any
) -> Tables:
    streams = {name: value for name, value in part.items() if name in _STREAMS}
    selected = {name: value for name, value in part.items() if name not in _STREAMS}
    words = as_options(**options, **more, **selected)
    return _received([command, *words, "--", program, *listed(args)], os.fspath(program), streams)


def _received(arguments: list, what: str, streams: dict) -> Tables:
    ended = execute(arguments, on_problem=lambda text: warnings.warn(text, TraceWarning, stacklevel=5), **streams)
    if ended.status < 0:
        raise PathlengthError(f"{what}: {ended.how}")
    if ended.tables is None:
        raise PathlengthError(f"{what}: {ended.how} before there were results")
    named = _pathlength.tables(ended.tables)
    # The names of functions are left as they are.
    return dict(named) if arguments[0] == "annotate" else {name.replace("-", "_"): one for name, one in named}
