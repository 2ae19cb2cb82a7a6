//! JSON: one object a table, with all that the table says.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use table::{Column, Kind, Table, Value};

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
    write_with(value, PrettyFormatter::new(), &mut *out)?;
    writeln!(out)
}

/// Writes an object in one line.
pub(crate) fn render_line(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    write_with(value, CompactFormatter, out)
}

fn write_with(value: &impl Serialize, formatter: impl Formatter, out: &mut dyn Write) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Escaping(formatter)))?;
    Ok(())
}

/// Writes hidden characters as escapes: they are the same to who reads the file, and do nothing to a terminal.
struct Escaping<F>(F);

/// Methods that are those of the formatter within.
macro_rules! as_within {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $type)*) -> io::Result<()> {
            self.0.$name(out $(, $argument)*)
        })*
    };
}

impl<F: Formatter> Formatter for Escaping<F> {
    as_within! {
        begin_array();
        end_array();
        begin_array_value(is_first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(is_first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| text::is_hidden(c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_read_again() {
        let name = "\u{9b}31m\u{202e}evil\u{e0001}\n\"\u{7f}";
        for is_line in [false, true] {
            let mut out = Vec::new();
            if is_line { render_line(&name, &mut out) } else { render(&name, &mut out) }.unwrap();
            let written = String::from_utf8(out).unwrap();
            assert_eq!(written.trim_end(), r#""\u009b31m\u202eevil\udb40\udc01\n\"\u007f""#);
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), name);
        }
    }
}
