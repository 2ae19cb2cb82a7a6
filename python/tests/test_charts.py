"""Charts are the reports', of any table."""

import json
import re

import altair as alt
import pandas as pd
import pathlength
import pyarrow as pa
import pytest
from pathlength import charts


@pytest.fixture
def table():
    return pathlength.group_shares(pathlength.paper("cached"))


def values(chart):
    data = chart.to_dict()["data"]
    return list(chart.to_dict()["datasets"].values())[0] if "name" in data else data["values"]


def test_figure_4_of_1997(table):
    chart = charts.shares(table, "group")
    assert isinstance(chart, (alt.Chart, alt.LayerChart))
    shown = {(row["row"], row["column"]): row["shown"] for row in values(chart)}
    # The paper: integer loads are 32 percent of the instructions in all cases.
    for build in ("1997 original", "1997 byte-word"):
        assert 31 < float(shown["Integer loads", build]) < 33
    assert "vegaEmbed" in chart.to_html()


def test_all_kinds(table):
    for arrangement in ("grouped", "stacked", "percent"):
        assert values(charts.bars(table, "group", arrangement=arrangement))
    assert values(charts.differences(table, "group", "1997_original"))
    assert values(charts.strip(table, "group", "1997_original"))
    assert len(values(charts.shares(table, "group", ["1997_original"]))) == table.num_rows
    with pytest.raises(ValueError, match="sideways"):
        charts.bars(table, "group", arrangement="sideways")
    with pytest.raises(KeyError, match="no column 'nothing'"):
        charts.bars(table, "nothing")


def test_tables_from_elsewhere():
    frame = pd.DataFrame({"name": ["a", "b"], "size": [1, 2], "share": [0.5, 1.5]})
    table = pa.Table.from_pandas(frame)
    assert [row["value"] for row in values(charts.bars(table, "name", ["size"]))] == [1, 2]
    assert values(charts.bars(table.slice(0, 0), "name")) == []
    narrow = table.cast(pa.schema([("name", pa.large_string()), ("size", pa.uint8()), ("share", pa.float32())]))
    assert len(values(charts.bars(narrow, "name"))) == 4
    with pytest.raises(pathlength.PathlengthError, match="is_odd.*Boolean"):
        charts.bars(pa.table({"name": ["a"], "is_odd": [True]}), "name")


def test_pages_need_no_network(table, tmp_path):
    chart = charts.shares(table, "group", "1997_original").properties(title="Then </script>")
    charts.save(chart, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "vegaEmbed" in page and "default-src 'none'" in page
    markup = re.sub("(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search("<(script|link|img)[^>]* (src|href)=", markup), "it fetches something"
    assert "<h1>Then &lt;/script&gt;</h1>" in page
    data = json.loads(re.search('id="page-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    (rows,) = data["charts"]["chart-chart"]["datasets"].values()
    assert [row["shown"] for row in rows] == [row["shown"] for row in values(chart)]


def test_a_renamed_column_has_its_new_name(table):
    renamed = table.rename_columns(["group", "then", "now"])
    assert {row["column"] for row in values(charts.bars(renamed, "group"))} == {"then", "now"}
