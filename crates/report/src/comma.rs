//! Comma-separated values (RFC 4180, with a line feed at the end of a line), safe to open as a spreadsheet.

use std::borrow::Cow;
use std::io::{self, Write};

use table::{Kind, Table, Value};

/// The column that tells the total from the rows that it is the total of, so that sums do not count all twice.
pub(crate) const IS_TOTAL: &str = "is_total";

/// Writes the table: names, then rows.
pub(crate) fn render(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(&mut *out);
    let total = table.total.then_some(IS_TOTAL);
    let names = table.columns.iter().map(|column| column.name.as_str()).chain(total);
    writer.write_record(names).map_err(cause)?;
    writer.flush()?;
    drop(writer);
    rows(table, out)
}

/// Writes the rows only.
pub(crate) fn rows(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for (index, row) in table.rows.iter().enumerate() {
        let total = table.total.then(|| if index + 1 == table.rows.len() { "true" } else { "false" });
        let cells = row.iter().zip(&table.columns).map(|(value, column)| match value {
            Value::Text(text) => text::spreadsheet_cell(text),
            Value::Integer(address) if column.kind == Kind::Address => format!("{address:#x}").into(),
            Value::Integer(number) => number.to_string().into(),
            Value::Real(number) if number.is_finite() => number.to_string().into(),
            Value::Real(_) | Value::Missing => Cow::Borrowed(""),
        });
        writer.write_record(cells.map(Cow::into_owned).chain(total.map(String::from))).map_err(cause)?;
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
