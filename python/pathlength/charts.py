"""Charts of tables, the same as in the reports of `pathlength study`: Vega-Lite, as Altair's objects.

They need `pip install pathlength[charts]`. Columns are named as in the table; without `values` all but the category
are shown.

>>> from pathlength import charts
>>> chart = charts.shares(pathlength.group_shares(pathlength.paper("cached")), "group")
>>> charts.save(chart, "figure4.html")  # a page that opens without a network, which Altair's own needs
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Optional, Union

import altair as alt
import pyarrow as pa

from . import _pathlength

Chart = Union[alt.Chart, alt.LayerChart]
Values = Union[str, Sequence[str], None]


def save(chart: alt.TopLevelMixin, path: Union[str, "os.PathLike[str]"], *, title: Optional[str] = None) -> None:
    """Writes a chart, of these or any of Altair's, as a page of HTML with all that draws it: no network is needed.

    Above it stands `title`, or the chart's own.
    """
    spec = chart.to_dict()
    if title is None:
        own = spec.pop("title", "Chart")
        lines = own.get("text", "Chart") if isinstance(own, dict) else own
        title = lines if isinstance(lines, str) else " ".join(lines)
    with open(path, "w", encoding="utf-8") as file:
        file.write(_pathlength.page(title, json.dumps(spec)))


def bars(
    table: pa.Table, category: str, values: Values = None, *, arrangement: str = "grouped"
) -> Chart:
    """Horizontal bars: a group for each row, a bar in it for each of `values`, "grouped", "stacked" or "percent"."""
    if arrangement not in ("grouped", "stacked", "percent"):
        raise ValueError(f"there is no arrangement '{arrangement}': use grouped, stacked or percent")
    return _chart(arrangement, table, category, values)


def shares(table: pa.Table, category: str, values: Values = None) -> Chart:
    """Horizontal bars of 100 %: one for each of `values`, divided among the rows."""
    return _chart("shares", table, category, values)


def differences(table: pa.Table, category: str, value: str) -> Chart:
    """Bars to the left for what shrank and to the right for what grew."""
    return _chart("differences", table, category, [value])


def strip(table: pa.Table, group: str, value: str) -> Chart:
    """A dot for each row, in a strip for each different text in the column `group`."""
    return _chart("strip", table, group, [value])


def _chart(kind: str, table: pa.Table, category: str, values: Values) -> Chart:
    if values is None:
        values = [name for name in table.column_names if name != category]
    values = [values] if isinstance(values, str) else list(values)
    spec = json.loads(_pathlength.chart(kind, _plain(table), category, values))
    # The colours of lines and letters are those of the page, which a canvas does not know.
    spec["usermeta"] = {"embedOptions": {"renderer": "svg"}}
    return alt.Chart.from_dict(spec)


def _plain(table: pa.Table) -> pa.RecordBatch:
    """As one batch of strings, 64-bit integers and doubles."""
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns):
        is_text = pa.types.is_large_string(field.type) or pa.types.is_dictionary(field.type)
        type_ = pa.string() if is_text else field.type
        type_ = pa.int64() if pa.types.is_integer(type_) else type_
        type_ = pa.float64() if pa.types.is_floating(type_) or pa.types.is_decimal(type_) else type_
        columns.append(pa.concat_arrays(column.cast(type_).chunks or [pa.array([], type_)]))
        fields.append(field.with_type(type_))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))
