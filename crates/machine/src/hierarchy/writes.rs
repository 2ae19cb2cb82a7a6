//! Stores on their way from a cache to the next one.

/// Blocks that wait in a write buffer, each once. They stay in their places, so that few bytes move.
#[derive(Debug)]
pub struct Writes {
    /// By place; [`NOTHING`] where none is.
    blocks: Box<[u64]>,
    /// The place of the oldest, and how many there are: the others are behind it, and behind the last place the first one.
    oldest: usize,
    count: usize,
}

/// No block's number.
const NOTHING: u64 = u64::MAX;

impl Writes {
    /// A buffer with room for so many.
    pub fn new(most: usize) -> Writes {
        Writes { blocks: vec![NOTHING; most].into(), oldest: 0, count: 0 }
    }

    /// Whether there is a buffer at all.
    pub fn exists(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether a block waits.
    #[inline(always)]
    pub fn holds(&self, block: u64) -> bool {
        // Which of them it is cannot be guessed.
        self.blocks.iter().fold(false, |is_waiting, &held| is_waiting | (held == block))
    }

    /// A block comes in that does not wait yet. Returns the one that has to go.
    #[inline(always)]
    pub fn push(&mut self, block: u64) -> Option<u64> {
        let first = if self.count == self.blocks.len() { self.pop() } else { None };
        self.blocks[self.place(self.count)] = block;
        self.count += 1;
        first
    }

    /// The oldest one goes.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let first = std::mem::replace(&mut self.blocks[self.oldest], NOTHING);
        self.oldest = self.place(1);
        self.count -= 1;
        Some(first)
    }

    /// The place so many behind the oldest: no more than there are.
    #[inline(always)]
    fn place(&self, behind: usize) -> usize {
        let place = self.oldest + behind;
        if place < self.blocks.len() { place } else { place - self.blocks.len() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_leave_in_the_order_in_which_they_came(
            most in 1usize..8,
            uses in prop::collection::vec((0u8..4, 0u64..12), 0..200),
        ) {
            let (mut writes, mut plain) = (Writes::new(most), VecDeque::new());
            for (what, block) in uses {
                prop_assert_eq!(writes.holds(block), plain.contains(&block));
                if what == 0 {
                    prop_assert_eq!(writes.pop(), plain.pop_front());
                } else if !plain.contains(&block) {
                    plain.push_back(block);
                    let first = if plain.len() > most { plain.pop_front() } else { None };
                    prop_assert_eq!(writes.push(block), first);
                }
            }
        }
    }
}
