//! Options of `units`.

use clap::Args;

use super::{OutputOptions, SimulationOptions};

/// Options of `units`.
#[derive(Debug, Args)]
pub struct UnitsOptions {
    /// Show misses of this machine's caches and TLBs.
    #[arg(long, value_name = "MACHINE", conflicts_with = "time")]
    pub caches: Option<String>,
    /// Show this machine's cycles.
    #[arg(long, value_name = "MACHINE")]
    pub time: Option<String>,
    /// The event of the histogram, by its name in the first table: loads, 'dcache misses'.
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}
