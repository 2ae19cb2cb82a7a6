//! The request of an attach client.

use serde::{Deserialize, Serialize};

use crate::recording::plan::Plan;

/// A request to record a process.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) plan: Plan,
    /// Whether this process writes the header of the trace; false if another one has.
    pub(super) begins: bool,
}
