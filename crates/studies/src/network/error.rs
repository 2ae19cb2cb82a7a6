//! Errors of the study of networking.

use std::path::PathBuf;

use adapter::{DescriptionError, TrafficError};

use crate::system::StudyError;

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A description is impossible with the study's settings.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A run has no result.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A driver's log cannot be read or replayed.
    #[error("{}: {}", .0.display(), .1)]
    Log(PathBuf, String),
    /// The transfers over Linux were interrupted.
    #[error(transparent)]
    Linux(#[from] StudyError),
}
