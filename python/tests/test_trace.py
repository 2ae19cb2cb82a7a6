"""Traces hold what was executed; damaged ones what can be read."""

import json
import signal
import subprocess
import threading
from pathlib import Path

import pandas as pd
import pathlength
import pathlength._command
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pathlength import Execution, Mark


@pytest.fixture
def trace(hello):
    return pathlength.trace(hello, output="whole.trace", stdout=subprocess.DEVNULL)


@pytest.fixture
def units(hello):
    options = {"unit": "greet", "skip": 3, "units": 4, "values": True}
    return pathlength.trace(hello, output="units.trace", stdout=subprocess.DEVNULL, **options)


def test_a_trace_replayed_gives_the_counts(hello):
    # Here, as pytest changes the environment between fixtures and tests, and with it what the program executes.
    trace = pathlength.trace(hello, output="whole.trace", stdout=subprocess.DEVNULL)
    counts = pathlength.count(hello, stdout=subprocess.DEVNULL)
    assert trace.instructions == counts.total == sum(trace.streams["instructions"].to_pylist())
    executed = {}
    for execution in trace.stream(0):
        executed[execution.address] = executed.get(execution.address, 0) + execution.length
    assert sum(executed.values()) == counts.total
    records = trace.records().read_all()
    assert records.num_rows == counts.total
    # The same words at the same addresses, as often.
    by_count = {}
    for block in counts.blocks.to_pylist():
        for index in range(block["length"]):
            pc_ = block["address"] + 4 * index
            by_count[pc_] = by_count.get(pc_, 0) + block["executions"]
    by_trace = records.group_by("pc").aggregate([("word", "count")])
    assert dict(zip(*(column.to_pylist() for column in (by_trace["pc"], by_trace["word_count"])))) == {
        address: n for address, n in by_count.items() if n
    }
    summary = trace.summary()
    assert (
        summary["instructions"].select(["instruction", "count"]).to_pylist()
        == counts.instructions.select(["instruction", "count"]).to_pylist()
    )


def test_records_and_executions_agree(units):
    records = units.records().read_all().to_pylist()
    blocks = units.blocks.to_pylist()
    at = 0
    for execution in units.stream(0):
        rows = records[at : at + execution.length]
        assert [row["instruction"] for row in rows] == list(range(at + 1, at + 1 + execution.length))
        assert [row["pc"] for row in rows] == [execution.address + 4 * index for index in range(execution.length)]
        assert [row["word"] for row in rows] == blocks[execution.block]["words"]
        assert [row["address"] for row in rows if row["kind"] != "other"] == execution.addresses
        assert [row["value"] for row in rows if row["value"] is not None] == execution.values
        assert all((row["size"] is None) == (row["kind"] == "other") for row in rows)
        at += execution.length
    assert at == len(records) == units.instructions


def test_batches_are_bounded_and_made_as_they_are_read(trace):
    sizes = [len(batch) for batch in trace.records()]
    assert sum(sizes) == trace.instructions and len(sizes) > 1
    longest = max(len(words) for words in trace.blocks["words"].to_pylist())
    assert max(sizes) < 65_536 + longest
    before = threading.active_count()
    for _ in range(50):
        next(iter(trace.records()))
    assert threading.active_count() == before


def test_filters(units):
    greet = units.records(function="greet").read_all()
    name = {row["function"]: row for row in units.functions.to_pylist()}["greet"]
    addresses = range(name["address"], name["address"] + name["size"])
    assert greet.num_rows == units.records(function="hello!greet", image="hello").read_all().num_rows > 0
    assert greet.equals(units.records(addresses=addresses).read_all())
    assert units.records(function="greet", with_callees=True).read_all().num_rows == units.instructions
    one = units.records(unit_number=4).read_all()
    assert one.num_rows < units.records(unit_number=range(4, 6)).read_all().num_rows < units.instructions
    assert units.records(instructions=range(10, 20)).read_all()["instruction"].to_pylist() == list(range(10, 20))
    assert len(list(units.stream(instructions=1))) == 1
    address = pc.drop_null(greet["address"])[0].as_py()
    touching = units.records(data=address).read_all().to_pylist()
    assert touching and all(row["address"] <= address < row["address"] + row["size"] for row in touching)


def test_marks(units):
    marks = [mark for mark in units.stream(marks=True) if isinstance(mark, Mark)]
    begun = [mark.number for mark in marks if mark.kind == "unit_begins"]
    assert begun == [mark.number for mark in marks if mark.kind == "unit_ends"] == [3, 4, 5, 6]
    assert all(isinstance(one, Execution) for one in units.stream())
    assert "unit_begins 3" in repr(next(mark for mark in marks if mark.kind == "unit_begins"))


