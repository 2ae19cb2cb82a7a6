//! The messages between an attach client and the processes it records, each a line of JSON.

use serde::{Deserialize, Serialize};

use crate::counting::UnitOfWork;
use crate::recording::plan::Plan;

/// A client's request to a process.
#[derive(Serialize, Deserialize)]
pub(super) enum AttachRequest {
    /// Record what is planned. The second value says whether this process writes the header of the trace; false if another one
    /// has.
    Record(Plan, bool),
    /// Report to the client what is planned, as the process with this number.
    Observe(Plan, u32),
    /// Count, in a folder, as the process with this number.
    Count(UnitOfWork, u32),
}

/// The messages of a process to its client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum AttachAnswer {
    /// It is recorded from now on.
    Begun,
    /// It cannot be recorded, for this reason.
    Refused(String),
    /// The plan is carried out.
    Over,
    /// The process or its recording has ended.
    Done {
        /// Number of instructions.
        instructions: u64,
        /// Number of units of work that began.
        units: u64,
    },
    /// It could not go on recording, for this reason.
    Failed(String),
}
