//! What a study finds, and why it finds nothing.

use std::io;
use std::path::PathBuf;

use analysis::profile::Profile;
use analysis::statics::ImageStatics;
use analysis::units::Measurement;

use super::schemes::SchemeTime;
use crate::build::{self, Build};
use crate::isolated;
use crate::measure::Counted;
use crate::workload::Workload;

/// A way to run the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// `cached` or `scaled`.
    pub name: &'static str,
    /// A description.
    pub meaning: &'static str,
    /// Transactions in a run: enough to reach the steady state and to measure.
    pub transactions: u32,
}

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A build failed.
    #[error(transparent)]
    Build(#[from] build::Error),
    /// A run failed.
    #[error("{build} build, {mode}: {error}")]
    Run {
        /// The build.
        build: &'static str,
        /// The mode.
        mode: &'static str,
        /// What went wrong.
        error: isolated::Error,
    },
    /// The workload itself reported a failure.
    #[error("{build} build, {mode}: {reason}")]
    Workload {
        /// The build.
        build: &'static str,
        /// The mode.
        mode: &'static str,
        /// How it ended, and its output.
        reason: String,
    },
    /// The database could not be made.
    #[error("cannot make the database: {0}")]
    Load(String),
    /// An image that was just built cannot be read.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// The builds could not run.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// Another study uses the same folder.
    #[error("another study is running in {}: wait for it, or work in another directory", .0.display())]
    Busy(PathBuf),
    /// Files could not be made or copied.
    #[error("cannot prepare {}: {error}", .path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Programs for Alpha cannot run.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no C library for Alpha at {}: install it (Debian: apt-get install libc6.1-alpha-cross) or \
     name its sysroot with --sysroot DIR", .0.display()
)]
pub struct NoLibrary(pub(super) PathBuf);

/// One build's run in one mode.
pub struct StudyRun {
    /// Exact counts of the whole run.
    pub counted: Counted,
    /// The transactions measured.
    pub measurement: Measurement,
    /// The mean profile of a transaction.
    pub profile: Profile,
    /// The program's output.
    pub output: String,
}

/// A mode with the runs of both builds.
pub struct ModeResult {
    /// The mode.
    pub mode: Mode,
    /// Original, byte-word.
    pub runs: [StudyRun; 2],
    /// How long transactions take, in the order of [`SCHEMES`].
    pub times: [SchemeTime; 3],
}

/// Everything the study found.
pub struct Study {
    /// The workload.
    pub workload: &'static Workload,
    /// Original, byte-word.
    pub builds: [Build; 2],
    /// The contents of their images.
    pub statics: [Vec<ImageStatics>; 2],
    /// The modes, in the requested order.
    pub modes: Vec<ModeResult>,
    /// Commands and versions that made it: what, and its value.
    pub provenance: Vec<(String, String)>,
}