def test_dictionary(trace):
    assert trace.header["program"].name == "hello" and trace.header["arguments"] == []
    images = trace.images.to_pylist()
    assert any(image["path"].endswith("libc.so.6.1") and image["build_id"] for image in images)
    functions = trace.functions.to_pylist()
    for block in trace.blocks.to_pylist():
        if block["function"] is not None:
            function = functions[block["function"]]
            assert function["address"] <= block["address"] < function["address"] + max(function["size"], 1)


def test_no_values_no_column(trace):
    assert "value" not in trace.records().schema.names
    nothing = trace.records(instructions=10**15).read_all()
    assert nothing.num_rows == 0 and nothing.schema == trace.records().schema


def test_it_reads_as_a_data_frame(units):
    frame = units.records().read_pandas()
    assert set(frame["kind"]) == {"other", "load", "store"}
    assert isinstance(units.records(), pa.RecordBatchReader)


@pytest.mark.parametrize(
    ("wanted", "error", "sentence"),
    [
        ({"function": "great"}, pathlength.TraceError, "no function 'great'"),
        ({"image": "libm"}, pathlength.TraceError, "image 'libm'"),
        ({"stream": 7}, pathlength.TraceError, "no stream 7"),
        ({"unit_number": range(3, 3)}, ValueError, "unit_number="),
        ({"instructions": range(0, 10, 2)}, ValueError, "without gaps"),
        ({"unit_number": -1}, ValueError, "unit_number="),
        ({"line_sizes": [48]}, ValueError, "48 bytes"),
        ({"page_sizes": [0]}, ValueError, "0 bytes"),
    ],
)
def test_what_is_not_there_is_told(trace, wanted, error, sentence):
    with pytest.raises(error, match=sentence):
        trace.summary(**wanted)


def test_no_trace(tmp_path):
    (tmp_path / "x").write_text("no trace")
    with pytest.raises(pathlength.TraceError, match="not a trace"):
        pathlength.Trace("x")
    with pytest.raises(pathlength.TraceError, match="nowhere"):
        pathlength.Trace("nowhere")


def test_a_damaged_trace_is_read_in_part(trace):
    whole = bytearray(Path("whole.trace").read_bytes())
    Path("cut.trace").write_bytes(whole[:-40])
    with pytest.warns(pathlength.TraceWarning, match="cut.trace: at byte"):
        cut = pathlength.Trace("cut.trace")
    assert len(cut.problems) >= 1 and cut.instructions < trace.instructions
    whole[-40] ^= 1
    Path("flipped.trace").write_bytes(whole)
    flipped = pathlength.Trace("flipped.trace")
    with pytest.warns(pathlength.TraceWarning, match="checksum"):
        rows = sum(len(batch) for batch in flipped.records())
    assert rows < trace.instructions
    with pytest.warns(pathlength.TraceWarning, match="checksum"):
        flipped.summary()


def test_summary_tells_how_far_it_is_and_can_be_stopped(trace):
    numbers = []
    trace.summary(progress=numbers.append)
    assert numbers == sorted(numbers) and numbers[-1] == trace.instructions

    def fail(instructions):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        trace.summary(progress=fail)


