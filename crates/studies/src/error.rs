//! Why a study of a database finds nothing.

use std::io;
use std::path::PathBuf;

use session::forked_run;
use workloads::build;

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
        error: forked_run::Error,
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
    /// A query's rows are wrong.
    #[error(
        "{statement} on Alpha does not answer what it answers on the host: row {row} is '{found}' instead of '{expected}'"
    )]
    Rows {
        /// The statement.
        statement: String,
        /// The number of the first row that differs.
        row: usize,
        /// The row on Alpha.
        found: String,
        /// The row on the host.
        expected: String,
    },
    /// The database could not be made.
    #[error("cannot make the database: {0}")]
    Load(String),
    /// The server could not be made, started or used.
    #[error("PostgreSQL: {0}")]
    Server(String),
    /// The user interrupted the study.
    #[error("the study was interrupted")]
    Interrupted,
    /// A recorded trace cannot be used.
    #[error("{}: {reason}: remove it, and it will be recorded again", .path.display())]
    Trace {
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An image that was just built cannot be read.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// A machine has no pipeline.
    #[error(transparent)]
    Machine(#[from] machine::TimingModelError),
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
pub struct NoLibrary(pub(crate) PathBuf);
