//! Observers of a program's execution: their level of instrumentation, and the events that they are told.

use events::{BlockId, HitFilter, LoadedImage};
use memory::Memory;

use crate::block::{Block, BlockCache};
use crate::cpu::Cpu;
use crate::debugger::DebuggerHook;

/// How much of the execution an observer is told; compiled code exists for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentationLevel {
    /// Nothing.
    Nothing,
    /// How many instructions are executed; of single blocks only where [`Observer::wants`] says so.
    Instructions,
    /// The same, and of each block from shortly before that number is [`Observer::limit`].
    Limited,
    /// How often each block is executed; of single executions only where [`Observer::wants`] says so. What
    /// compiled code executes is told by [`BlockCache::executions`].
    Counts,
    /// Each execution of a block, before it.
    Blocks,
    /// Each execution of a block and each access to memory, after it: [`Observer::executed`].
    Accesses,
    /// The same, but of accesses that the hit filter holds ([`Observer::hit_filter`]) only how often their blocks were executed:
    /// [`Observer::counted`].
    Unfiltered,
    /// The values that instructions write, store and test, too.
    Values,
}

impl InstrumentationLevel {
    /// Whether records are written.
    #[inline(always)]
    pub fn has_records(self) -> bool {
        matches!(
            self,
            InstrumentationLevel::Accesses | InstrumentationLevel::Unfiltered | InstrumentationLevel::Values
        )
    }
}

/// Observes what is executed. No method may change what the program sees.
pub trait Observer: Send {
    /// The highest level that it needs: the lower, the faster the program runs.
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Blocks;
    /// Whether its level changes during the run: [`Observer::interest`].
    const TURNS: bool = false;
    /// Its level at first.
    fn begins(&self) -> InstrumentationLevel {
        Self::LEVEL
    }
    /// Control is at the first instruction of a block. If it [`TURNS`](Observer::TURNS), of what the observer
    /// wants to hear from there on, if that is something else than before, or if it wants to be told what was
    /// executed so far. Asked before each execution of a block by the interpreter; twice, where control is
    /// taken from compiled code meanwhile.
    #[inline(always)]
    fn interest(&mut self, _: &Block, _: &Cpu, _: &Memory) -> Option<InstrumentationLevel> {
        None
    }
    /// With [`InstrumentationLevel::Limited`]: the number of instructions.
    fn limit(&self) -> u64 {
        u64::MAX
    }
    /// With [`InstrumentationLevel::Unfiltered`]: the hit filter.
    fn hit_filter(&self) -> Option<&HitFilter> {
        None
    }
    /// Control is at the first instruction of a block of the cache, which counts as executed.
    #[inline(always)]
    fn enter(&mut self, _id: BlockId, _: &BlockCache, _: &Cpu, _: &Memory) {}
    /// The block entered last was left early; `executed` (None for nothing) is the block of the
    /// instructions that did complete.
    #[inline(always)]
    fn cut(&mut self, _entered: BlockId, _executed: Option<(BlockId, &Block)>) {}
    /// The program makes a system call, by Alpha's number.
    fn system_call(&mut self, _number: u32) {}
    /// An image was mapped.
    fn mapped(&mut self, _: &LoadedImage) {}
    /// The observer of a thread that the one watched so far starts. Each thread has its own, and its
    /// own blocks.
    fn thread(&self) -> Self;
    /// The thread has ended, but not the program: what is not kept now is lost.
    fn ended(&mut self, _: &Cpu, _: &Memory, _: &BlockCache) {}
    /// With [`InstrumentationLevel::Accesses`], [`InstrumentationLevel::Unfiltered`] and [`InstrumentationLevel::Values`]: what was executed since the last
    /// call, as [`events::record`] says.
    fn executed(&mut self, _records: &[u64], _: &BlockCache) {}
    /// With [`InstrumentationLevel::Unfiltered`]: compiled code may tell of the cache's blocks from now on.
    fn learn(&mut self, _: &BlockCache) {}
    /// The number by which it wants to be told of a block's first instruction.
    fn first_instruction(&self, _: BlockId) -> u32 {
        0
    }
    /// With [`InstrumentationLevel::Unfiltered`]: what else was executed since the last call is to be taken from the cache, before
    /// the observer turns or the thread starts another one or ends.
    fn counted(&mut self, _: &BlockCache) {}
    /// Control went elsewhere than the last instruction says: a signal's handler begins or ends, or another
    /// program does.
    fn diverted(&mut self) {}
    /// Another program takes the place of this one; its images are told next.
    fn replaced(&mut self) {}
    /// All that was executed has been told; what comes now is after all that other threads did so far.
    fn goes_on(&mut self) {}
    /// Whether each execution of the block must be told, and be it compiled code's.
    fn wants(&self, _: &Block) -> bool {
        false
    }
    /// Addresses at which blocks must begin, so that the observer hears of them; looked at when images were
    /// mapped.
    fn breaks(&self) -> &[u64] {
        &[]
    }
    /// Whether [`Observer::wants`] is true for more blocks than before.
    fn wants_more(&mut self) -> bool {
        false
    }
    /// The process is a copy of the one watched so far, made by fork. Of what other threads' observers
    /// share with this one, locks that other threads held at the fork stay locked.
    fn forked(&mut self) {}
    /// The debugger's hold on the thread, if it has one.
    #[inline(always)]
    fn debugger(&mut self) -> Option<&mut dyn DebuggerHook> {
        None
    }
}

/// Observes nothing, at no cost.
impl Observer for () {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Nothing;

    fn thread(&self) {}
}
