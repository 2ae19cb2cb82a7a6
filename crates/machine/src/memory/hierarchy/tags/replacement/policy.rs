//! The trait of all replacement policies.

/// The state of a replacement policy for all sets. A way's slot is the set's number times the number of ways, plus the way.
pub trait ReplacementPolicy {
    /// A slot of a set is used or filled. Returns whether the victim pointer moved.
    #[inline(always)]
    fn touch(&mut self, _set: usize, _ways: usize, _slot: usize) -> bool {
        false
    }

    /// The way at the victim pointer of a set, for a policy that has one which uses move.
    #[inline(always)]
    fn pointer(&self, _set: usize) -> Option<usize> {
        None
    }

    /// The way of a full set that is the victim.
    fn choose_victim(&mut self, set: usize, ways: usize) -> usize;

    /// A slot of a set is free from now on.
    fn remove(&mut self, _set: usize, _ways: usize, _slot: usize) {}
}

/// The way after a way, in a circle.
#[inline(always)]
pub fn following(way: u32, ways: usize) -> u32 {
    if way as usize + 1 == ways { 0 } else { way + 1 }
}
