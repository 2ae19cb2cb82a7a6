//! Options of `trace`, and the part that is recorded.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use engine::Plan;
use session::simulation::PlannedPart;

use super::{ExecutionOptions, ObservedProgramOptions};
use crate::ranges;

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    #[command(flatten)]
    pub execution: ExecutionOptions,
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub recorded: RecordedOptions,
    /// The trace file.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub program: ObservedProgramOptions,
}

/// The part of a program's run that is recorded, or simulated by a model.
#[derive(Clone, Debug, Args)]
pub struct PlanOptions {
    /// Begin at SYMBOL, SYMBOL+OFFSET, IMAGE!SYMBOL or 0xADDRESS, or after a number of instructions: --from 1000000; or
    /// after a time of the program's clock, in which an instruction takes a nanosecond and waiting nothing: --from 20ms.
    #[arg(long, value_name = "WHERE")]
    pub from: Option<engine::ProgramLocation>,
    /// End at such a place, or after a number of instructions, or a time, from the beginning: --until 0.5s.
    #[arg(long, value_name = "WHERE", value_parser = ranges::until)]
    pub until: Option<engine::ProgramLocation>,
    /// Only calls of this function, with everything they call: NAME or IMAGE!NAME. For a trace of units the default is its
    /// own function.
    #[arg(long, value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new())]
    pub unit: Vec<String>,
    /// Calls of the unit's function to skip first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u64,
    /// The number of calls of the unit's function after those.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub units: Option<u64>,
}

impl PlanOptions {
    /// The part, for a session.
    pub fn part(&self) -> PlannedPart {
        let PlanOptions { from, until, unit, skip, units } = self.clone();
        PlannedPart { from, until, unit, skip, units }
    }
}

/// Additional data in a recording.
#[derive(Clone, Debug, Args)]
pub struct RecordedOptions {
    /// Record values, too: those that instructions write to registers, store and test. Recording is about ten times
    /// slower.
    #[arg(long)]
    pub values: bool,
    /// Record allocations on the heap, too, so that `strides` can distinguish blocks.
    #[arg(long)]
    pub heap: bool,
    /// Record everything, with the classes of units of work: a unit's class is from the first call of a function in it that names one,
    /// as with count --class. Without, classes are the functions of --unit, which can then be given several times. Can be given several
    /// times.
    #[arg(long = "class", value_name = "RULE")]
    pub classes: Vec<engine::ClassRule>,
}

impl RecordedOptions {
    /// The plan of a recording of this part.
    pub fn plan(&self, part: &PlannedPart) -> anyhow::Result<Plan> {
        Ok(Plan { values: self.values, heap: self.heap, ..part.plan_with_classes(&self.classes)? })
    }
}
