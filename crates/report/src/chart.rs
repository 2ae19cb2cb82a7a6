//! Charts as Vega-Lite specifications, made from tables.
//!
//! Lines and letters take the colour of the text around them, so a chart fits a light and a dark
//! page; the series' colours are distinguishable for colour-blind people.
//!
//! The rows of a table are distinguished by their text in the category's column, which must be
//! unique for bars.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use table::{Kind, Table, Value};

use crate::json::JsonCell;
use crate::{Error, cells};

/// A chart: a Vega-Lite 6 specification with its data, and the words around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Short name in kebab-case: its anchor in a page.
    pub name: String,
    /// The title, one line.
    pub title: String,
    /// The caption: the observation to make.
    pub caption: String,
    /// The specification, complete with data.
    pub spec: serde_json::Value,
}

/// How the bars of several columns stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Side by side.
    Grouped,
    /// End to end.
    Stacked,
    /// End to end, each whole bar 100 %.
    Percent,
}

impl Chart {
    /// The same chart with another name and title.
    pub fn titled(mut self, name: &str, title: &str) -> Chart {
        (self.name, self.title) = (name.into(), title.into());
        self
    }

    /// The same chart with a caption.
    pub fn captioned(mut self, caption: &str) -> Chart {
        self.caption = caption.into();
        self
    }

    /// `layers` over `rows`, the steps along the vertical axis `step` pixels apart.
    fn new(
        table: &Table,
        rows: Vec<serde_json::Value>,
        (steps, step): (usize, usize),
        layers: serde_json::Value,
    ) -> Chart {
        let mut config = theme();
        if let Some(field) = legend_field(&layers) {
            config["legend"]["columns"] = legend_columns(&rows, field).into();
        }
        let spec = json!({
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": table.title,
            "width": "container",
            // Not a step: with one, Vega-Lite cannot fit the width.
            "height": steps * step,
            "autosize": {"type": "fit-x", "contains": "padding", "resize": true},
            "data": {"values": rows},
            "layer": layers,
            "config": config,
        });
        Chart { name: table.name.clone(), title: table.title.clone(), caption: String::new(), spec }
    }
}

/// Horizontal bars: one group a row of `table`, named by the column `category`, one bar in it for
/// each of the columns `values`.
pub fn bars(
    table: &Table,
    category: &str,
    values: &[&str],
    arrangement: Arrangement,
) -> Result<Chart, Error> {
    let rows = long(table, category, values)?;
    Ok(bar_chart(table, rows, ["row", "column"], arrangement, &title(table, values)?))
}

/// Horizontal bars of 100 %: one a column of `values`, divided among the rows of `table`.
pub fn shares(table: &Table, category: &str, values: &[&str]) -> Result<Chart, Error> {
    let rows = long(table, category, values)?;
    Ok(bar_chart(table, rows, ["column", "row"], Arrangement::Percent, "share"))
}

fn bar_chart(
    table: &Table,
    rows: Vec<serde_json::Value>,
    [bar, color]: [&str; 2],
    arrangement: Arrangement,
    title: &str,
) -> Chart {
    let (stack, format) = match arrangement {
        Arrangement::Grouped => (json!(null), ",~f"),
        Arrangement::Stacked => (json!("zero"), ",~f"),
        Arrangement::Percent => (json!("normalize"), ".0%"),
    };
    let several = distinct(&rows, color) > 1;
    let mut encoding = json!({
        "y": {"field": bar, "type": "nominal", "sort": null, "title": null},
        "x": {"field": "value", "type": "quantitative", "stack": stack, "title": title, "axis": {"format": format}},
        "order": {"field": "order", "type": "quantitative"},
        "tooltip": tooltip(),
    });
    if several {
        encoding["color"] = json!({"field": color, "type": "nominal", "sort": null, "title": null});
        if arrangement == Arrangement::Grouped {
            encoding["yOffset"] = json!({"field": color, "sort": null});
        }
    }
    let step =
        if arrangement == Arrangement::Grouped && several { 14 * distinct(&rows, color) + 6 } else { 28 };
    let size = (distinct(&rows, bar), step);
    Chart::new(table, rows, size, json!([{"mark": "bar", "encoding": encoding}]))
}

/// Bars to the left for what shrank and to the right for what grew.
pub fn differences(table: &Table, category: &str, value: &str) -> Result<Chart, Error> {
    let rows = long(table, category, &[value])?;
    let layers = json!([
        {
            "mark": "bar",
            "encoding": {
                "y": {"field": "row", "type": "nominal", "sort": null, "title": null},
                "x": {"field": "value", "type": "quantitative", "title": title(table, &[value])?,
                      "axis": {"labelExpr": "(datum.value > 0 ? '+' : '') + format(datum.value, ',~f')"}},
                "color": {"condition": {"test": "datum.value < 0", "value": COLORS[0]}, "value": COLORS[5]},
                "tooltip": tooltip(),
            },
        },
        {"mark": {"type": "rule", "color": "currentColor"}, "encoding": {"x": {"datum": 0}}},
    ]);
    let size = (distinct(&rows, "row"), 22);
    Ok(Chart::new(table, rows, size, layers))
}

