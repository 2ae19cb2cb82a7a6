//! Counters found by the last directions of all branches, or of the branch itself, and by its address (Yeh and Patt, 1991:
//! GAs and PAs).

use super::counters::SaturatingCounters;
use super::direction::{ConditionalBranch, DirectionPredictor};

/// A two-level predictor.
pub(super) struct TwoLevel {
    counters: SaturatingCounters,
    /// The number of directions in a history.
    length: u32,
    /// The histories of branches (PAs); none if all branches share theirs (GAs).
    own: Vec<u32>,
}

impl TwoLevel {
    /// With `histories` registers of `length` directions; 0 registers for the history of all branches.
    pub fn new(counters: SaturatingCounters, histories: u32, length: u32) -> TwoLevel {
        TwoLevel { counters, length, own: vec![0; histories as usize] }
    }

    fn register(&self, branch: ConditionalBranch) -> usize {
        branch.index() as usize & self.own.len().saturating_sub(1)
    }

    /// The history in the low bits, the address above.
    fn index(&self, branch: ConditionalBranch) -> usize {
        let history = match self.own.is_empty() {
            true => branch.recent(self.length) as u64,
            false => self.own[self.register(branch)].into(),
        };
        self.counters.index(branch.index() << self.length | history)
    }
}

impl DirectionPredictor for TwoLevel {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        self.counters.is_taken(self.index(branch))
    }

    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let (index, register) = (self.index(branch), self.register(branch));
        if let Some(own) = self.own.get_mut(register) {
            *own = (*own << 1 | u32::from(is_taken)) & ((1 << self.length) - 1);
        }
        self.counters.train(index, is_taken)
    }
}
