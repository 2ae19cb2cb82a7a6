"""What the command finds out about programs, traces, saved counts and images comes as tables, the same as it prints."""

import inspect
import json
import os
import subprocess
from pathlib import Path

import pathlength
import pyarrow.compute as pc
import pytest
from pathlength._command import COMMAND

QUIET = {"stdout": subprocess.DEVNULL}


@pytest.fixture
def trace(hello):
    return pathlength.trace(hello, output="units.trace", unit="greet", skip=3, units=4, **QUIET)


def printed(*arguments):
    """The rows of the table that the command writes, values only; without the total, which tables do not have."""
    words = [COMMAND, *arguments[:1], "--format=json", "-o", "table.json", *arguments[1:]]
    subprocess.run(words, env={**os.environ}, check=True, **QUIET)
    table = json.loads(Path("table.json").read_text())
    rows = [list(row.values()) for row in table["rows"]]
    return rows[:-1] if table.get("total") or rows[-1][0] == "total" else rows


def rows(table):
    return [list(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("function", "keywords", "command", "name"),
    [
        ("caches", {"machine": "dec3000"}, "caches --machine=dec3000", "structures"),
        ("caches", {"by": "line", "unit": "greet", "units": 3}, "caches --by=line --unit=greet --units=3", "lines"),
        ("time", {"by": "function", "from_": "main"}, "time --by=function --from=main", "functions"),
        ("calls", {"by": "caller", "function": ["greet"]}, "calls --by=caller --function=greet", "callers"),
        ("calls", {"by": "call_tree", "threshold": 5.5}, "calls --by=call-tree --threshold=5.5", "call_tree"),
        ("annotate", {"function": "greet"}, "annotate --function=greet", "greet"),
        ("mrc", {"streams": "data"}, "mrc --streams=data", "mrc_data"),
    ],
)
def test_tables_are_those_of_the_command(hello, function, keywords, command, name):
    table = getattr(pathlength, function)(hello, **keywords, **QUIET)[name]
    assert rows(table) == printed(*command.split(), hello) != []


def test_a_program_has_the_results_of_its_trace(hello):
    trace = pathlength.trace(hello, output="whole.trace", **QUIET)
    for function in (pathlength.caches, pathlength.time):
        live = function(hello, by="function", **QUIET)
        for replayed in (function(trace, by="function"), function("whole.trace", by="function")):
            assert replayed.keys() == live.keys() and all(replayed[name].equals(live[name]) for name in live)
        own = getattr(trace, function.__name__)("alphastation500", by="function")
        assert all(own[name].equals(live[name]) for name in live)
    assert trace.calls(by="caller")["callers"].equals(pathlength.calls(hello, by="caller", **QUIET)["callers"])


def test_units_and_the_slowest(hello, trace):
    tables = pathlength.units(hello, unit="greet", slowest=True, **QUIET)
    instructions = tables["distribution"].to_pylist()[0]
    counted = pathlength.calls(hello, by="unit", unit="greet", **QUIET)["units"]["instructions"]
    assert instructions["calls"] == len(counted) > 4 and instructions["maximum"] == pc.max(counted).as_py()
    assert {"histogram", "difference_by_function", "difference_by_line"} <= tables.keys()
    assert trace.units()["distribution"]["calls"].to_pylist() == [4, 4, 4]
    with pytest.raises(pathlength.PathlengthError, match="--unit FUNCTION"):
        pathlength.units(hello, **QUIET)


def test_two_builds_are_compared(hello):
    source = Path(__file__).parent / "hello.c"
    subprocess.run(["alpha-linux-gnu-gcc", "-O2", "-mcpu=ev56", "-mbwx", source, "-o", "other"], check=True)
    tables = pathlength.compare(hello, "./other", top=3, **QUIET)
    assert tables["functions"].num_rows <= 3 and tables["functions"].column_names[2:4] == ["hello", "other"]
    counts = pathlength.count(hello, save="hello.counts", unit="greet", units=3, batch=2, **QUIET)
    assert counts.units.num_rows == 3
    tables = pathlength.compare("hello.counts", hello, unit="greet", units=3, batch=2, **QUIET)
    assert tables["path_length"].num_rows == 2 and tables["functions"].num_rows == 0
    with pytest.raises(ValueError, match="end with .counts"):
        pathlength.count(hello, save="hello.json")


def test_images_are_read(hello):
    (row,) = pathlength.static(hello)["images"].to_pylist()
    assert row["image"] == "hello"
    assert [list(row.values())] == printed("static", hello)
    tables = pathlength.static(hello, against=[hello])
    assert all(name.startswith(("image", "instruction", "section", "group")) for name in tables), list(tables)


def test_a_damaged_trace_is_used_in_part_and_told(trace):
    whole = bytearray(Path("units.trace").read_bytes())
    whole[-40] ^= 1
    Path("flipped.trace").write_bytes(whole)
    with pytest.warns(pathlength.TraceWarning, match="checksum"):
        tables = pathlength.calls("flipped.trace", by="function")
    assert (pc.sum(tables["functions"]["instructions"]).as_py() or 0) < trace.instructions


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: pathlength.caches("./hello", machine="alphastation5"), pathlength.PathlengthError, "alphastation5"),
        (lambda: pathlength.caches("./missing"), pathlength.PathlengthError, "missing"),
        (lambda: pathlength.caches("./hello", by="file"), pathlength.PathlengthError, "file"),
        (lambda: pathlength.caches("./hello", "crash", **QUIET), pathlength.PathlengthError, "SIGSEGV"),
        (lambda: pathlength.calls("./hello", "terminate", **QUIET), pathlength.PathlengthError, "SIGTERM"),
        (lambda: pathlength.time("./hello", warm_up=3), pathlength.PathlengthError, "--unit FUNCTION"),
        (lambda: pathlength.time("./hello", thread="0.0"), pathlength.PathlengthError, "choose from a trace"),
        (lambda: pathlength.annotate("./hello", function="great"), pathlength.PathlengthError, "did you mean greet"),
        (lambda: pathlength.static("./hello", against=["./hello", "./hello"]), pathlength.PathlengthError, "--against"),
        (lambda: pathlength.check("./hello"), pathlength.PathlengthError, "not a trace"),
        (lambda: pathlength.compare("./hello", "./missing"), pathlength.PathlengthError, "missing"),
        (lambda: pathlength.caches("./hello", functions="greet"), TypeError, r"caches\(\) got .*functions"),
    ],
)
def test_what_goes_wrong_is_told(hello, call, error, sentence, capfd):
    with pytest.raises(error, match=sentence) as told:
        call()
    assert str(told.value) not in capfd.readouterr().err


def test_threads_are_selected_by_their_names(trace):
    assert trace.records(thread="0.0").read_all().num_rows == trace.instructions
    assert trace.records(process=0).read_all().num_rows == trace.instructions
    with pytest.raises(pathlength.TraceError, match="no thread 0.7"):
        trace.records(thread="0.7")
    assert sum(block.length for block in trace.stream(thread="0.0")) == trace.instructions
    assert trace.calls(thread="0.0", by="unit")["units"].num_rows == 4
    with pytest.raises(ValueError, match="thread='main'"):
        trace.records(thread="main")
    with pytest.raises(TypeError, match=r"records\(\) got an unexpected.*'threads'"):
        trace.records(threads="0.0")


def test_signatures_name_all_keywords():
    for keywords, where, names in (
        (pathlength.Selection, pathlength.Trace, "stream records summary caches time strides"),
        (pathlength.Part, pathlength, "caches time calls units annotate mrc"),
    ):
        for function in (getattr(where, name) for name in names.split()):
            parameters = inspect.signature(function).parameters
            assert keywords.__annotations__.keys() <= parameters.keys(), function
            assert all(isinstance(parameters[name].annotation, str) for name in keywords.__annotations__)
            assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
