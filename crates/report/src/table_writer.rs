//! Writes tables that are too long for memory, in parts.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use arrow_schema::Schema;
use table::Table;

use crate::{Error, Format, cells, comma, json, markdown, parquet, terminal};

/// Writes a table in parts, which have the same columns and no total.
pub struct TableWriter<W: Write + Send> {
    table: Table,
    state: State<W>,
}

enum State<W: Write + Send> {
    /// The widths of columns are those that the first part needs.
    Text {
        out: W,
        widths: Vec<usize>,
    },
    Comma(W),
    Markdown(W),
    /// With the text that follows the rows.
    Json {
        out: W,
        is_first: bool,
        rest: String,
    },
    Parquet {
        schema: Arc<Schema>,
        writer: Box<ArrowWriter<W>>,
    },
}

/// The room between columns of text.
const GAP: usize = 2;

impl<W: Write + Send> TableWriter<W> {
    /// Begins with the first part.
    pub fn begin(first: &Table, format: Format, mut out: W) -> Result<TableWriter<W>, Error> {
        debug_assert!(!first.total);
        let table = Table { rows: Vec::new(), ..first.clone() };
        let state = match format {
            Format::Table => {
                let widths = terminal::widths(first);
                let headings = first.columns.iter().map(cells::heading);
                write_line(&mut out, first, &widths, headings)?;
                State::Text { out, widths }
            }
            Format::Csv => {
                comma::render(&table, &mut out)?;
                State::Comma(out)
            }
            Format::Markdown => {
                let shown = Table { notes: Vec::new(), ..table.clone() };
                markdown::render(&shown, &mut out)?;
                State::Markdown(out)
            }
            Format::Json => {
                // Everything up to the end of the rows.
                let mut document = Vec::new();
                json::render_line(&json::document(&table), &mut document)?;
                let document = String::from_utf8(document).map_err(io::Error::other)?;
                let (before, rest) = document.rsplit_once(json::NO_ROWS).expect("a table has rows");
                write!(out, "{before}\"rows\":[")?;
                State::Json { out, is_first: true, rest: rest.into() }
            }
            Format::Parquet => {
                let schema = parquet::schema(&table)?;
                let writer = Box::new(parquet::writer(&table, schema.clone(), out)?);
                State::Parquet { schema, writer }
            }
        };
        let mut writer = TableWriter { table, state };
        writer.write(first)?;
        Ok(writer)
    }

    /// Writes more rows.
    pub fn write(&mut self, part: &Table) -> Result<(), Error> {
        match &mut self.state {
            State::Text { out, widths } => {
                for row in &part.rows {
                    let texts = row.iter().zip(&part.columns);
                    write_line(
                        out,
                        part,
                        widths,
                        texts.map(|(value, column)| cells::text(value, column.kind)),
                    )?;
                }
            }
            State::Comma(out) => comma::rows(part, out)?,
            State::Markdown(out) => markdown::rows(part, out)?,
            State::Json { out, is_first, .. } => {
                for row in json::rows(part) {
                    let comma = if std::mem::take(is_first) { "" } else { "," };
                    writeln!(out, "{comma}")?;
                    json::render_line(&row, out)?;
                }
            }
            State::Parquet { schema, writer } => {
                let batch = parquet::batch(part, schema)?;
                writer.write(&batch).map_err(|error| parquet::failed(&self.table, error))?;
            }
        }
        Ok(())
    }

    /// Ends the table.
    pub fn finish(self) -> Result<(), Error> {
        match self.state {
            State::Text { mut out, .. } | State::Comma(mut out) | State::Markdown(mut out) => out.flush()?,
            State::Json { mut out, rest, .. } => {
                writeln!(out, "\n]{rest}")?;
                out.flush()?;
            }
            State::Parquet { writer, .. } => {
                writer.close().map_err(|error| parquet::failed(&self.table, error))?;
            }
        }
        Ok(())
    }
}

fn write_line(
    out: &mut impl Write,
    table: &Table,
    widths: &[usize],
    texts: impl Iterator<Item = String>,
) -> Result<(), Error> {
    let mut line = String::new();
    for ((text, column), &width) in texts.zip(&table.columns).zip(widths) {
        if !line.is_empty() {
            line.extend(std::iter::repeat_n(' ', GAP));
        }
        match cells::is_number(column.kind) {
            true => line.push_str(&format!("{text:>width$}")),
            false => line.push_str(&format!("{text:width$}")),
        }
    }
    Ok(writeln!(out, "{}", line.trim_end())?)
}