/// One dot a row of `table`, in a strip for each different text in the column `group`: how the
/// numbers in the column `value` are distributed. A bar marks each strip's median.
pub fn strip(table: &Table, group: &str, value: &str) -> Result<Chart, Error> {
    /// Multiples of the golden ratio spread dots evenly, however many, and the same every time.
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let mut rows = long(table, group, &[value])?;
    for (number, row) in rows.iter_mut().enumerate() {
        row["spread"] = json!((number as f64 * GOLDEN).fract());
    }
    let y = json!({"field": "row", "type": "nominal", "sort": null, "title": null});
    let scale = json!({"zero": false, "nice": true, "padding": 12});
    let layers = json!([
        {
            "mark": {"type": "circle", "size": 28, "opacity": 0.8},
            "encoding": {
                "y": y,
                "yOffset": {"field": "spread", "type": "quantitative", "scale": {"domain": [-0.25, 1.25]}},
                "x": {"field": "value", "type": "quantitative", "title": title(table, &[value])?,
                      "scale": scale, "axis": {"format": ",~f"}},
                "color": {"field": "row", "type": "nominal", "sort": null, "legend": null},
                "tooltip": tooltip(),
            },
        },
        {
            "mark": {"type": "tick", "color": "currentColor", "thickness": 2, "size": 48},
            "encoding": {
                "y": y,
                "x": {"aggregate": "median", "field": "value", "type": "quantitative"},
                "tooltip": [
                    {"field": "row", "type": "nominal", "title": " "},
                    {"aggregate": "median", "field": "value", "type": "quantitative", "format": ",~f",
                     "title": "median"},
                ],
            },
        },
    ]);
    let size = (distinct(&rows, "row"), 64);
    Ok(Chart::new(table, rows, size, layers))
}

/// Columns from 0 to 100 %: a group for each row of a table, named by its first column, with a bar for each of the
/// others. Tables with the same rows make charts with the same axes, small, to stand below each other; the first
/// has the legend.
pub fn histograms(tables: &[Table]) -> Result<Vec<Chart>, Error> {
    let chart = |(number, table): (usize, &Table)| {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let rows = long(table, names[0], &names[1..])?;
        let mut color = json!({"field": "column", "type": "nominal", "sort": null, "title": null});
        if number > 0 {
            color["legend"] = json!(null);
        }
        let encoding = json!({
            "x": {"field": "row", "type": "nominal", "sort": null, "title": null,
                  "axis": {"labelAngle": 0, "labelOverlap": "greedy"}},
            "xOffset": {"field": "column", "sort": null},
            "y": {"field": "value", "type": "quantitative", "title": null, "scale": {"domain": [0, 100]},
                  "axis": {"values": [0, 50, 100], "labelExpr": "datum.label + ' %'"}},
            "color": color,
            "tooltip": tooltip(),
        });
        Ok(Chart::new(table, rows, (1, 76), json!([{"mark": "bar", "encoding": encoding}])))
    };
    tables.iter().enumerate().map(chart).collect()
}

/// A line for each of the columns `values`, over the bytes in the column `size` on a logarithmic axis. `title`
/// is the title of the axis.
pub fn sizes(table: &Table, size: &str, values: &[&str], title: &str) -> Result<Chart, Error> {
    const HEIGHT: usize = 280;
    let mut rows = long(table, size, values)?;
    let known = numbers(table, size)?;
    for row in &mut rows {
        row["bytes"] = row["row"].as_str().and_then(|text| known.get(text).cloned()).into();
    }
    let label = "datum.value < 1048576 ? datum.value / 1024 + 'K' : datum.value / 1048576 + 'M'";
    let encoding = json!({
        "x": {"field": "bytes", "type": "quantitative", "title": size, "scale": {"type": "log", "base": 2},
              "axis": {"labelExpr": label}},
        "y": {"field": "value", "type": "quantitative", "title": title, "axis": {"format": ",~f"}},
        "color": {"field": "column", "type": "nominal", "sort": null, "title": null},
        "tooltip": tooltip(),
    });
    Ok(Chart::new(
        table,
        rows,
        (1, HEIGHT),
        json!([{"mark": {"type": "line", "point": true}, "encoding": encoding}]),
    ))
}

