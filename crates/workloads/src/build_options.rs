//! The options of a build, its messages, and its errors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::interrupt::InterruptGuard;
use output_files::ScratchFolder;
use session::scratch::scratch_folder;

/// The folders of a build.
#[derive(Clone, Debug)]
pub struct BuildFolders {
    /// The folder that keeps builds, `build` by convention.
    pub folder: PathBuf,
    /// Where sources that are not part of this crate are, if not in Cargo's registry.
    pub sources: Option<PathBuf>,
}

/// The progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildProgress {
    /// Sources are being fetched.
    Downloading {
        /// The package.
        package: &'static str,
    },
    /// A step of a build has begun.
    Step {
        /// The build.
        build: &'static str,
        /// The action, a verb.
        doing: &'static str,
        /// Its object.
        what: &'static str,
    },
    /// A build is complete.
    Done {
        /// The build.
        build: &'static str,
    },
}

/// Why there is no build.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The compiler, or something else that is needed, is not installed.
    #[error("there is no command {tool}: install it, on Debian with `apt-get install {package}`")]
    NoTool {
        /// The command.
        tool: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A command did not accept its input, or could not write its output.
    #[error("a command of the build failed: {command}\n{output}")]
    Command {
        /// The command.
        command: String,
        /// Its output.
        output: String,
    },
    /// The build cannot be made with other sources.
    #[error("the sources of {title} cannot be patched: they are not kept")]
    NotEditable {
        /// The workload.
        title: &'static str,
    },
    /// The user interrupted the build.
    #[error("the build was interrupted")]
    Interrupted,
    /// The sources of a package could not be found or fetched.
    #[error(
        "cannot get the sources of {package} ({reason}): is there a network? Or get {home} and name its folder"
    )]
    NoPackage {
        /// The package.
        package: String,
        /// Where else to get it.
        home: &'static str,
        /// The reason.
        reason: String,
    },
    /// A source file could not be read.
    #[error("cannot read the source {}: {error}; it is part of {home}", .path.display())]
    NoSource {
        /// The file.
        path: PathBuf,
        /// Where to get it.
        home: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// Anything else with files, a full disk among it.
    #[error("{doing} {}: {error}", .path.display())]
    Io {
        /// The action.
        doing: &'static str,
        /// Its object.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl Error {
    /// This error, or the interruption that caused it.
    pub fn unless(self, caught: &InterruptGuard) -> Error {
        check_interrupted(caught).err().unwrap_or(self)
    }
}

/// An error if a signal came.
pub fn check_interrupted(caught: &InterruptGuard) -> Result<(), Error> {
    if caught.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

/// A folder to fill and to [`publish`]; others may read it as they may read what else this user makes.
pub fn unfinished(parent: &Path) -> Result<ScratchFolder, Error> {
    scratch_folder(parent, ".unfinished-", 0o777).map_err(io_error("creating a folder in", parent))
}

/// Moves a complete build to its place. If another process was faster, its build is as good.
pub fn publish(unfinished: ScratchFolder, folder: &Path) -> Result<(), Error> {
    match fs::rename(unfinished.path(), folder) {
        Ok(()) => {
            let _moved = unfinished.moved();
            Ok(())
        }
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(io_error("creating", folder)(error)),
    }
}

/// The error of an action on a file or a folder.
pub fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |error| Error::Io { doing, path, error }
}
