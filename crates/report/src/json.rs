//! JSON: one object a table, with all that the table says.

use std::io::{self, Write};

use analysis::table::{Column, Kind, Table, Value};
use serde_json::{Map, json};

/// The table as an object.
pub(crate) fn value(table: &Table) -> serde_json::Value {
    let columns: Vec<_> =
        table.columns.iter().map(|column| json!({"name": column.name, "kind": kind(column)})).collect();
    json!({
        "name": table.name,
        "title": table.title,
        "columns": columns,
        "rows": rows(table).collect::<Vec<_>>(),
        "total": table.total,
        "notes": table.notes,
    })
}

/// How a table without rows has them, written without spaces.
pub(crate) const NO_ROWS: &str = "\"rows\":[]";

/// The rows as objects; their fields are in the order of the columns.
pub(crate) fn rows(table: &Table) -> impl Iterator<Item = serde_json::Value> {
    let row = |row: &Vec<Value>| -> Map<String, serde_json::Value> {
        table.columns.iter().map(|column| column.name.clone()).zip(row.iter().map(cell)).collect()
    };
    table.rows.iter().map(move |values| row(values).into())
}

/// A value as JSON; what is missing or not finite is null.
pub(crate) fn cell(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Real(number) => json!(number),
        Value::Missing => serde_json::Value::Null,
    }
}

fn kind(column: &Column) -> &'static str {
    match column.kind {
        Kind::Text => "text",
        Kind::Count => "count",
        Kind::Delta => "delta",
        Kind::Real(_) => "real",
        Kind::Percent(_) => "percent",
        Kind::Change(_) => "change",
        Kind::Address => "address",
    }
}

/// Writes an object, or an array of them, indented.
pub(crate) fn render(value: &serde_json::Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
