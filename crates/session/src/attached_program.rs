//! A program that runs already.

use std::time::Duration;

/// A program to attach to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedProgram {
    /// The number of its process.
    pub process: u32,
    /// Whether the processes that it has forked belong to it.
    pub children: bool,
    /// How long it is observed, if not until Ctrl-C.
    pub duration: Option<Duration>,
}
