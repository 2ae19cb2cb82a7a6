//! Traces in the forms that simulators of caches and processors read, an instruction at a time.

mod champsim;
mod din;

pub use champsim::ChampSim;
pub use din::Din;
