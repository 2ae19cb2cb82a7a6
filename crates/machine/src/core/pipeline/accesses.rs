//! The accesses of one execution of a block.

use super::memory::ServedBy;
use super::resolve::L1Miss;

/// The accesses of a block: addresses, and the responses of memory.
#[derive(Clone, Copy)]
pub(super) struct BlockAccesses<'a> {
    pub addresses: &'a [u64],
    /// The bytes of each.
    pub bytes: &'a [u8],
    /// The misses, in order.
    pub misses: &'a [L1Miss],
}

impl<'a> BlockAccesses<'a> {
    /// Accesses that all hit L1.
    #[inline(always)]
    pub fn all_hits(addresses: &'a [u64], bytes: &'a [u8]) -> BlockAccesses<'a> {
        BlockAccesses { addresses, bytes, misses: &[] }
    }

    /// The address of an access.
    #[inline(always)]
    pub fn address(self, access: u32) -> u64 {
        self.addresses[access as usize]
    }

    /// The bytes of an access.
    #[inline(always)]
    pub fn bytes(self, access: u32) -> u8 {
        self.bytes[access as usize]
    }

    /// How an access was served.
    #[inline(always)]
    pub fn served(self, access: u32) -> ServedBy {
        self.misses
            .iter()
            .find(|misses| misses.number == access)
            .map_or(ServedBy::default(), |misses| misses.served)
    }

    /// The misses from an access on.
    #[inline(always)]
    pub fn misses_from(self, access: u32) -> &'a [L1Miss] {
        let earlier = self.misses.iter().take_while(|misses| misses.number < access).count();
        &self.misses[earlier..]
    }
}
