"""Programs are run, counted and recorded; whatever they do, Python goes on."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pathlength
import pytest
from pathlength._command import COMMAND, PATIENCE


def command(*arguments):
    """The command as people use it. Its program finds what ours finds: counts depend on that."""
    subprocess.run([COMMAND, *arguments], env={**os.environ}, stdout=subprocess.DEVNULL, check=True)


def test_the_exit_status_is_the_programs(hello, capfd):
    assert pathlength.run(hello) == 0
    assert capfd.readouterr().out.startswith("hello 0\nhello 1\n")
    assert pathlength.run(hello, "status", stdout=subprocess.DEVNULL) == 3
    assert pathlength.run(hello, "terminate", stdout=subprocess.DEVNULL) == -signal.SIGTERM
    assert pathlength.run(hello, "crash", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == -signal.SIGSEGV


def test_programs_do_not_see_what_we_tell_each_other(hello):
    assert pathlength.run(hello, "environment", stdout=subprocess.DEVNULL) == 0
    assert pathlength.count(hello, ["environment"], stdout=subprocess.DEVNULL).exit_status == 0


def test_counts_are_those_of_the_command(hello):
    counts = pathlength.count(hello, stdout=subprocess.DEVNULL)
    command("count", "--by", "function", "--format", "csv", "-o", "functions.csv", hello)
    lines = Path("functions.csv").read_text().splitlines()[1:]
    ours = counts.functions.to_pylist()
    assert [f"{row['function']},{row['image']},{row['instructions']}" for row in ours] == [
        line.rsplit(",", 2)[0] for line in lines[:-1]
    ]
    assert lines[-1].split(",")[2] == str(counts.total)


def test_tables_agree(hello):
    counts = pathlength.count(hello, stdout=subprocess.DEVNULL)
    counted = [("instructions", "count"), *((name, "instructions") for name in ("functions", "images", "lines", "addresses"))]
    for table, column in counted:
        assert sum(getattr(counts, table)[column].to_pylist()) == counts.total, table
    greet = counts.lines.to_pandas().query("function == 'greet'")
    assert len(greet) >= 3 and greet["line"].str.contains("hello.c:").all()
    blocks = counts.blocks.to_pandas()
    assert (blocks["length"] * blocks["executions"]).sum() == counts.total
    assert sum(counts.groups["share"].to_pylist()) == pytest.approx(100)
    assert counts.mix["lda"] == counts.mix.to_dict()["lda"] > 0
    assert "write" in counts.system_calls["system_call"].to_pylist()
    assert counts.exit_status == 0


def test_units(hello):
    counts = pathlength.count(hello, unit="greet", units=5, batch=4, stdout=subprocess.DEVNULL)
    units = counts.units.to_pandas()
    assert len(units) == 5 and counts.is_steady
    mean = sum(counts.functions["instructions"].to_pylist())
    assert mean == pytest.approx(units["instructions"].mean(), rel=0.01)
    assert counts.path_length["units"][0].as_py() == 5
    with pytest.raises(pathlength.PathlengthError, match="name its function with unit="):
        pathlength.count(hello, stdout=subprocess.DEVNULL).units


def test_pyarrow_shares_the_memory(hello):
    counts = pathlength.count(hello, stdout=subprocess.DEVNULL)
    column = counts.blocks["executions"].chunk(0)
    assert column.to_numpy(zero_copy_only=True).sum() > 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: pathlength.count("./missing"), "missing"),
        (lambda: pathlength.run("./missing"), "missing"),
        (lambda: pathlength.count("./hello", unit="great"), "no function|did you mean greet"),
        (lambda: pathlength.count("./hello", cpu="ev99"), "ev99"),
        (lambda: pathlength.count("./hello", units=3), "--unit"),
        (lambda: pathlength.count("./hello", ["crash"]), "SIGSEGV"),
        (lambda: pathlength.trace("./hello", ["crash"], "crash.trace"), "SIGSEGV"),
        (lambda: pathlength.trace("./hello", ["terminate"], "t.trace"), "SIGTERM.*is in t.trace"),
        (lambda: pathlength.trace("./hello", output="no/such/folder"), "no/such/folder"),
        (lambda: pathlength.trace("./hello", output="x", from_="nowhere"), "nowhere"),
        (lambda: pathlength.attach(os.getpid(), "x"), "pathlength run|engine"),
        (lambda: pathlength.build("no-such"), "no-such"),
    ],
)
def test_errors_are_the_commands_sentences(call, sentence, capfd):
    with pytest.raises(pathlength.PathlengthError, match=sentence) as error:
        call()
    assert "\n\n" not in str(error.value) and "pathlength:" not in str(error.value)
    assert str(error.value) not in capfd.readouterr().err


@pytest.mark.parametrize("work", [pathlength.count, pathlength.trace])
def test_a_killed_program_is_told(hello, work):
    def kill():
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while not children.read_text() or (work is pathlength.trace and not Path("pathlength.trace").exists()):
            time.sleep(0.01)
        os.kill(int(children.read_text().split()[0]), signal.SIGKILL)

    threading.Thread(target=kill).start()
    with pytest.raises(pathlength.PathlengthError, match="SIGKILL"):
        work(hello, ["forever"], stdout=subprocess.DEVNULL)
    if work is pathlength.trace:
        assert pathlength.Trace("pathlength.trace").header["program"].name == "hello"


def test_processes_left_behind_are_not_waited_for(hello):
    begun = time.monotonic()
    pathlength.count(hello, ["orphan"], stdout=subprocess.DEVNULL)
    assert time.monotonic() - begun < 50


def test_progress_is_heard(hello):
    numbers = []
    pathlength.count(hello, unit="greet", units=30, batch=2, progress=numbers.append, stdout=subprocess.DEVNULL)
    assert numbers == sorted(numbers) and numbers
    numbers.clear()
    pathlength.trace(hello, output="x.trace", progress=numbers.append, stdout=subprocess.DEVNULL)
    assert numbers == sorted(numbers)


def test_an_error_in_progress_ends_the_program(hello):
    def fail(units):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pathlength.count(hello, ["forever"], unit="greet", progress=fail, stdout=subprocess.DEVNULL)


def test_other_threads_go_on(hello):
    """While one waits for a program."""
    options = {"stdout": subprocess.DEVNULL}
    waiting = threading.Thread(target=pathlength.count, args=(hello,), kwargs=options)
    waiting.start()
    ticks = 0
    while waiting.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert ticks > 5


@pytest.mark.parametrize("work", ["count", "trace"])
def test_an_interrupt_ends_the_program_and_keeps_the_trace(hello, work):
    output = {"trace": "output='x.trace', "}.get(work, "")
    script = f"""
