//! Models of machines: what was executed goes in, misses and cycles come out.

mod aside;
mod caches;
mod clock;
mod curves;
mod description;
mod hierarchy;
mod numbers;
mod per_thread;
pub mod pipeline;
pub mod predictor;
mod script;
mod storage;
mod time;
mod warm;

pub use caches::{Caches, Structure, UnitMisses};
pub use clock::UnitTime;
pub use curves::{Curve, Curves, Point};
pub use description::{
    Cache, Crossing, Error, Holds, Machine, Memory, Prefetch, Processor, Replacement, TranslationBuffer,
    Write, WriteBuffer, names,
};
pub use hierarchy::{Counts, Hierarchy, MissClass as Class, Request, Served};
pub use pipeline::{Cause, Cycles, Side, SiteCycles};
pub use predictor::Predictions;
pub use storage::{Demand, Storage, Throughput};
pub use time::{Time, TimeError};
pub use warm::{Model, Warming};
