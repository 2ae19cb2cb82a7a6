//! Why the study of Spike finds nothing.

use std::io;
use std::path::{Path, PathBuf};

use workloads::build;

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum SpikeStudyError {
    /// A program cannot be built.
    #[error("{program} cannot be built (--programs selects others): {error}")]
    Build {
        /// The program.
        program: &'static str,
        /// Why.
        error: build::Error,
    },
    /// A program does not run for this user.
    #[error("{program}: {reason}, or name other programs with --programs")]
    Obstacle {
        /// The program.
        program: &'static str,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// A run failed.
    #[error("{program}, {run}: {reason}")]
    Run {
        /// The program.
        program: &'static str,
        /// Which run.
        run: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// An optimized program does not do what the original does.
    #[error(
        "{program}, {variant}: {what} of the optimized program is not the original's: this is an error of what optimized it, and \
         the images are kept in {}", .folder.display()
    )]
    Output {
        /// The program.
        program: &'static str,
        /// The variant.
        variant: &'static str,
        /// The output, or the file that differs.
        what: String,
        /// Where the images are.
        folder: PathBuf,
    },
    /// An image cannot be optimized.
    #[error(transparent)]
    Spike(#[from] spike::Error),
    /// What every study may fail for.
    #[error(transparent)]
    Study(#[from] super::super::Error),
    /// Files could not be made or copied.
    #[error("cannot prepare {}: {error}", .path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl SpikeStudyError {
    /// The error of an operation on a file.
    pub(super) fn files(path: &Path) -> impl FnOnce(io::Error) -> SpikeStudyError {
        let path = path.to_path_buf();
        move |error| SpikeStudyError::Files { path, error }
    }
}
