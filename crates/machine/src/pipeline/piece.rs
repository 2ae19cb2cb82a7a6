//! Pieces of blocks: what can be issued by one schedule.

use std::ops::Range;

use super::rules::{EMULATED, LOAD, SPECIAL, STORE, Step};
use super::schedule::Schedule;

/// Instructions that follow each other: a block, or what is in one line of it.
pub(super) struct Piece {
    pub address: u64,
    /// Where its steps are.
    pub first: usize,
    pub length: usize,
    /// Accesses of the block before it.
    pub first_access: usize,
    /// Bytes of each access, and whether it is a store.
    pub accesses: Box<[(u8, bool)]>,
    /// Nothing in it has rules that schedules do not know.
    pub is_plain: bool,
    pub schedules: Vec<Schedule>,
}

impl Piece {
    /// The instructions at these places of a block, which is at `address` and whose steps begin at `first`.
    pub fn new(address: u64, first: usize, steps: &[Step], places: Range<usize>) -> Piece {
        let accesses_of = |places: Range<usize>| steps[places].iter().filter(|step| step.accesses());
        let accesses = accesses_of(places.clone()).map(|step| (step.bytes, step.flags & STORE != 0));
        Piece {
            address: address.wrapping_add(4 * places.start as u64),
            first: first + places.start,
            length: places.len(),
            first_access: accesses_of(0..places.start).count(),
            accesses: accesses.collect(),
            is_plain: steps[places].iter().all(|step| step.flags & (SPECIAL | EMULATED) == 0),
            schedules: Vec::new(),
        }
    }

    /// The addresses of its accesses, of those of the block.
    #[inline(always)]
    pub fn own<'a>(&self, addresses: &'a [u64]) -> &'a [u64] {
        addresses.get(self.first_access..).unwrap_or_default()
    }
}

impl Step {
    /// Whether it is a load or a store.
    fn accesses(&self) -> bool {
        self.flags & (LOAD | STORE) != 0
    }
}
