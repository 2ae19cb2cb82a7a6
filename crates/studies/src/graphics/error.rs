//! Errors of the study of graphics.

use session::forked_run;
use workloads::build;

use crate::error::NoLibrary;

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A build failed.
    #[error(transparent)]
    Build(#[from] build::Error),
    /// The builds could not run.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// A program could not be run on Alpha.
    #[error("{program} on Alpha: {error}")]
    Run {
        /// The program and its arguments.
        program: String,
        /// The reason.
        error: forked_run::Error,
    },
    /// A program or a compiler reported a failure, or printed something else than numbers.
    #[error("{program} failed: {reason}")]
    Program {
        /// The program and its arguments.
        program: String,
        /// Its message.
        reason: String,
    },
}
