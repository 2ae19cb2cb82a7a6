//! Writes results for people and for other programs: [`Table`]s to a terminal, CSV, JSON and
//! Parquet, and, with [`Chart`]s, a [`Page`] of HTML that opens with no network.
//!
//! ```
//! use table::{Kind, Table};
//! use pathlength_report::{Format, render};
//! let mut table = Table::new("length", "Path length", &[("build", Kind::Text), ("instructions", Kind::Count)]);
//! table.row(vec!["original".into(), 58_800_u64.into()]);
//! let mut csv = Vec::new();
//! render(&table, Format::Csv, &mut csv)?;
//! assert_eq!(csv, b"build,instructions\noriginal,58800\n");
//! # Ok::<(), pathlength_report::Error>(())
//! ```

use std::io::{self, Write};
use std::path::PathBuf;
use std::{fmt, str::FromStr};

use output_files::OutputError;
use table::Table;

mod arrow;
mod cells;
mod chart;
mod comma;
mod destination;
mod flame;
mod folder;
mod form;
mod instructions;
mod json;
mod markdown;
mod names;
mod page;
mod parquet;
mod picture;
mod stream;
mod table_writer;
pub mod terminal;

pub use arrow::{PANDAS, from_arrow, pandas_metadata, to_arrow};
pub use chart::{Arrangement, Chart, bars, differences, histograms, lines, shares, sizes, strip};
pub use destination::{Destination, check, write_all, write_file, write_long, write_to};
pub use flame::FlameGraph;
pub use folder::TableFolder;
pub use form::FileForm;
pub use instructions::InstructionTable;
pub use page::{Page, PageBlock, PageFigure, PageSection};
pub use picture::Picture;
pub use stream::{PagedStream, StandardStream, open_stream};
pub use table_writer::TableWriter;

/// How tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for people.
    #[default]
    Table,
    /// Comma-separated values: a row of names, then full-precision numbers; addresses in
    /// hexadecimal, missing values empty.
    Csv,
    /// An object with the columns, the rows as objects, and the notes.
    Json,
    /// A Parquet file with nullable columns named in snake_case.
    Parquet,
    /// Tables of Markdown, for comments on pull requests.
    Markdown,
}

const FORMATS: [(&str, Format); 5] = [
    ("table", Format::Table),
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("parquet", Format::Parquet),
    ("markdown", Format::Markdown),
];

impl Format {
    /// Whether one file can hold several tables, one after the other.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Format::Table | Format::Markdown)
    }

    /// Whether one file whose name says the format can hold several tables.
    pub(crate) fn holds_several(self) -> bool {
        self.is_text() || self == Format::Json
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, _) = FORMATS.iter().find(|(_, format)| format == self).expect("every format is listed");
        f.write_str(name)
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format, Error> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        found.map(|&(_, format)| format).ok_or_else(|| Error::UnknownFormat(name.into()))
    }
}

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A format's name that does not exist.
    #[error("there is no format '{0}'; use table, csv, json, parquet or markdown")]
    UnknownFormat(String),
    /// Several tables that one stream cannot hold.
    #[error("several tables do not fit in one {0} stream; name a directory with -o")]
    NeedsDirectory(Format),
    /// Several tables that one file cannot hold.
    #[error("several tables do not fit in the file {}; name a directory with -o, or select one table", .0.display())]
    NeedsOneTable(PathBuf),
    /// A file whose name asks for another form than the one that is written.
    #[error("the name of the file {} decides its form: leave out --format {format}, or name another file", .path.display())]
    OtherForm {
        /// The file.
        path: PathBuf,
        /// The format that was asked for.
        format: Format,
    },
    /// A file whose name asks for a form that a command does not write.
    #[error(
        "cannot write {}: this command does not write such files with these options; name one that ends with .csv, .json, \
         .parquet, .md, .html or .txt", .0.display()
    )]
    NoSuchForm(PathBuf),
    /// A table that is too long for a page.
    #[error("this table can be too long for a page: name a file that does not end with .html")]
    TooLongForPage,
    /// Binary output that would spoil a terminal.
    #[error("{0} is not for a terminal; name a file with -o")]
    BinaryToTerminal(&'static str),
    /// A file that would hold nothing.
    #[error("there is nothing to write: no instruction of the trace is selected")]
    Empty,
    /// A column that a chart needs.
    #[error("the table '{table}' has no column '{column}' to chart")]
    NoColumn {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
    },
    /// A cell that is not of its column's kind, which Parquet cannot store.
    #[error("row {row} of the table '{table}' holds {value:?} in the column '{column}' of kind {kind:?}")]
    Mismatch {
        /// The table's name.
        table: String,
        /// The column's name.
        column: String,
        /// The row, from 1.
        row: usize,
        /// The value of the cell.
        value: table::Value,
        /// The kind that it should have.
        kind: table::Kind,
    },
    /// The Parquet library's complaint.
    #[error("cannot encode the table '{0}' as Parquet: {1}")]
    Parquet(String, String),
    /// A column of another program's that is neither text nor numbers.
    #[error(
        "the column '{column}' is of the type {kind}: a table has text, integers (int64) and reals (double)"
    )]
    NoKind {
        /// The column's name.
        column: String,
        /// Its type in Arrow.
        kind: String,
    },
    /// An output file that could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A stream that could not be written.
    #[error("cannot write the output")]
    Stream(#[from] io::Error),
}

impl Error {
    /// Whether the reader of standard output has gone (`pathlength … | head`): no failure, just a
    /// reason to stop.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The same as an I/O error, for callers that return one.
    pub fn into_io(self) -> io::Error {
        match self {
            Error::Stream(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// Writes one table, for a terminal without width or colour.
pub fn render(table: &Table, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    match format {
        Format::Table => terminal::render(table, terminal::Style::default(), out)?,
        Format::Csv => comma::render(table, out)?,
        Format::Json => json::render(&json::document(table), out)?,
        Format::Markdown => markdown::render(table, out)?,
        Format::Parquet => out.write_all(&parquet::encode(table)?)?,
    }
    Ok(())
}
