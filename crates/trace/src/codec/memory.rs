//! What is thought to be in memory.

use super::table::{Table, table};

/// Quadwords in memory that were seen to be stored, or found out after they had been loaded.
pub(super) struct Memory {
    /// By a hash of the address: the address, and what is there.
    words: Table<(u64, u64), MEMORY_SIZE>,
}

const MEMORY_BITS: u32 = 13;
const MEMORY_SIZE: usize = 1 << MEMORY_BITS;

impl Memory {
    pub fn new() -> Memory {
        Memory { words: table((0, 0)) }
    }

    #[inline(always)]
    fn word(&mut self, address: u64) -> &mut (u64, u64) {
        let index = (address >> 3 ^ address >> (3 + MEMORY_BITS)) as usize % MEMORY_SIZE;
        &mut self.words[index]
    }

    #[inline(always)]
    pub fn get(&mut self, address: u64) -> Option<u64> {
        let word = *self.word(address);
        (word.0 == address).then_some(word.1)
    }

    #[inline(always)]
    pub fn set(&mut self, address: u64, value: u64) {
        *self.word(address) = (address, value);
    }
}
