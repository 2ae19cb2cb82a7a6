//! The accesses of a block that is executed.

use super::ask::Far;
use super::memory::Served;

/// The accesses of a block: where they go, and what memory said of them.
#[derive(Clone, Copy)]
pub(super) struct Accesses<'a> {
    pub addresses: &'a [u64],
    /// Those that were not near, in order.
    pub far: &'a [Far],
}

impl<'a> Accesses<'a> {
    /// Accesses that are all near.
    #[inline(always)]
    pub fn near(addresses: &'a [u64]) -> Accesses<'a> {
        Accesses { addresses, far: &[] }
    }

    /// The address of an access.
    #[inline(always)]
    pub fn address(self, access: u32) -> u64 {
        self.addresses[access as usize]
    }

    /// What memory said of an access.
    #[inline(always)]
    pub fn served(self, access: u32) -> Served {
        self.far.iter().find(|far| far.number == access).map_or(Served::default(), |far| far.served)
    }

    /// Those that were not near from an access on.
    #[inline(always)]
    pub fn far_from(self, access: u32) -> &'a [Far] {
        let earlier = self.far.iter().take_while(|far| far.number < access).count();
        &self.far[earlier..]
    }
}
