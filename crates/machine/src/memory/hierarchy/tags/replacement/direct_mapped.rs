//! Sets of one way: there is nothing to choose.

use super::policy::ReplacementPolicy;

/// The only way of a set is the victim.
#[derive(Debug)]
pub struct DirectMapped;

impl ReplacementPolicy for DirectMapped {
    #[inline(always)]
    fn choose_victim(&mut self, _set: usize, _ways: usize) -> usize {
        0
    }
}