import subprocess, pathlength
try:
    pathlength.{work}({hello!r}, ["forever"], {output}stdout=subprocess.DEVNULL)
except KeyboardInterrupt:
    print("interrupted")
"""
    python = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    children = Path(f"/proc/{python.pid}/task/{python.pid}/children")
    while not children.read_text():
        time.sleep(0.01)
    child = int(children.read_text().split()[0])
    time.sleep(1)
    python.send_signal(signal.SIGINT)
    begun = time.monotonic()
    try:
        assert python.communicate(timeout=30)[0] == "interrupted\n"
    except subprocess.TimeoutExpired:
        # Neither it nor the program, which would compute for ever, outlives the test.
        os.kill(child, signal.SIGKILL)
        python.kill()
        python.communicate()
        raise
    assert time.monotonic() - begun < PATIENCE
    assert not Path(f"/proc/{child}").exists()
    if work == "trace":
        trace = pathlength.Trace("x.trace")
        assert trace.problems == [] and trace.instructions > 100_000
        assert trace.records(instructions=range(1, 1001)).read_all().num_rows == 1000


def test_a_text_is_one_argument(hello):
    for args in ("status", Path("status"), ["status"], ("status",), iter(["status"])):
        assert pathlength.count(hello, args, stdout=subprocess.DEVNULL).exit_status == 3
    trace = pathlength.trace(hello, "environment", "one.trace", until=100, stdout=subprocess.DEVNULL)
    assert trace.header["arguments"] == ["environment"]
    with pytest.raises(ValueError, match="hits and that of misses"):
        pathlength.count(hello, unit="greet", cache="ab")


def test_the_version_is_the_packages():
    assert pathlength.__version__ == importlib.metadata.version("pathlength")
