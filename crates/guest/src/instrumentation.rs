//! The level of instrumentation: how much of the execution is reported, and of which blocks.

use events::{BlockId, HitFilter};
use guest_memory::Memory;

use crate::block::DecodedBlock;
use crate::guest::Guest;

/// How much of the execution is reported to an observer. Compiled code exists for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentationLevel {
    /// Nothing is reported or counted.
    Off,
    /// The number of instructions is counted. Executions of a block are reported only if [`Instrumentation::must_report`] is
    /// true for it.
    Instructions,
    /// As `Instructions`; from shortly before that number reaches [`Instrumentation::instruction_limit`] on, every execution
    /// of a block is reported.
    Limited,
    /// Executions of each block are counted. They are reported only if [`Instrumentation::must_report`] is true for the block;
    /// the counts of compiled code are read by [`BlockCache::executions`](crate::BlockCache::executions).
    Counts,
    /// Each execution of a block is reported before it.
    Blocks,
    /// Each execution of a block and each access to memory is reported after it, by
    /// [`Observer::executed`](crate::Observer::executed).
    Accesses,
    /// As `Accesses`, except that accesses which hit the filter ([`Instrumentation::hit_filter`]) are not reported; executions of
    /// their blocks are counted ([`Observer::collect_counts`](crate::Observer::collect_counts)).
    Unfiltered,
    /// As `Accesses`, with the values that instructions write, store and test.
    Values,
}

impl InstrumentationLevel {
    /// Whether records are written to a buffer.
    #[inline(always)]
    pub fn has_records(self) -> bool {
        matches!(
            self,
            InstrumentationLevel::Accesses | InstrumentationLevel::Unfiltered | InstrumentationLevel::Values
        )
    }
}

/// The events that must be reported to an observer: the lower the level, and the fewer the blocks, the faster the program runs.
pub trait Instrumentation<G: Guest> {
    /// The highest level that the observer needs. The lower it is, the faster the program runs.
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Blocks;
    /// Whether the level changes during the run, as [`Instrumentation::level`] returns it.
    const CHANGES_LEVEL: bool = false;
    /// The level at the start.
    fn initial_level(&self) -> InstrumentationLevel {
        Self::LEVEL
    }
    /// Returns a level to switch to before the given block is executed, at whose first instruction control is. None
    /// keeps the level. Returning the present level makes the engine report everything executed so far. Called if
    /// [`CHANGES_LEVEL`](Instrumentation::CHANGES_LEVEL) before each execution of a block by the interpreter; twice if compiled
    /// code is discarded in between.
    #[inline(always)]
    fn level(&mut self, _: &DecodedBlock<G>, _: &G, _: &Memory) -> Option<InstrumentationLevel> {
        None
    }
    /// The number of what is observed now; 0 for nothing. Blocks and compiled code belong to one number: what must be reported, limits
    /// and filters differ between them. [`level`](Instrumentation::level) returns a level when it changes.
    fn session(&self) -> u64 {
        0
    }
    /// Whether [`level`](Instrumentation::level) must be asked soon, whatever is executed: a signal that says so to the thread
    /// may have come during a system call. Called after each system call of compiled code.
    #[inline(always)]
    fn is_level_due(&self) -> bool {
        false
    }
    /// The number of instructions from which on [`InstrumentationLevel::Limited`] reports every block.
    fn instruction_limit(&self) -> u64 {
        u64::MAX
    }
    /// The hit filter of [`InstrumentationLevel::Unfiltered`].
    fn hit_filter(&self) -> Option<&HitFilter> {
        None
    }
    /// With [`InstrumentationLevel::Unfiltered`]: the number by which accesses of a block's first instruction are reported.
    fn first_instruction(&self, _: BlockId) -> u32 {
        0
    }
    /// Whether every execution of the block must be reported: compiled code leaves such blocks to the interpreter.
    fn must_report(&self, _: &DecodedBlock<G>) -> bool {
        false
    }
    /// Addresses at which blocks must begin so that they can be reported. Read again after images were mapped.
    fn block_boundaries(&self) -> &[u64] {
        &[]
    }
    /// Whether [`Instrumentation::must_report`] has become true for more blocks since the last call, so that compiled code must
    /// be discarded.
    fn requires_recompilation(&mut self) -> bool {
        false
    }
}

impl<G: Guest> Instrumentation<G> for () {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Off;
}
