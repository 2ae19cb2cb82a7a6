//! Folders of outputs, which appear complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::OutputError;
use crate::file::{self, PendingName, parent, target};
use crate::scratch::ScratchFolder;
use crate::unnamed::PREFIX;

/// A folder to which files are added. Until [`commit`](OutputFolder::commit) a new folder has a temporary name beside its final
/// one, and new files in an existing folder have no names.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    /// The folder that gets this name, which is absolute, if there was none.
    made: Option<(ScratchFolder, PathBuf)>,
    files: Vec<(String, PendingName)>,
}

impl OutputFolder {
    /// Begins a folder, or a change of one that is there.
    pub fn new(path: &Path) -> Result<OutputFolder, OutputError> {
        let made = make_unless_there(path).map_err(OutputError::at(path))?;
        Ok(OutputFolder { path: path.into(), made, files: Vec::new() })
    }

    /// The path that the folder gets.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a file of this name was created.
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(created, _)| created == name)
    }

    /// Creates a file with this name, as [`create`](crate::create) does.
    pub fn create(&mut self, name: &str) -> Result<File, OutputError> {
        let folder = self.made.as_ref().map_or(&*self.path, |(made, _)| made.path());
        let (file, pending) = file::create(&folder.join(name))?;
        self.files.push((name.into(), pending));
        Ok(file)
    }

    /// Gives the folder and its files their names.
    pub fn commit(self) -> Result<(), OutputError> {
        self.files.iter().try_for_each(|(_, name)| name.commit())?;
        let Some((made, name)) = self.made else { return Ok(()) };
        fs::rename(made.path(), name).map_err(OutputError::at(&self.path))?;
        let _moved = made.moved();
        Ok(())
    }
}

/// Makes a folder with a temporary name beside the final one, unless there is one of that name.
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
