//! A model of the contents of memory, for prediction.

use super::table::{CodecTable, table};

/// A direct-mapped table of quadwords that were stored, or whose values were inferred after a load.
pub(super) struct MemoryModel {
    /// By a hash of the address: the address and the quadword.
    words: CodecTable<(u64, u64), MEMORY_SIZE>,
}

const MEMORY_BITS: u32 = 13;
const MEMORY_SIZE: usize = 1 << MEMORY_BITS;

impl MemoryModel {
    pub fn new() -> MemoryModel {
        MemoryModel { words: table((0, 0)) }
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
