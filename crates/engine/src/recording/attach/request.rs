//! What a process that attaches asks for.

use serde::{Deserialize, Serialize};

use crate::recording::plan::Plan;

/// What somebody wants recorded.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) plan: Plan,
    /// Whether the trace has to be begun; if not, this process is one more.
    pub(super) begins: bool,
}
