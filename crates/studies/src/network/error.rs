//! Errors of the study of networking.

use adapter::{DescriptionError, TrafficError};

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A description is impossible with the study's settings.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A run has no result.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
}
