//! Sites: where compiled code may fault.

use events::BlockId;
use guest::BlockCache;

use crate::target::Target;

/// A range of host code, up to the next site, and the guest instruction at which the interpreter resumes if it faults.
#[derive(Clone, Copy, Debug)]
pub struct FaultSite {
    /// Where the range begins in the code.
    pub(crate) position: u32,
    /// The block, which was entered and counted.
    pub block: BlockId,
    /// The index of the instruction in it: those before it are executed.
    pub index: u32,
    /// Bit mask of the registers with a deferred sign extension.
    pub(crate) unextended: u32,
    /// The counter of exits here, if there is one.
    pub(crate) exit_counter: Option<u32>,
}

impl FaultSite {
    /// Completes deferred sign extensions, and corrects the counts for the exit.
    pub fn complete<G: Target>(&self, guest: &mut G, cache: &BlockCache<G>) {
        if let Some(exit_counter) = self.exit_counter {
            cache.counters.increment(exit_counter as usize);
        }
        for (value, number) in guest.integers().iter_mut().zip(0..) {
            if self.unextended >> number & 1 != 0 {
                *value = *value as i32 as u64;
            }
        }
    }
}
