//! The errors, one sentence each: what is wrong, where, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::Size;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with all that its reader needs to act.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the system failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The registry's file is not valid.
    #[error("{path} is no valid registry: {reason}", path = path.display())]
    Registry {
        /// The registry's file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// A request that contradicts itself or the registry.
    #[error("{0}")]
    Request(String),
    /// No entry has this name.
    #[error("{registry} has no section `{name}` ({known}): add it with `vlm add {name} SIZE`", registry = registry.display())]
    Unknown {
        /// The registry's file.
        registry: PathBuf,
        /// The name that was asked for.
        name: String,
        /// The names that exist, as a sentence's part.
        known: String,
    },
    /// The section's memory is not reserved.
    #[error("the memory of section `{0}` is not reserved: run `vlm apply` as root")]
    NotReserved(String),
    /// There are no rights for the operation.
    #[error("{0} needs root's rights: run it by sudo")]
    Privilege(&'static str),
    /// Memory that cannot be had.
    #[error("{0}")]
    Memory(String),
    /// The kernel can no longer guarantee the reserves.
    #[error("{0}")]
    ReserveLost(String),
    /// The section is in use, or does not exist while it should.
    #[error("{0}")]
    State(String),
    /// The section's file is shorter than the section.
    #[error(
        "section `{name}` was truncated to {actual} of {size} by another program: end the programs that use it \
         (`vlm list` shows them), and create it anew"
    )]
    Truncated {
        /// The section.
        name: String,
        /// Its length now.
        actual: Size,
        /// Its length in the registry.
        size: Size,
    },
}

impl Error {
    /// An operation that failed, to be given the system's reason.
    pub(crate) fn io<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source: source.into() }
    }
}
