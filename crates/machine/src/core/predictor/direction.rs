//! The trait of all predictors of directions, and the branches that they predict.

/// A conditional branch as a predictor sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConditionalBranch {
    pub address: u64,
    pub target: u64,
    /// The directions of the branches before it, the last one in the lowest bit.
    pub history: u128,
}

impl ConditionalBranch {
    /// The address without its two lowest bits, by which tables are indexed.
    pub fn index(self) -> u64 {
        self.address >> 2
    }

    /// The static prediction: backward branches are taken, forward ones are not.
    pub fn is_backward(self) -> bool {
        self.target <= self.address
    }

    /// The last directions, this many.
    pub fn recent(self, branches: u32) -> u128 {
        self.history & ((1u128 << branches.min(127)) - 1)
    }
}

/// Predicts the directions of conditional branches. Tables are trained by branches that are executed, in program order.
pub(super) trait DirectionPredictor: Send {
    /// Whether the branch is predicted to be taken.
    fn predict(&self, branch: ConditionalBranch) -> bool;

    /// Trains the predictor by the branch's direction. Returns what it had predicted.
    fn train(&mut self, branch: ConditionalBranch, is_taken: bool) -> bool;

    /// A line was filled into L1.
    fn refilled(&mut self, _line: u64, _bytes: u64) {}
}
