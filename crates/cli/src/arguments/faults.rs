//! Options of `faults`.

use clap::{Args, ValueEnum};
use session::tables::ResultRows;

use super::models::Rows;
use super::{CallOptions, ResultOptions};

/// The rows of a table of alignment faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultRows {
    /// Lines of source, with the accessed data and what would avoid the faults.
    Line,
    /// Variables, blocks of the heap and stacks, with what would avoid the faults.
    Data,
    /// Windows of equally many instructions.
    Time,
    /// Functions.
    Function,
    /// Single instructions.
    Instruction,
    /// Units of work.
    Unit,
    /// Functions and their callers.
    Caller,
    /// Functions and their callees.
    Callee,
    /// Chains of calls.
    CallTree,
    /// Classes of units of work (--unit, --class).
    Class,
}

impl FaultRows {
    /// The rows that any model's results have; None for those that only faults have. Functions come with all that they call
    /// if `is_inclusive`. Lines come without data and suggestions if `has_classes`.
    pub fn results(self, is_inclusive: bool, has_classes: bool) -> Option<ResultRows> {
        let rows = match self {
            FaultRows::Line if has_classes => Rows::Line,
            FaultRows::Line | FaultRows::Data | FaultRows::Time => return None,
            FaultRows::Function => Rows::Function,
            FaultRows::Instruction => Rows::Instruction,
            FaultRows::Unit => Rows::Unit,
            FaultRows::Caller => Rows::Caller,
            FaultRows::Callee => Rows::Callee,
            FaultRows::CallTree => Rows::CallTree,
            FaultRows::Class => Rows::Class,
        };
        Some(rows.results(is_inclusive))
    }
}

/// Options of `faults`.
#[derive(Debug, Args)]
pub struct FaultsOptions {
    /// One table with a row for each of these, instead of a summary and the first lines.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<FaultRows>,
    /// With --by function, add to each function what it calls.
    #[arg(long, requires = "by")]
    pub inclusive: bool,
    #[command(flatten)]
    pub calls: CallOptions,
    #[command(flatten)]
    pub results: ResultOptions,
}
