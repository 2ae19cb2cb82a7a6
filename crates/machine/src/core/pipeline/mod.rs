//! Timing models, and in-order pipelines: when each instruction is issued, and the causes of stalls.

mod accesses;
mod accounting;
mod any_core;
mod cached_memory;
mod core;
mod cycles;
mod description;
mod front_end;
mod issue;
mod memory;
mod memory_response;
mod model;
pub(crate) mod registers;
mod resolve;
mod rules;
mod scoreboard;
mod segment;
mod stalls;
mod state;
mod timing_outcome;
mod transition_cache;
mod worker;

pub use accounting::UnitCycles;
pub use cached_memory::CachedMemory;
pub(crate) use cycles::LEVELS;
pub use cycles::{Cause, Cycles, PipelineSide, SampledCycles};
pub use description::{
    Blocks, Bypass, ClassRules, Emulation, Loads, Occupies, OperandRole, Pipeline, Stores,
};
pub(crate) use description::{MAX_ISSUE, check_latency};
pub use isa::InstructionClass;
pub use issue::SiteCycles;
pub(crate) use memory::Timing;
pub use memory::{MemorySystem, PerfectMemory, ServedBy};
pub use model::{TimingModel, TimingModelError};
pub(crate) use timing_outcome::CycleTotals;
