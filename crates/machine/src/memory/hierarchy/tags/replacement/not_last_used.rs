//! Not last used: a victim pointer, as in the 21064's and 21164's TLBs.

use super::policy::{ReplacementPolicy, following};

/// Per set, a victim pointer, which moves on when the way that it points to is used.
#[derive(Debug)]
pub struct NotLastUsed(Box<[u32]>);

impl NotLastUsed {
    pub fn new(sets: usize) -> NotLastUsed {
        NotLastUsed(vec![0; sets].into())
    }
}

impl ReplacementPolicy for NotLastUsed {
    #[inline(always)]
    fn touch(&mut self, set: usize, ways: usize, slot: usize) -> bool {
        let next = &mut self.0[set];
        let is_at_pointer = *next as usize == slot - set * ways;
        if is_at_pointer {
            *next = following(*next, ways);
        }
        is_at_pointer
    }

    #[inline(always)]
    fn pointer(&self, set: usize) -> Option<usize> {
        Some(self.0[set] as usize)
    }

    #[inline]
    fn choose_victim(&mut self, set: usize, _ways: usize) -> usize {
        self.0[set] as usize
    }
}
