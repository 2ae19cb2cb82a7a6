//! Where tables go: standard output, a file, or a directory with one file a table.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use analysis::table::Table;

use crate::names::{slug, unused};
use crate::{Error, Format, json, render, terminal};

/// Writes tables to standard output, or to `output`.
///
/// A single table goes to the file `output`, or into it if it is a directory. Several tables go
/// to one file as text, and else to a directory, made if missing, one file each. On standard
/// output several tables are printed one after the other as text, or are one array of JSON.
pub fn write_all(tables: &[Table], format: Format, output: Option<&Path>) -> Result<(), Error> {
    match output {
        None => to_stdout(tables, format),
        Some(path) if path.is_dir() || (tables.len() != 1 && format != Format::Table) => {
            to_directory(tables, format, path)
        }
        Some(path) => write_file(path, |out| to_stream(tables, format, terminal::Style::default(), out)),
    }
}

fn to_stdout(tables: &[Table], format: Format) -> Result<(), Error> {
    if format == Format::Parquet && io::stdout().is_terminal() {
        return Err(Error::BinaryToTerminal);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    to_stream(tables, format, terminal::Style::of_stdout(), &mut out)?;
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
        (_, [table]) => render(table, format, out),
        (Format::Json, _) => Ok(json::render(&tables.iter().map(json::value).collect(), out)?),
        (Format::Csv | Format::Parquet, _) => Err(Error::NeedsDirectory(tables.len(), format)),
    }
}

fn to_directory(tables: &[Table], format: Format, directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(|source| Error::File { path: directory.into(), source })?;
    let extension = if format == Format::Table { "txt".into() } else { format.to_string() };
    let mut written = HashSet::new();
    for table in tables {
        let name = unused(slug(&table.name), '-', |name| written.contains(name));
        let path = directory.join(format!("{name}.{extension}"));
        write_file(&path, |out| render(table, format, out))?;
        written.insert(name);
    }
    Ok(())
}

/// Writes a file as a whole or not at all: what stood there before stays until `write` has
/// succeeded. Devices and pipes are written directly.
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.into(), source };
    let fill = |file: &File| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        Ok(out.flush()?)
    };
    let named = |error| match error {
        Error::Stream(source) => failed(source),
        other => other,
    };
    // A link is followed, so that the file it names is replaced and not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    if fs::metadata(&target).is_ok_and(|there| !there.is_file()) {
        let file = File::options().write(true).open(&target).map_err(failed)?;
        return fill(&file).map_err(named);
    }
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pathlength-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask takes away what it should, as for any new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let temporary = builder.tempfile_in(directory).map_err(failed)?;
    fill(temporary.as_file()).map_err(named)?;
    temporary.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}
