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
    fn place(&self, branch: ConditionalBranch) -> usize {
        self.counters.place(branch.index() ^ branch.recent(self.history) as u64)
    }
}

impl DirectionPredictor for Gshare {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        self.counters.is_taken(self.place(branch))
    }

    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let place = self.place(branch);
        self.counters.train(place, is_taken)
    }
}
