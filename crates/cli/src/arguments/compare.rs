//! Options of `compare`.

use clap::Args;
use session::comparison::{Gate, Threshold};

use super::{ExecutionOptions, InputFile, TableOptions, UnitOptions};

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    #[command(flatten)]
    pub execution: ExecutionOptions,
    #[command(flatten)]
    pub unit: UnitOptions,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub gate: GateOptions,
    /// The program of one build; or saved counts; or a trace.
    pub program_a: InputFile,
    /// The program of the other build; or saved counts; or a trace.
    pub program_b: InputFile,
    /// Arguments of the programs that are run.
    #[arg(last = true, value_name = "ARG")]
    pub arguments: Vec<InputFile>,
}

/// The gate.
#[derive(Clone, Debug, Args)]
pub struct GateOptions {
    /// End with status 3 if the second side executes more than the first by more than this: 1%, 0.5%, or 1000
    /// instructions. With --unit a mean unit of work is compared, else the run.
    #[arg(long, value_name = "THRESHOLD")]
    fail_above: Option<Threshold>,
    /// Apply --fail-above to the instructions of this function only, without what it calls.
    #[arg(long, value_name = "NAME", requires = "fail_above")]
    function: Option<String>,
}

impl GateOptions {
    /// The gate, if there is one.
    pub fn gate(&self) -> Option<Gate> {
        Some(Gate { threshold: self.fail_above?, function: self.function.clone() })
    }
}
