//! Observers of a program's execution: the level of instrumentation that they need, and the events reported to them.

use events::{BlockId, HitFilter, LoadedImage};
use memory::Memory;

use crate::block::{Block, BlockCache};
use crate::cpu::Cpu;
use crate::debugger::DebuggerHook;

/// How much of the execution is reported to an observer. Compiled code exists for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentationLevel {
    /// Nothing is reported or counted.
    Off,
    /// The number of instructions is counted. Executions of a block are reported only if [`Observer::must_report`] is
    /// true for it.
    Instructions,
    /// As `Instructions`; from shortly before that number reaches [`Observer::instruction_limit`] on, every execution
    /// of a block is reported.
    Limited,
    /// Executions of each block are counted. They are reported only if [`Observer::must_report`] is true for the block;
    /// the counts of compiled code are read by [`BlockCache::executions`].
    Counts,
    /// Each execution of a block is reported before it.
    Blocks,
    /// Each execution of a block and each access to memory is reported after it, by [`Observer::executed`].
    Accesses,
    /// As `Accesses`, except that accesses which hit the filter ([`Observer::hit_filter`]) are not reported; executions of
    /// their blocks are counted ([`Observer::collect_counts`]).
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

/// Observes the execution of a program. No method may change what the program sees.
pub trait Observer: Send {
    /// The highest level that the observer needs. The lower it is, the faster the program runs.
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Blocks;
    /// Whether the level changes during the run, as [`Observer::level`] returns it.
    const CHANGES_LEVEL: bool = false;
    /// The level at the start.
    fn initial_level(&self) -> InstrumentationLevel {
        Self::LEVEL
    }
    /// Returns a level to switch to before the given block is executed, at whose first instruction control is. None
    /// keeps the level. Returning the present level makes the engine report everything executed so far. Called if
    /// [`CHANGES_LEVEL`](Observer::CHANGES_LEVEL) before each execution of a block by the interpreter; twice if compiled
    /// code is discarded in between.
    #[inline(always)]
    fn level(&mut self, _: &Block, _: &Cpu, _: &Memory) -> Option<InstrumentationLevel> {
        None
    }
    /// The number of instructions from which on [`InstrumentationLevel::Limited`] reports every block.
    fn instruction_limit(&self) -> u64 {
        u64::MAX
    }
    /// The hit filter of [`InstrumentationLevel::Unfiltered`].
    fn hit_filter(&self) -> Option<&HitFilter> {
        None
    }
    /// A block of the cache is about to be executed. It counts as executed.
    #[inline(always)]
    fn enter(&mut self, _id: BlockId, _: &BlockCache, _: &Cpu, _: &Memory) {}
    /// The block entered last was left before its end. `executed` is the block of those of its instructions that
    /// completed, None if there are none.
    #[inline(always)]
    fn truncated(&mut self, _entered: BlockId, _executed: Option<(BlockId, &Block)>) {}
    /// The program makes a system call, by Alpha's number.
    fn system_call(&mut self, _number: u32) {}
    /// An image was mapped.
    fn mapped(&mut self, _: &LoadedImage) {}
    /// The observer of a new thread, which the observed one starts. Each thread has its own observer and its own
    /// block cache.
    fn thread(&self) -> Self;
    /// The thread has ended, but not the program. The observer is dropped afterwards.
    fn ended(&mut self, _: &Cpu, _: &Memory, _: &BlockCache) {}
    /// With [`InstrumentationLevel::Accesses`], [`InstrumentationLevel::Unfiltered`] and
    /// [`InstrumentationLevel::Values`]: the records ([`events::record`]) of everything executed since the last call.
    fn executed(&mut self, _records: &[u64], _: &BlockCache) {}
    /// With [`InstrumentationLevel::Unfiltered`]: from now on compiled code may report accesses of all blocks of the cache.
    fn define_blocks(&mut self, _: &BlockCache) {}
    /// With [`InstrumentationLevel::Unfiltered`]: the number by which accesses of a block's first instruction are reported.
    fn first_instruction(&self, _: BlockId) -> u32 {
        0
    }
    /// With [`InstrumentationLevel::Unfiltered`]: the observer must take the cache's counts of executions since the last
    /// call. Called before the level changes and before the thread starts another one or ends.
    fn collect_counts(&mut self, _: &BlockCache) {}
    /// Control was transferred by something other than the last instruction: the start or end of a signal handler, or a
    /// new program.
    fn discontinuity(&mut self) {}
    /// Another program takes the place of this one. Its images are reported next.
    fn replaced(&mut self) {}
    /// Everything executed so far has been reported. Later events are ordered after everything that other threads have
    /// done so far.
    fn resumed(&mut self) {}
    /// Whether every execution of the block must be reported: compiled code leaves such blocks to the interpreter.
    fn must_report(&self, _: &Block) -> bool {
        false
    }
    /// Addresses at which blocks must begin so that they can be reported. Read again after images were mapped.
    fn block_boundaries(&self) -> &[u64] {
        &[]
    }
    /// Whether [`Observer::must_report`] has become true for more blocks since the last call, so that compiled code must
    /// be discarded.
    fn requires_recompilation(&mut self) -> bool {
        false
    }
    /// The observed process is now a copy made by fork. Locks that other threads held at the fork stay locked.
    fn forked(&mut self) {}
    /// The debugger that controls the thread, if there is one.
    #[inline(always)]
    fn debugger(&mut self) -> Option<&mut dyn DebuggerHook> {
        None
    }
}

/// Observes nothing, at no cost.
impl Observer for () {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Off;

    fn thread(&self) {}
}
