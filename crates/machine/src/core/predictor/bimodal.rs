//! Counters found by the branch's address (J. E. Smith, 1981).

use super::counters::SaturatingCounters;
use super::direction::{ConditionalBranch, DirectionPredictor};

/// A counter for each branch, as far as the table has room.
pub(super) struct Bimodal {
    counters: SaturatingCounters,
    /// Counters are kept with the lines of L1. Of each, whether its line was filled since its branch was executed.
    refilled: Option<Vec<bool>>,
}

impl Bimodal {
    pub fn new(counters: SaturatingCounters, entries: u32, reset_by_refill: bool) -> Bimodal {
        Bimodal { counters, refilled: reset_by_refill.then(|| vec![false; entries as usize]) }
    }
}

impl DirectionPredictor for Bimodal {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        let index = self.counters.index(branch.index());
        match &self.refilled {
            Some(refilled) if refilled[index] => branch.is_backward(),
            _ => self.counters.is_taken(index),
        }
    }

    #[inline]
    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let index = self.counters.index(branch.index());
        if let Some(refilled) = &mut self.refilled
            && std::mem::take(&mut refilled[index])
        {
            self.counters.set_weakly(index, branch.is_backward());
        }
        self.counters.train(index, is_taken)
    }

    fn refilled(&mut self, line: u64, bytes: u64) {
        if let Some(refilled) = &mut self.refilled {
            for address in (line..line + bytes).step_by(4) {
                refilled[self.counters.index(address >> 2)] = true;
            }
        }
    }
}
