//! Observers of a program's execution: the events that they are notified of.

use events::{BlockId, LoadedImage, ProcessEnd};
use guest_memory::Memory;

use crate::block::{BlockCache, DecodedBlock};
use crate::debugger::Debugged;
use crate::guest::Guest;
use crate::instrumentation::Instrumentation;
#[cfg(doc)]
use crate::instrumentation::InstrumentationLevel;

/// Observes the execution of a program. No method may change what the program sees.
pub trait Observer<G: Guest>: Instrumentation<G> + Debugged<G> + Send {
    /// A block of the cache is about to be executed. It counts as executed.
    #[inline(always)]
    fn enter(&mut self, _id: BlockId, _: &BlockCache<G>, _: &G, _: &Memory) {}
    /// The block entered last was left before its end. `executed` is the block of those of its instructions that
    /// completed, None if there are none.
    #[inline(always)]
    fn truncated(&mut self, _entered: BlockId, _executed: Option<(BlockId, &DecodedBlock<G>)>) {}
    /// The program makes a system call, by the guest's number.
    fn system_call(&mut self, _number: u32) {}
    /// An image was mapped.
    fn mapped(&mut self, _: &LoadedImage) {}
    /// The observer of a new thread, which the observed one starts. Each thread has its own observer and its own
    /// block cache.
    fn thread(&self) -> Self;
    /// The thread has ended, but not the program. The observer is dropped afterwards.
    fn ended(&mut self, _: &G, _: &Memory, _: &BlockCache<G>) {}
    /// With [`Accesses`](InstrumentationLevel::Accesses), [`Unfiltered`](InstrumentationLevel::Unfiltered) and
    /// [`Values`](InstrumentationLevel::Values): the records ([`events::record`]) of everything executed since the last call.
    fn executed(&mut self, _records: &[u64], _: &BlockCache<G>) {}
    /// With [`InstrumentationLevel::Unfiltered`]: from now on compiled code may report accesses of all blocks of the cache.
    fn define_blocks(&mut self, _: &BlockCache<G>) {}
    /// With [`InstrumentationLevel::Unfiltered`]: the observer must take the cache's counts of executions since the last
    /// call. Called before the level changes and before the thread starts another one or ends.
    fn collect_counts(&mut self, _: &BlockCache<G>) {}
    /// The level changes; blocks were those of this cache so far.
    fn leaves_level(&mut self, _: &BlockCache<G>) {}
    /// The level has changed; blocks are those of this cache from now on.
    fn enters_level(&mut self, _: &BlockCache<G>) {}
    /// Control was transferred by something other than the last instruction: the start or end of a signal handler, or a
    /// new program.
    fn discontinuity(&mut self) {}
    /// Blocks of the cache have been compiled, and count in counters that may be new.
    fn compiled(&mut self, _: &BlockCache<G>) {}
    /// The compiled code of the cache is discarded, and its counters are used for other code.
    fn discarding(&mut self, _: &BlockCache<G>) {}
    /// Another program takes the place of this one. Its images are reported next. Its blocks are in the same cache if it is one of
    /// the same guest, as the last argument says, and in another one otherwise.
    fn replaced(&mut self, _: &G, _: &BlockCache<G>, _is_same_guest: bool) {}
    /// The process ends. No other thread executes any more.
    fn exits(&mut self, _: ProcessEnd, _: &G, _: &Memory, _: &BlockCache<G>) {}
    /// Everything executed so far has been reported. Later events are ordered after everything that other threads have
    /// done so far. A system call may have changed what is mapped.
    fn resumed(&mut self, _: &Memory) {}
    /// The observed process is now a copy made by fork, the child of this ordinal number of its parent, from 1. Locks that
    /// other threads held at the fork stay locked.
    fn forked(&mut self, _ordinal: u32, _: &BlockCache<G>) {}
}

/// Observes nothing, at no cost.
impl<G: Guest> Observer<G> for () {
    fn thread(&self) {}
}
