//! In-order pipelines: when each instruction is issued, and the causes of stalls.

mod accesses;
mod cached_memory;
mod core;
mod cycles;
mod description;
mod front_end;
mod instruction_class;
mod issue;
mod memory;
mod memory_response;
mod resolve;
mod rules;
mod scoreboard;
mod segment;
mod stalls;
mod state;
mod timing_outcome;
mod transition_cache;

pub(crate) use core::Core;
pub(crate) use cycles::LEVELS;
pub(crate) use resolve::{ResolvedBatch, Resolver};

pub use cached_memory::CachedMemory;
pub use cycles::{Cause, Cycles, Side};
pub use description::{Blocks, Bypass, ClassRules, Emulation, Loads, Occupies, Operand, Pipeline, Stores};
pub use instruction_class::InstructionClass;
pub use issue::SiteCycles;
pub(crate) use memory::Timing;
pub use memory::{MemorySystem, PerfectMemory, ServedBy};
