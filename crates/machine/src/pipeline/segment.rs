//! Block segments: the units of the transition cache.

use std::ops::Range;

use super::rules::PipelineInstruction;

/// Consecutive instructions of a block: all of it, or those within one instruction line.
pub(super) struct BlockSegment {
    /// Unique.
    pub number: u32,
    /// The transitions that it made last where no other led to the state: without responses of memory, and
    /// with some.
    pub recent: [u32; 2],
    /// Its newest transition, from 1; 0 if it has none.
    pub newest: u32,
    pub address: u64,
    /// The index of its first step.
    pub first: u32,
    pub length: u32,
    /// Its accesses, among those of the block.
    pub accesses: Range<u32>,
    /// Front-end stalls of its first instruction before the segment began.
    pub front_end_stall: u64,
}

impl BlockSegment {
    /// The indices of its steps.
    pub fn steps(&self) -> Range<usize> {
        self.first as usize..(self.first + self.length) as usize
    }

    /// The instructions at `places` of a block, which is at `address` and whose steps begin at `first`.
    pub fn new(
        number: u32,
        address: u64,
        first: usize,
        steps: &[PipelineInstruction],
        places: Range<usize>,
    ) -> BlockSegment {
        let accesses =
            |places: Range<usize>| steps[places].iter().filter(|step| step.accesses()).count() as u32;
        BlockSegment {
            number,
            recent: [0; 2],
            address: address.wrapping_add(4 * places.start as u64),
            first: (first + places.start) as u32,
            length: places.len() as u32,
            accesses: accesses(0..places.start)..accesses(0..places.end),
            newest: 0,
            front_end_stall: 0,
        }
    }
}
