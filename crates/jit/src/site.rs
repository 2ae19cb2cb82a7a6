//! Sites: where compiled code may fault.

use events::BlockId;
use guest::BlockCache;

use crate::target::Target;

/// Where a fault may come from: it holds up to the next one.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Where in the code.
    pub(crate) position: u32,
    /// The block, which was entered and counted.
    pub block: BlockId,
    /// The instruction in it: what lies before is executed.
    pub index: u32,
    /// Registers, a bit each, whose upper halves are still to be filled with their signs.
    pub(crate) narrow: u32,
    /// The counter that tells that control was lost here, if there is one.
    pub(crate) lost: Option<u32>,
}

impl Site {
    /// Makes the registers, and what was counted, what they are for the guest.
    pub fn complete<G: Target>(&self, guest: &mut G, cache: &BlockCache<G>) {
        if let Some(lost) = self.lost {
            cache.counters.increment(lost as usize);
        }
        for (value, number) in guest.integers().iter_mut().zip(0..) {
            if self.narrow >> number & 1 != 0 {
                *value = *value as i32 as u64;
            }
        }
    }
}
