//! First in, first out.

use super::policy::{ReplacementPolicy, following};

/// Per set, the way that is replaced next.
#[derive(Debug)]
pub struct Fifo(Box<[u32]>);

impl Fifo {
    pub fn new(sets: usize) -> Fifo {
        Fifo(vec![0; sets].into())
    }
}

impl ReplacementPolicy for Fifo {
    #[inline]
    fn choose_victim(&mut self, set: usize, ways: usize) -> usize {
        let following = following(self.0[set], ways);
        std::mem::replace(&mut self.0[set], following) as usize
    }
}
