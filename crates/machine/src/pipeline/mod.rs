//! Pipelines that issue in order: when each instruction is issued, and what was waited for.

mod accesses;
mod ask;
mod board;
mod class;
mod core;
mod course;
mod cycles;
mod description;
mod front;
mod hear;
mod hierarchy;
mod issue;
mod memo;
mod memory;
mod piece;
mod rules;
mod state;
mod wait;

pub(crate) use ask::{Answered, Asking};
pub(crate) use core::Core;
pub(crate) use cycles::LEVELS;

pub use class::Class;
pub use cycles::{Cause, Cycles, Side};
pub use description::{Blocks, Bypass, ClassRules, Emulation, Loads, Occupies, Operand, Pipeline, Stores};
pub use hierarchy::Attached;
pub use issue::SiteCycles;
pub(crate) use memory::Timing;
pub use memory::{MemorySystem, Perfect, Served};
