//! Why a trace, or a part of it, could not be read.

use std::path::PathBuf;

/// Why a file, or a part of it, could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The host's reason.
        source: std::io::Error,
    },
    /// It is no trace, or damaged.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

/// A part of a trace that could not be read: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there, for people.
    pub what: String,
}
