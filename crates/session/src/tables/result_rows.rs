//! The rows of a table of a model's results.

use analysis::call_tree::{CallRows, EntryRows};
use analysis::models::OwnRows;

/// The rows of a table of a model's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRows {
    /// Own costs.
    Own(OwnRows),
    /// Costs of calls.
    Calls(CallRows),
    /// Own costs of processes.
    Process,
    /// Costs by mode, or by why the kernel was entered.
    Entries(EntryRows),
    /// Own costs of classes of units of work.
    Class,
}
