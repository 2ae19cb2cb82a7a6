//! Models of machines: what was executed goes in, misses and cycles come out.

mod caches;
mod curves;
mod description;
mod hierarchy;
pub mod pipeline;
pub mod predictor;
mod script;
mod time;

pub use caches::{Caches, Structure, UnitMisses};
pub use curves::{Curve, Curves, Point};
pub use description::{
    Cache, Crossing, Error, Holds, Machine, Memory, Prefetch, Processor, Replacement, TranslationBuffer,
    Write, WriteBuffer, names,
};
pub use hierarchy::{Class, Counts, Hierarchy, Request, Served};
pub use pipeline::{Cause, Cycles, Side, SiteCycles};
pub use predictor::Predictions;
pub use time::{Time, TimeError, UnitTime};

/// Hears, in order, what was executed: from a trace that is replayed, or while a program runs.
pub trait Model: Send {
    /// A block that records may name from now on; the first is number 0.
    fn define(&mut self, address: u64, words: &[u32]);

    /// Executions and marks ([`trace::record`]) of a thread of the process with the number `space`, whole
    /// ones, whose blocks are defined.
    fn executed(&mut self, space: u32, records: &[u64]);
}
