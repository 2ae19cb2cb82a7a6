//! Errors of the study of networking.

use adapter::{DescriptionError, TrafficError};

use super::linux::LinuxStudyError;

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A description is impossible with the study's settings.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A run has no result.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The transfers over Linux were interrupted.
    #[error(transparent)]
    Linux(#[from] LinuxStudyError),
}
