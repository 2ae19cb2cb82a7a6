//! Errors, in one sentence that says what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the environment. The database is as it was before the command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("{}: {error}{}", path.display(), advice(error))]
    File {
        /// The file.
        path: PathBuf,
        /// The host's error.
        error: io::Error,
    },
    /// The database failed.
    #[error("{}: {error}{}", path.display(), database_advice(error))]
    Database {
        /// Its file.
        path: PathBuf,
        /// SQLite's message.
        error: rusqlite::Error,
    },
    /// A database of a later version.
    #[error("{}: is a database of another version of pathlength ({version}); use that version, or another --database", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// An image that cannot be read or rewritten.
    #[error(transparent)]
    Image(#[from] spike::Error),
    /// No such application.
    #[error(
        "no application '{name}' is registered{}; pathlength spike register PROGRAM registers one",
        among(known)
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The names of those that are.
        known: Vec<String>,
    },
    /// A name that is taken.
    #[error(
        "an application '{0}' is registered already; choose another name with --name, or remove it with pathlength spike remove {0}"
    )]
    NameTaken(String),
    /// A program that is registered.
    #[error("{} is registered already, as '{name}'", path.display())]
    Registered {
        /// The program.
        path: PathBuf,
        /// Its application.
        name: String,
    },
    /// No image can be instrumented.
    #[error("no image of '{name}' can be instrumented: {reason}")]
    NothingToInstrument {
        /// The application.
        name: String,
        /// Why the program cannot.
        reason: String,
    },
    /// Nothing was counted.
    #[error(
        "nothing was collected of '{0}'; run it with pathlength spike collect PROGRAM [ARG...], then repeat the command"
    )]
    NoProfile(String),
    /// There are no optimized images.
    #[error("no image of '{0}' is optimized; pathlength spike optimize {0} does it")]
    NotOptimized(String),
}

impl Error {
    /// For [`Result::map_err`]: a failure on a file.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Error {
        move |error| Error::File { path: path.into(), error }
    }
}

const MAKE_SPACE: &str = "; make space there and repeat the command: what the database had is unchanged";

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => MAKE_SPACE,
        _ => "",
    }
}

fn database_advice(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => MAKE_SPACE,
        Some(rusqlite::ErrorCode::SystemIoFailure) => {
            "; is the disk full or damaged? What the database had is unchanged"
        }
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; another command holds it: repeat this one",
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            "; name another folder with --database, or remove this one and register again"
        }
        _ => "",
    }
}

fn among(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (there are {})", known.join(", ")) }
}
