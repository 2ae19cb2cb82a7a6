//! The input of a command: what a trace has recorded, what a program or a running process executes, or what was counted before.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use analysis::run_counts::RunCounts;
use trace::Trace;

use crate::attached_program::AttachedProgram;
use crate::process_tree;

/// An input, as the file that is named, or the number of a process, decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A trace.
    Trace(PathBuf),
    /// A program to run.
    Program {
        /// The program.
        path: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// A process of the engine that runs already.
    Attached(AttachedProgram),
    /// The counts of a run: a file, or the folder that an interrupted run left.
    SavedCounts(PathBuf),
}

/// Arguments for a file that takes none.
#[derive(Debug, thiserror::Error)]
#[error("{} {what}: an argument is for a program that is run", path.display())]
pub struct SurplusArgument {
    path: PathBuf,
    what: &'static str,
}

impl Input {
    /// The input that a file and its arguments name. It is a program unless it is a trace or has counts.
    pub fn of_file(path: &Path, arguments: &[OsString]) -> Result<Input, SurplusArgument> {
        let (input, what) = if Trace::is_trace(path) {
            (Input::Trace(path.into()), "is a trace")
        } else if RunCounts::is_saved(path) || process_tree::is_folder(path) {
            (Input::SavedCounts(path.into()), "holds saved counts")
        } else {
            return Ok(Input::Program { path: path.into(), arguments: arguments.into() });
        };
        match arguments {
            [] => Ok(input),
            _ => Err(SurplusArgument { path: path.into(), what }),
        }
    }

    /// The file that is named.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Input::Trace(path) | Input::Program { path, .. } | Input::SavedCounts(path) => Some(path),
            Input::Attached(_) => None,
        }
    }

    /// The program to attach to, if it is one.
    pub fn attached(&self) -> Option<&AttachedProgram> {
        match self {
            Input::Attached(attached) => Some(attached),
            _ => None,
        }
    }

    /// Whether it is a trace.
    pub fn is_trace(&self) -> bool {
        matches!(self, Input::Trace(_))
    }

    /// Whether it is a trace whose units of work have classes. One that cannot be read has none: its error is reported when it is opened
    /// to be replayed. Nor has one that comes through a pipe, which can be read only once: its classes are shown if they are asked for.
    pub fn has_unit_classes(&self) -> bool {
        match self {
            Input::Trace(path) => {
                !trace::is_pipe(path) && Trace::open(path).is_ok_and(|trace| !trace.unit_classes().is_empty())
            }
            _ => false,
        }
    }
}

/// For messages.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Input::Attached(attached) => write!(f, "process {}", attached.process),
            Input::Trace(path) | Input::Program { path, .. } | Input::SavedCounts(path) => {
                write!(f, "{}", path.display())
            }
        }
    }
}
