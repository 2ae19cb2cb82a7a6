//! Output files and folders: they have no name before they are complete, never replace a file that the command reads, and are
//! removed if the command is killed.

use std::io;
use std::path::{Path, PathBuf};

mod file;
mod folder;
mod scratch;
mod unnamed;

pub use file::{PendingName, check_file, check_folder, check_not_input, create, protect};
pub use folder::OutputFolder;
pub use scratch::ScratchFolder;

/// Why an output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or directory that could not be written.
    #[error("cannot write {path}: {error}; check that its directory exists, is writable and has room",
        path = path.display())]
    File {
        /// Where it should have been.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file that the command reads.
    #[error("cannot write {path}: this command reads it{}; name another file with -o", other_name(path, input),
        path = path.display())]
    Input {
        /// The name of the output.
        path: PathBuf,
        /// The file that is read, which is the same.
        input: PathBuf,
    },
}

impl OutputError {
    /// The system's error at a path.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> OutputError {
        move |error| OutputError::File { path: path.into(), error }
    }
}

impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> io::Error {
        io::Error::other(error)
    }
}

fn other_name(path: &Path, input: &Path) -> String {
    if path == input { String::new() } else { format!(" as {}", input.display()) }
}
