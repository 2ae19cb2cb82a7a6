//! Pieces of blocks: what is issued at once, as far as the memo of transitions is concerned.

use std::ops::Range;

use super::rules::Step;

/// Instructions that follow each other: a block, or what is in one line of it.
pub(super) struct Piece {
    /// No other piece has this one.
    pub number: u32,
    /// The transitions that it made last where none was before: having heard nothing of memory, and having heard something.
    pub recent: [u32; 2],
    /// Its newest transition, from 1; 0 if it has none.
    pub newest: u32,
    pub address: u64,
    /// Where its steps are.
    pub first: u32,
    pub length: u32,
    /// Its accesses, of those of the block.
    pub accesses: Range<u32>,
    /// Cycles that its first instruction was waited for before there was anything of the piece.
    pub dry: u64,
}

impl Piece {
    /// Where its steps are.
    pub fn steps(&self) -> Range<usize> {
        self.first as usize..(self.first + self.length) as usize
    }

    /// The instructions at these places of a block, which is at `address` and whose steps begin at `first`.
    pub fn new(number: u32, address: u64, first: usize, steps: &[Step], places: Range<usize>) -> Piece {
        let accesses =
            |places: Range<usize>| steps[places].iter().filter(|step| step.accesses()).count() as u32;
        Piece {
            number,
            recent: [0; 2],
            address: address.wrapping_add(4 * places.start as u64),
            first: (first + places.start) as u32,
            length: places.len() as u32,
            accesses: accesses(0..places.start)..accesses(0..places.end),
            newest: 0,
            dry: 0,
        }
    }
}
