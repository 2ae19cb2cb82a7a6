//! Errors of reading a trace or a part of it.

use std::path::PathBuf;

/// An error of reading a trace or a part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The host's error.
        source: std::io::Error,
    },
    /// The file is not a trace, or is damaged.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault, and where it is.
        what: String,
    },
}

/// A part of a trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceProblem {
    /// Its offset in the file in bytes.
    pub offset: u64,
    /// The error, as a message for users.
    pub what: String,
}
