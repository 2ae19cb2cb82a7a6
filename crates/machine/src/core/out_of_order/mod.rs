//! Out-of-order cores. Instructions are simulated in program order, each through all stages: no instruction delays an older
//! one, so that one pass finds the cycles that a simulation of all instructions in every cycle would find.

mod base_registers;
mod block;
mod code;
mod core;
mod core_window;
mod counts;
mod description;
mod fetch;
mod functional_warming;
mod memory_access;
mod outstanding;
mod ports;
mod results;
mod retirement;
mod rules;
mod store_queue;
mod window;
mod wrong_path;

pub(crate) use core::OutOfOrderCore;
pub use counts::{NonOverlapped, OutOfOrderCounts, Resource};
pub use description::{ExecutionClass, ExecutionOrder, OutOfOrder, UnknownStores};
