//! A predictor by the branch's own history and one by the history of all branches, and counters that choose between them
//! (McFarling, 1993; the 21264's).

use super::counters::SaturatingCounters;
use super::direction::{ConditionalBranch, DirectionPredictor};
use super::two_level::TwoLevel;

/// The tournament predictor.
pub(super) struct Tournament {
    pub local: TwoLevel,
    pub global: TwoLevel,
    /// Found by the history of all branches; taken stands for the global predictor.
    pub choice: SaturatingCounters,
    /// The number of directions that find a choice.
    pub history: u32,
}

impl Tournament {
    fn choice(&self, branch: ConditionalBranch) -> usize {
        self.choice.index(branch.recent(self.history) as u64)
    }
}

impl DirectionPredictor for Tournament {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        match self.choice.is_taken(self.choice(branch)) {
            true => self.global.predict(branch),
            false => self.local.predict(branch),
        }
    }

    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool {
        let index = self.choice(branch);
        let local = self.local.train(branch, is_taken);
        let global = self.global.train(branch, is_taken);
        let is_global = self.choice.is_taken(index);
        if local != global {
            self.choice.train(index, global == is_taken);
        }
        if is_global { global } else { local }
    }
}
