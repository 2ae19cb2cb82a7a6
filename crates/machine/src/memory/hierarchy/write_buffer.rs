//! The write buffer between a cache and its next level.

/// Blocks in the write buffer, each once, in order: a ring, so that entries do not move.
#[derive(Debug)]
pub struct WriteBufferState {
    /// By slot; [`EMPTY_ENTRY`] where a slot is free.
    blocks: Box<[u64]>,
    /// The slot of the oldest block, and the number of blocks. The others follow it, wrapping around.
    oldest: usize,
    count: usize,
}

/// The number of no block.
const EMPTY_ENTRY: u64 = u64::MAX;

impl WriteBufferState {
    /// A buffer with room for this number of blocks.
    pub fn new(most: usize) -> WriteBufferState {
        WriteBufferState { blocks: vec![EMPTY_ENTRY; most].into(), oldest: 0, count: 0 }
    }

    /// Whether the cache has a write buffer.
    pub fn exists(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether a block is in the buffer.
    #[inline(always)]
    pub fn holds(&self, block: u64) -> bool {
        // Branch-free: which slot matches is unpredictable.
        self.blocks.iter().fold(false, |is_there, &held| is_there | (held == block))
    }

    /// Adds a block that is not in the buffer. Returns the oldest one if the buffer was full.
    #[inline(always)]
    pub fn push(&mut self, block: u64) -> Option<u64> {
        let first = if self.count == self.blocks.len() { self.pop() } else { None };
        self.blocks[self.slot(self.count)] = block;
        self.count += 1;
        first
    }

    /// Removes the oldest block.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let first = std::mem::replace(&mut self.blocks[self.oldest], EMPTY_ENTRY);
        self.oldest = self.slot(1);
        self.count -= 1;
        Some(first)
    }

    /// The slot `distance` after that of the oldest block; at most the number of blocks.
    #[inline(always)]
    fn slot(&self, distance: usize) -> usize {
        let slot = self.oldest + distance;
        if slot < self.blocks.len() { slot } else { slot - self.blocks.len() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_leave_in_fifo_order(
            most in 1usize..8,
            uses in prop::collection::vec((0u8..4, 0u64..12), 0..200),
        ) {
            let (mut write_buffer, mut plain) = (WriteBufferState::new(most), VecDeque::new());
            for (what, block) in uses {
                prop_assert_eq!(write_buffer.holds(block), plain.contains(&block));
                if what == 0 {
                    prop_assert_eq!(write_buffer.pop(), plain.pop_front());
                } else if !plain.contains(&block) {
                    plain.push_back(block);
                    let first = if plain.len() > most { plain.pop_front() } else { None };
                    prop_assert_eq!(write_buffer.push(block), first);
                }
            }
        }
    }
}
