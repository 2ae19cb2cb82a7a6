//! Programs to translate, and what became of them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use events::{Counts, ProcessEnd};

/// Why a program could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be read.
    #[error("{}: {error}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The translator could not begin, or met what it cannot translate.
    #[error("the program cannot be translated: {0}")]
    Translator(String),
    /// Not an x86-64 host with Linux.
    #[error("x86-64 programs are translated on x86-64 hosts with Linux only")]
    Host,
    /// Processes and shared memory.
    #[error("cannot start the translator: {0}")]
    Start(io::Error),
    /// The results cannot be read.
    #[error("cannot read the translator's counts: {0}")]
    Results(io::Error),
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct TranslatedProgram {
    /// Its file: an x86-64 executable, or a script.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its variables, as `NAME=VALUE`.
    pub environment: Vec<OsString>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct TranslatedRun {
    /// Exact counts of the whole run.
    pub counts: Counts,
    /// How the program ended.
    pub end: ProcessEnd,
    /// Processes that it forked; they are not counted.
    pub forked: u64,
}
