//! Static prediction: backward branches are taken, forward ones are not.

use super::direction::{ConditionalBranch, DirectionPredictor};

/// Backward branches are taken, forward ones are not.
pub(super) struct StaticPredictor;

impl DirectionPredictor for StaticPredictor {
    fn predict(&self, branch: ConditionalBranch) -> bool {
        branch.is_backward()
    }

    fn train(&mut self, branch: ConditionalBranch, _is_taken: bool) -> bool {
        branch.is_backward()
    }
}
