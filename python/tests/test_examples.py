"""What the documentation shows is so."""

import doctest
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pathlength
import pathlength._measured
import pathlength._programs
import pathlength._tables
import pathlength._trace
import pathlength.charts
import pytest

PYTHON = Path(__file__).parent.parent
MODULES = [
    pathlength._measured,
    pathlength._programs,
    pathlength._tables,
    pathlength._trace,
    pathlength.charts,
    pathlength,
]


def examples(text, name):
    test = doctest.DocTestParser().get_doctest(text, {"pathlength": pathlength}, name, name, 0)
    assert test.examples
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert failed == 0


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_of_modules(module, hello):
    pathlength.trace(hello, output="hello.trace", unit="greet", skip=1, units=2)
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(module, extraglobs={"pathlength": pathlength}):
        if test.examples:
            examples(test.docstring, test.name)


def test_of_the_read_me():
    examples((PYTHON / "README.md").read_text(), "README.md")


def test_no_other_page_has_examples():
    root = PYTHON.parent
    pages = [root / "README.md", root / "CONTRIBUTING.md", *PYTHON.glob("*.md"), *(root / "docs").rglob("*.md")]
    with_examples = {str(page.relative_to(root)) for page in pages if ">>> " in page.read_text()}
    assert with_examples == {"docs/guide/look.md", "python/README.md"}


BUILDS = {"original": ["-mcpu=ev5", "-mno-bwx"], "byte-word": ["-mcpu=ev56", "-mbwx"]}


def compiled(source, output, build):
    compiler = ["alpha-linux-gnu-gcc", "-O2", "-g", *BUILDS[build]]
    subprocess.run([*compiler, PYTHON.parent / source, "-o", output], check=True)


def test_of_the_guide():
    guide = PYTHON.parent / "docs" / "guide" / "look.md"
    compiled("docs/guide/orders.c", "orders-ev5", "original")
    compiled("docs/guide/orders.c", "orders", "byte-word")
    examples(guide.read_text().replace("```", ""), "look.md")


@pytest.fixture
def builds():
    """TPC-B as `make study` builds it, with a loaded database."""
    kept = PYTHON.parent / "build"
    kept.mkdir(exist_ok=True)
    Path("build").symlink_to(kept)
    builds = pathlength.build("tpcb")
    subprocess.run([builds["native"], "load", "loaded.db"], check=True)
    return builds


def test_figure_4(monkeypatch, builds):
    """With the first transactions only."""
    monkeypatch.setattr(sys, "argv", ["figure4.py", "200"])
    made = runpy.run_path(str(PYTHON / "examples" / "figure4.py"))
    table = made["table"]
    assert table.column_names[1:5] == ["1997_original", "1997_byte_word", "cached_original", "cached_byte_word"]
    for column in table.columns[1:]:
        assert sum(column.to_pylist()) == pytest.approx(100)
    rows = {row["group"]: row for row in table.to_pylist()}
    bytes_ = rows["Byte manipulation"]
    assert bytes_["cached_byte_word"] < bytes_["cached_original"]
    page = Path("figure4.html").read_text()
    assert "vega" in page
    markup = re.sub("(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search("<(script|link|img)[^>]* (src|href)=", markup), "it fetches something"
