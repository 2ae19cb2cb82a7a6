//! JSON: one object a table, with all that the table says.

use std::io::{self, Write};

use analysis::table::{Column, Kind, Table, Value};
use serde::{Serialize, Serializer};

/// A table as an object; without a copy of its rows, which may be many.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    name: &'a str,
    title: &'a str,
    columns: Vec<Heading<'a>>,
    rows: Rows<'a>,
    total: bool,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Heading<'a> {
    name: &'a str,
    kind: &'static str,
}

struct Rows<'a>(&'a Table);

/// A row as an object; its fields are in the order of the columns.
pub(crate) struct Row<'a>(&'a [Column], &'a [Value]);

/// A value; missing and non-finite ones are null.
pub(crate) struct Cell<'a>(pub &'a Value);

/// The table as an object.
pub(crate) fn document(table: &Table) -> Document<'_> {
    let Table { name, title, columns, total, notes, .. } = table;
    let columns = columns.iter().map(|column| Heading { name: &column.name, kind: kind(column) }).collect();
    Document { name, title, columns, rows: Rows(table), total: *total, notes }
}

/// How a table without rows has them, written without spaces.
pub(crate) const NO_ROWS: &str = "\"rows\":[]";

/// The rows as objects.
pub(crate) fn rows(table: &Table) -> impl Iterator<Item = Row<'_>> {
    table.rows.iter().map(|row| Row(&table.columns, row))
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows(self.0))
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.iter().map(|column| &column.name);
        serializer.collect_map(names.zip(self.1.iter().map(Cell)))
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Text(text) => serializer.serialize_str(text),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Real(number) => serializer.serialize_f64(*number),
            Value::Missing => serializer.serialize_unit(),
        }
    }
}

fn kind(column: &Column) -> &'static str {
    match column.kind {
        Kind::Text | Kind::Code => "text",
        Kind::Count => "count",
        Kind::Delta => "delta",
        Kind::Real(_) => "real",
        Kind::Percent(_) => "percent",
        Kind::Change(_) => "change",
        Kind::Address => "address",
    }
}

/// Writes an object, or an array of them, indented.
pub(crate) fn render(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
