//! Pieces of blocks: what is issued at once, as far as the memo of transitions is concerned.

use std::ops::Range;

use super::rules::{STORE, Step};

/// Instructions that follow each other: a block, or what is in one line of it.
pub(super) struct Piece {
    /// No other piece has this one.
    pub number: u32,
    pub address: u64,
    /// Where its steps are.
    pub first: usize,
    pub length: usize,
    /// Its accesses, of those of the block.
    pub accesses: Range<usize>,
    /// Those that are stores.
    pub stores: Box<[u32]>,
    /// What it has in the memo.
    pub transitions: Vec<u32>,
}

impl Piece {
    /// The instructions at these places of a block, which is at `address` and whose steps begin at `first`.
    pub fn new(number: u32, address: u64, first: usize, steps: &[Step], places: Range<usize>) -> Piece {
        let accesses = |places: Range<usize>| steps[places].iter().filter(|step| step.accesses());
        let before = accesses(0..places.start).count();
        let own = (before..).zip(accesses(places.clone()));
        Piece {
            number,
            address: address.wrapping_add(4 * places.start as u64),
            first: first + places.start,
            length: places.len(),
            accesses: before..before + accesses(places.clone()).count(),
            stores: own
                .filter(|(_, step)| step.flags & STORE != 0)
                .map(|(access, _)| access as u32)
                .collect(),
            transitions: Vec::new(),
        }
    }
}
