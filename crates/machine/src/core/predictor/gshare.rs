//! Counters found by the branch's address and the directions of the last branches (McFarling, 1993).

use super::counters::SaturatingCounters;
use super::direction::{ConditionalBranch, DirectionPredictor};

/// The predictor gshare.
pub(super) struct Gshare {
    pub counters: SaturatingCounters,
    /// Branches whose directions are mixed with the address.
    pub history: u32,
}

impl Gshare {
    fn index(&self, branch: ConditionalBranch) -> usize {
        self.counters.index(branch.index() ^ branch.recent(self.history) as u64)
    }
}

impl DirectionPredictor for Gshare {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        self.counters.is_taken(self.index(branch))
    }

    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let index = self.index(branch);
        self.counters.train(index, is_taken)
    }
}
