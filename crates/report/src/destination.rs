//! Where tables go: standard output, a file, or a directory with one file a table.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use output_files::{OutputError, check_file, check_folder, check_not_input};
use table::Table;

use crate::folder::TableFolder;
use crate::stream::{StandardStream, open_stream};
use crate::{Error, FileForm, Format, Page, json, render, terminal};

/// Where tables go, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Destination<'a> {
    /// The file or directory, instead of a standard stream.
    pub path: Option<&'a Path>,
    /// The standard stream.
    pub stream: StandardStream,
    /// On a terminal, rows may be longer than its lines.
    pub is_wide: bool,
    /// On a terminal, a pager shows the tables.
    pub is_paged: bool,
}

impl<'a> From<Option<&'a Path>> for Destination<'a> {
    /// The file, or standard output without a pager.
    fn from(path: Option<&'a Path>) -> Destination<'a> {
        Destination { path, ..Destination::default() }
    }
}

/// Writes tables to standard output, or to `output`, as [`write_to`] does.
pub fn write_all(tables: &[Table], format: Format, output: Option<&Path>) -> Result<(), Error> {
    write_to(tables, format, output.into())
}

/// Writes tables to a standard stream, or to a file or directory.
///
/// A single table goes to the file `output`, or into it if it is a directory. Several tables go
/// to one file as text, as a page (`NAME.html`) or as an array (`NAME.json`), and else to a directory, made if missing, one file
/// each. On a standard stream several tables are printed one after the other as text, or are one array of JSON. A file
/// whose name asks for another form is refused ([`FileForm`]).
pub fn write_to(tables: &[Table], format: Format, destination: Destination) -> Result<(), Error> {
    match destination_of(tables.len() != 1, format, destination.path)? {
        TableDestination::Stream => to_standard_stream(tables, format, destination),
        TableDestination::Directory(path) => to_directory(tables, format, path),
        TableDestination::File(path) if is_page(path) => {
            write_file(path, |out| Page::of_tables(tables).write(out))
        }
        TableDestination::File(path) => {
            write_file(path, |out| to_stream(tables, format, terminal::Style::default(), out))
        }
    }
}

/// Checks whether [`write_all`] could write one table, or several, before the work that computes them. Leaves no
/// files.
pub fn check(several: bool, format: Format, output: Option<&Path>) -> Result<(), Error> {
    output.map_or(Ok(()), check_not_input)?;
    match destination_of(several, format, output)? {
        TableDestination::Stream => {}
        TableDestination::File(path) => check_file(path)?,
        TableDestination::Directory(path) => check_folder(path)?,
    }
    Ok(())
}

/// Where tables go.
enum TableDestination<'a> {
    Stream,
    File(&'a Path),
    Directory(&'a Path),
}

/// Whether the name of a file asks for a page of HTML.
fn is_page(path: &Path) -> bool {
    FileForm::of(path) == Some(FileForm::Page)
}

/// A file or a directory, if its name asks for no other form.
fn named_destination(several: bool, format: Format, path: &Path) -> Result<TableDestination<'_>, Error> {
    match FileForm::of(path) {
        Some(FileForm::Page) if format == Format::Table => Ok(TableDestination::File(path)),
        Some(FileForm::Tables(named)) if named == format => match several && !format.holds_several() {
            true => Err(Error::NeedsOneTable(path.into())),
            false => Ok(TableDestination::File(path)),
        },
        Some(FileForm::Tables(_) | FileForm::Page) => Err(Error::OtherForm { path: path.into(), format }),
        Some(_) => Err(Error::NoSuchForm(path.into())),
        None if path.is_dir() || (several && !format.is_text()) => Ok(TableDestination::Directory(path)),
        None => Ok(TableDestination::File(path)),
    }
}

fn destination_of(
    several: bool,
    format: Format,
    output: Option<&Path>,
) -> Result<TableDestination<'_>, Error> {
    match output {
        Some(path) => named_destination(several, format, path),
        None if several && matches!(format, Format::Csv | Format::Parquet) => {
            Err(Error::NeedsDirectory(format))
        }
        None if format == Format::Parquet && StandardStream::Output.is_terminal() => {
            Err(Error::BinaryToTerminal("Parquet"))
        }
        None => Ok(TableDestination::Stream),
    }
}

fn to_standard_stream(tables: &[Table], format: Format, destination: Destination) -> Result<(), Error> {
    let mut style = terminal::Style::of(destination.stream);
    if destination.is_wide {
        style.width = None;
    }
    let mut out = open_stream(destination.stream, destination.is_paged)?;
    to_stream(tables, format, style, &mut out)?;
    Ok(out.flush()?)
}

fn to_stream(
    tables: &[Table],
    format: Format,
    style: terminal::Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match (format, tables) {
        (Format::Table, _) => {
            for (index, table) in tables.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                terminal::render(table, style, out)?;
            }
            Ok(())
        }
        (Format::Markdown, _) => {
            for (index, table) in tables.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                render(table, format, out)?;
            }
            Ok(())
        }
        (_, [table]) => render(table, format, out),
        (Format::Json, _) => {
            let documents: Vec<_> = tables.iter().map(json::document).collect();
            Ok(json::render(&documents, out)?)
        }
        (Format::Csv | Format::Parquet, _) => Err(Error::NeedsDirectory(format)),
    }
}

/// Writes one table of this name, as [`write_to`] does, by a function that writes it: a long one's
/// [`Pieces`](crate::Pieces).
pub fn write_long(
    name: &str,
    format: Format,
    destination: Destination,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
) -> Result<(), Error> {
    match destination_of(false, format, destination.path)? {
        TableDestination::File(path) if is_page(path) => Err(Error::TooLongForPage),
        TableDestination::File(path) => write_file(path, write),
        TableDestination::Directory(path) => {
            let mut folder = TableFolder::new(path)?;
            folder.write_table(name, format, write)?;
            folder.commit()
        }
        TableDestination::Stream => {
            let mut out = open_stream(destination.stream, destination.is_paged)?;
            write(&mut out)?;
            Ok(out.flush()?)
        }
    }
}

/// The file name extension of a format.
pub(crate) fn extension(format: Format) -> String {
    match format {
        Format::Table => "txt".into(),
        Format::Markdown => "md".into(),
        Format::Csv | Format::Json | Format::Parquet => format.to_string(),
    }
}

fn to_directory(tables: &[Table], format: Format, directory: &Path) -> Result<(), Error> {
    let mut folder = TableFolder::new(directory)?;
    folder.write_tables(tables, format)?;
    folder.commit()
}

/// Writes a file as a whole or not at all: what stood there before stays until `write` has
/// succeeded. Devices, pipes and `/dev/stdout` are written directly: see [`create`](output_files::create).
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
) -> Result<(), Error> {
    let (file, name) = output_files::create(path)?;
    write_with(path, &file, write)?;
    Ok(name.commit()?)
}

/// Writes an open file by a function. `path` is for errors.
pub(crate) fn write_with(
    path: &Path,
    file: &File,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut out = BufWriter::new(file);
    let written = write(&mut out).and_then(|()| Ok(out.flush()?));
    written.map_err(|error| match error {
        Error::Stream(error) => OutputError::at(path)(error).into(),
        other => other,
    })
}
