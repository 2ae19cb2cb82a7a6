//! Options of `units`.

use analysis::unit_blocks::{ComparedUnits, UnitChoice};
use clap::Args;

use super::{EventOptions, OutputOptions, SimulationOptions};

/// Options of `units`.
#[derive(Debug, Args)]
pub struct UnitsOptions {
    #[command(flatten)]
    pub events: EventOptions,
    /// The event of the histogram, by its name in the first table: loads, 'dcache misses'.
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    /// Explain the call with most instructions: the functions and lines of which it executed more or less than the
    /// median call.
    #[arg(long, conflicts_with_all = ["caches", "time"])]
    pub slowest: bool,
    /// Explain the call of this number instead.
    #[arg(long, value_name = "N", conflicts_with_all = ["caches", "time", "slowest"])]
    pub call: Option<u64>,
    /// Compare it with the call of this number, not with the median call.
    #[arg(long, value_name = "N", conflicts_with_all = ["caches", "time"])]
    pub against: Option<u64>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}

impl UnitsOptions {
    /// The calls that are compared, if one is to be explained.
    pub fn compared(&self) -> Option<ComparedUnits> {
        let is_asked = self.slowest || self.call.is_some() || self.against.is_some();
        is_asked.then(|| ComparedUnits {
            unit: self.call.map_or(UnitChoice::Slowest, UnitChoice::Number),
            against: self.against.map_or(UnitChoice::Median, UnitChoice::Number),
        })
    }
}