/// A line for each of the columns `values`, over the column `category`: over its numbers, or, if it is text, over the rows of
/// `table` in their order. `title` is the title of the axis.
pub fn lines(table: &Table, category: &str, values: &[&str], title: &str) -> Result<Chart, Error> {
    const HEIGHT: usize = 280;
    let mut rows = long(table, category, values)?;
    let numbers = numbers(table, category)?;
    for row in &mut rows {
        row["number"] = row["row"].as_str().and_then(|text| numbers.get(text).cloned()).into();
    }
    let mut x = json!({"field": "row", "type": "nominal", "sort": null, "title": category, "axis": {"labelAngle": 0}});
    if table.columns[column(table, category)?].kind != Kind::Text {
        x = json!({"field": "number", "type": "quantitative", "title": category, "axis": {"format": ",~f"}});
    }
    let encoding = json!({
        "x": x,
        "y": {"field": "value", "type": "quantitative", "title": title, "axis": {"format": ",~f"}},
        "color": {"field": "column", "type": "nominal", "sort": null, "title": null},
        "tooltip": tooltip(),
    });
    let layers = json!([{"mark": {"type": "line", "point": true}, "encoding": encoding}]);
    Ok(Chart::new(table, rows, (1, HEIGHT), layers))
}

/// The cells of some columns, one object each, without totals and missing values.
fn long(table: &Table, category: &str, values: &[&str]) -> Result<Vec<serde_json::Value>, Error> {
    let category = column(table, category)?;
    let values = values.iter().map(|value| column(table, value)).collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    let body = table.rows.len().saturating_sub(table.total.into());
    for row in &table.rows[..body] {
        for &value in &values {
            let (Value::Integer(_) | Value::Real(_)) = row[value] else { continue };
            cells.push(json!({
                "row": cells::text(&row[category], table.columns[category].kind),
                "column": text::printable(&table.columns[value].name),
                "value": JsonCell(&row[value]),
                "shown": cells::text(&row[value], table.columns[value].kind),
                "order": cells.len(),
            }));
        }
    }
    Ok(cells)
}

/// The values of a column by their texts.
fn numbers(table: &Table, name: &str) -> Result<HashMap<String, serde_json::Value>, Error> {
    let index = column(table, name)?;
    let kind = table.columns[index].kind;
    let cell = |row: &Vec<Value>| (cells::text(&row[index], kind), json!(JsonCell(&row[index])));
    Ok(table.rows.iter().map(cell).collect())
}

/// The field whose values the legend of a chart names, if it has one.
fn legend_field(layers: &serde_json::Value) -> Option<&str> {
    let mut colors = layers.as_array()?.iter().map(|layer| &layer["encoding"]["color"]);
    // A legend of null is none, and one that is not mentioned is there.
    let with_legend = colors.find(|color| color["field"].is_string() && color.get("legend").is_none())?;
    with_legend["field"].as_str()
}

/// How many names fit into a line above a chart of full width; the page's script scales
/// this down for narrow ones.
fn legend_columns(rows: &[serde_json::Value], field: &str) -> usize {
    const CHART: usize = 900;
    const LETTER: usize = 7;
    const SYMBOL: usize = 40;
    let longest = rows.iter().filter_map(|row| row[field].as_str()).map(str::len).max().unwrap_or(0);
    (CHART / (longest * LETTER + SYMBOL)).max(1)
}

/// How many different values a field has.
fn distinct(rows: &[serde_json::Value], field: &str) -> usize {
    rows.iter().filter_map(|row| row[field].as_str()).collect::<HashSet<_>>().len()
}

fn column(table: &Table, name: &str) -> Result<usize, Error> {
    let found = table.columns.iter().position(|column| column.name == name);
    found.ok_or_else(|| Error::NoColumn { table: table.name.clone(), column: name.into() })
}

/// The title of the axis: the column's heading, or the common unit of several columns.
fn title(table: &Table, values: &[&str]) -> Result<String, Error> {
    match values {
        [value] => Ok(cells::heading(&table.columns[column(table, value)?])),
        [first, ..] => Ok(match table.columns[column(table, first)?].kind {
            Kind::Percent(_) | Kind::Change(_) => "percent".into(),
            _ => String::new(),
        }),
        [] => Ok(String::new()),
    }
}

fn tooltip() -> serde_json::Value {
    json!([
        {"field": "row", "type": "nominal", "title": " "},
        {"field": "shown", "type": "nominal", "title": "value"},
        {"field": "column", "type": "nominal", "title": "of"},
    ])
}

/// M. Okabe and K. Ito, "Color Universal Design", 2008, the blue lightened for dark pages; then
/// four in the manner of P. Tol's muted scheme for charts with more series than eight.
const COLORS: [&str; 12] = [
    "#1a80c4", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#aa4499",
    "#44aa99", "#ddcc77", "#6655aa",
];

/// How every chart looks.
fn theme() -> serde_json::Value {
    let words = json!({
        "labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 240,
    });
    let with = |more: serde_json::Value| {
        let mut all = words.clone();
        all.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        all
    };
    json!({
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "range": {"category": COLORS},
        "mark": {"color": COLORS[0]},
        "view": {"stroke": null},
        "axis": with(json!({"domain": false, "ticks": false, "labelPadding": 6, "gridColor": "currentColor",
            "gridOpacity": 0.15, "tickCount": {"expr": "max(3, width / 110)"}})),
        "axisX": {"titlePadding": 10},
        "legend": with(json!({"orient": "top", "symbolType": "square", "symbolSize": 90, "columnPadding": 16})),
    })
}