@pytest.mark.parametrize("work", [lambda trace: trace.records().read_all(), lambda trace: trace.summary()])
def test_signals_interrupt_what_takes_long(trace, work):
    def interrupt(signal, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        with pytest.raises(KeyboardInterrupt):
            work(trace)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_machines_hear_a_trace(units):
    names = pathlength.machines()["machine"].to_pylist()
    assert "alphastation500" in names and "dec3000" in names
    seen = []
    tables = units.caches("alphastation500", by=["function", "instruction", "unit"], progress=seen.append)
    assert list(tables) == ["structures", "functions", "instructions", "units"] and seen[-1] == units.instructions
    icache = tables["structures"].filter(pc.equal(tables["structures"]["structure"], "icache")).to_pylist()[0]
    assert icache["accesses"] == units.instructions == pc.sum(tables["functions"]["instructions"]).as_py()
    for by in ("functions", "instructions", "units"):
        assert pc.sum(tables[by]["icache_misses"]).as_py() == icache["misses"] > 0
    assert tables["units"].num_rows == 4
    # As the command has it.
    command = [pathlength._command.COMMAND, "caches", "--machine", "alphastation500", "--format", "json", units.path]
    printed = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert [row["misses"] for row in printed["rows"]] == tables["structures"]["misses"].to_pylist()
    one = units.caches("alphastation500", unit_number=1)["structures"]
    assert one["accesses"][0].as_py() < icache["accesses"]
    classified = units.caches("dec3000", classify=True)["structures"].to_pylist()
    assert all(row["misses"] == row["compulsory"] + row["capacity"] + row["conflict"] for row in classified)


def test_machines_take_time(units):
    tables = units.time("alphastation500", by="line")
    (time,) = tables["time"].to_pylist()
    assert time["instructions"] == units.instructions and time["units"] == 4
    assert pc.sum(tables["cycles"]["cycles"]).as_py() == pc.sum(tables["lines"]["cycles"]).as_py() == time["cycles"]


def test_machines_are_warmed_up(units):
    all_units = units.caches("alphastation500", by="unit")["units"]
    warmed = units.caches("alphastation500", by="unit", warm_up=1)
    assert warmed["units"].equals(all_units.slice(1))
    of_units = pc.sum(warmed["units"]["icache_misses"]).as_py()
    assert warmed["structures"]["misses"][0].as_py() >= of_units > 0
    numbers = all_units["unit"].to_pylist()
    of_two = units.caches("alphastation500", by="unit", unit_number=range(numbers[1], numbers[2] + 1), warm_up=1)["units"]
    assert of_two["unit"].to_pylist() == [numbers[2]]
    (time,) = units.time("alphastation500", warm_up=1)["time"].to_pylist()
    assert time["units"] == len(numbers) - 1
    with pytest.raises(pathlength.TraceError, match="give less than warm_up=4"):
        units.caches(warm_up=4)
    with pytest.raises(OverflowError):
        units.caches(warm_up=-1)


def test_machines_that_are_none(units, tmp_path):
    with pytest.raises(pathlength.PathlengthError, match="alphastation5"):
        units.caches("alphastation5")
    with pytest.raises(pathlength.PathlengthError, match="pipeline"):
        units.time("qemu")
    with pytest.raises(ValueError, match='by="file": tables are by "function"'):
        units.caches(by="file")
    with pytest.raises(pathlength.TraceError, match="nothing"):
        units.caches(function="nothing")
    (tmp_path / "own.toml").write_text('base = "dec3000"\ncaches.dcache.size = "3K"\n')
    with pytest.raises(pathlength.PathlengthError, match="dcache.size"):
        units.caches(tmp_path / "own.toml")

    def stop(instructions):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        units.caches(progress=stop)


def test_strides_of_a_trace(units):
    seen = []
    tables = units.strides("function", minimum_stride=0, depth=2, progress=seen.append)
    assert list(tables) == ["strides", "histograms"] and seen[-1] == units.instructions
    kinds = units.records().read_all()["kind"].to_pylist()
    references = pc.sum(tables["strides"]["references"]).as_py()
    assert references == kinds.count("load") + kinds.count("store") > 0
    for by, words in (("function", {"minimum_stride": 0, "depth": 2}), ("array", {"signed": True, "in_elements": True})):
        options = ["--minimum-stride=0", "--depth=2"] if by == "function" else ["--signed", "--in-elements"]
        command = [pathlength._command.COMMAND, "strides", f"--by={by}", *options, "--histograms", "--format=json"]
        printed = json.loads(subprocess.run([*command, units.path], check=True, stdout=subprocess.PIPE).stdout)
        rows = units.strides(by, **words)["histograms"].to_pylist()
        assert [list(row.values()) for row in printed["rows"]] == [list(row.values()) for row in rows]
    with pytest.raises(ValueError, match="depth=65"):
        units.strides(depth=65)
    with pytest.raises(ValueError, match='by="lines": series are by "array"'):
        units.strides("lines")
    with pytest.raises(pathlength.TraceError, match="no variable 'nothing'"):
        units.strides(array="nothing")


def test_the_heap_is_traced_if_asked_for(hello):
    for heap in (False, True):
        trace = pathlength.trace(hello, output="heap.trace", heap=heap, stdout=subprocess.DEVNULL)
        arrays = trace.strides()["strides"]["array"].to_pylist()
        assert any(name.startswith("allocated in") for name in arrays) == heap


def test_data_frames_keep_integers(units):
    """Of 64 bits: as floating-point numbers they would have 53."""
    table = units.records().read_all()
    frame = units.records().read_pandas()
    assert frame.dtypes[["pc", "address", "value", "size"]].astype(str).tolist() == ["uint64", "UInt64", "UInt64", "UInt8"]
    assert frame["address"].isna().any()
    for column in ("address", "value"):
        assert [None if one is pd.NA else one for one in frame[column]] == table[column].to_pylist()
    assert not any(kind == "float64" for kind in units.blocks.to_pandas().dtypes.astype(str))
