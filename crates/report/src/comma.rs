//! Comma-separated values (RFC 4180, with a line feed at the end of a line).

use std::io::{self, Write};

use analysis::table::{Kind, Table, Value};

/// Writes the table: names, then rows.
pub(crate) fn render(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(&mut *out);
    writer.write_record(table.columns.iter().map(|column| &column.name)).map_err(cause)?;
    writer.flush()?;
    drop(writer);
    rows(table, out)
}

/// Writes the rows only.
pub(crate) fn rows(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns).map(|(value, column)| match value {
            Value::Text(text) => text.clone(),
            Value::Integer(address) if column.kind == Kind::Address => format!("{address:#x}"),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) if number.is_finite() => number.to_string(),
            Value::Real(_) | Value::Missing => String::new(),
        });
        writer.write_record(cells).map_err(cause)?;
    }
    writer.flush()
}

/// The library's own conversion would hide the system's error, a closed pipe for one.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
