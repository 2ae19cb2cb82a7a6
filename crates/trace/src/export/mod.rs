//! Converts traces, an instruction at a time, to formats that simulators of caches and processors read.

mod champsim;
mod din;

pub use champsim::ChampSim;
pub use din::Din;
