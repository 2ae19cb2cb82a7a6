//! Options of `units`.

use analysis::unit_blocks::{ComparedUnits, UnitChoice};
use clap::Args;

use super::{EventOptions, OutputOptions, SimulationOptions};

/// Options of `units`.
#[derive(Debug, Args)]
pub struct UnitsOptions {
    #[command(flatten)]
    pub events: EventOptions,
    /// The row of the first table whose histogram is charted: loads, 'dcache misses'.
    #[arg(long, value_name = "ROW")]
    pub chart: Option<String>,
    /// Explain the call with most instructions: the functions and lines of which it executed more or less than the
    /// median call.
    #[arg(long)]
    pub slowest: bool,
    /// Explain the call of this number instead.
    #[arg(long, value_name = "N", conflicts_with = "slowest")]
    pub unit_number: Option<u64>,
    /// Compare it with the call of this number, not with the median call.
    #[arg(long, value_name = "N")]
    pub reference: Option<u64>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}

impl UnitsOptions {
    /// The calls that are compared, if one is to be explained.
    pub fn compared(&self) -> Option<ComparedUnits> {
        let is_asked = self.slowest || self.unit_number.is_some() || self.reference.is_some();
        is_asked.then(|| ComparedUnits {
            unit: self.unit_number.map_or(UnitChoice::Slowest, UnitChoice::Number),
            against: self.reference.map_or(UnitChoice::Median, UnitChoice::Number),
        })
    }
}
