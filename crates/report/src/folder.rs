//! Folders of outputs, which appear complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use table::Table;

use crate::file::{self, PendingName, parent, target};
use crate::names::{slug, unused};
use crate::output::{extension, write_with};
use crate::scratch::ScratchFolder;
use crate::unnamed::PREFIX;
use crate::{Error, Format, render};

/// A folder to which files are added. Until [`commit`](OutputFolder::commit) a new folder is beside its place, and new
/// files in an existing one have no names.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// The folder that gets this name, which is absolute, if there was none.
    made: Option<(ScratchFolder, PathBuf)>,
    files: Vec<(String, PendingName)>,
}

impl OutputFolder {
    /// Begins a folder, or a change of one that is there.
    pub fn new(path: &Path) -> Result<OutputFolder, Error> {
        let made = make_unless_there(path).map_err(|error| Error::File { path: path.into(), error })?;
        Ok(OutputFolder { path: path.into(), made, files: Vec::new() })
    }

    /// Creates a file with this name, as [`create`](crate::create) does.
    pub fn create(&mut self, name: &str) -> Result<File, Error> {
        let (file, pending) = file::create(&self.place(name))?;
        self.files.push((name.into(), pending));
        Ok(file)
    }

    /// Adds a file.
    pub fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let file = self.create(name)?;
        write_with(&self.path.join(name), &file, write)
    }

    /// Adds a table of this name, by a function that writes it.
    pub fn write_table(
        &mut self,
        name: &str,
        format: Format,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let extension = extension(format);
        let file_name = |stem: &str| format!("{stem}.{extension}");
        let is_used = |stem: &str| self.files.iter().any(|(name, _)| *name == file_name(stem));
        let name = file_name(&unused(slug(name), '-', is_used));
        self.write(&name, write)
    }

    /// Adds a file for each table.
    pub fn write_tables(&mut self, tables: &[Table], format: Format) -> Result<(), Error> {
        tables
            .iter()
            .try_for_each(|table| self.write_table(&table.name, format, |out| render(table, format, out)))
    }

    /// Gives the folder and its files their names.
    pub fn commit(self) -> Result<(), Error> {
        self.files.iter().try_for_each(|(_, name)| name.commit())?;
        let Some((made, name)) = self.made else { return Ok(()) };
        fs::rename(made.path(), name).map_err(|error| Error::File { path: self.path.clone(), error })?;
        let _moved = made.moved();
        Ok(())
    }

    fn place(&self, name: &str) -> PathBuf {
        self.made.as_ref().map_or(&*self.path, |(made, _)| made.path()).join(name)
    }
}

/// Makes a folder beside its place, unless there is one.
fn make_unless_there(path: &Path) -> io::Result<Option<(ScratchFolder, PathBuf)>> {
    if path.is_dir() {
        return Ok(None);
    }
    let name = std::path::absolute(target(path))?;
    if name.exists() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    fs::create_dir_all(parent(&name))?;
    let made = ScratchFolder::new(parent(&name), PREFIX, 0o777)?;
    Ok(Some((made, name)))
}
