//! Block segments: the units of the transition cache.

use std::ops::Range;

use super::rules::PipelineInstruction;

/// Consecutive instructions of a block: all of it, or those within one instruction line. An instruction that crosses two
/// lines is in the second one; the segment of a first line that has no others is empty.
pub(super) struct BlockSegment {
    /// Unique.
    pub number: u32,
    /// The transitions that it made last where no other led to the state: without responses of memory, and
    /// with some.
    pub recent: [u32; 2],
    /// Its newest transition, from 1; 0 if it has none.
    pub newest: u32,
    /// Where control enters its instruction line.
    pub address: u64,
    /// It begins with a line after the block's first one.
    pub is_later: bool,
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

    /// The instructions at `range` of a block, whose steps begin at `first`. They begin the block, or one of its later
    /// lines, at `address`.
    pub fn new(
        number: u32,
        (address, is_later): (u64, bool),
        first: usize,
        steps: &[PipelineInstruction],
        range: Range<usize>,
    ) -> BlockSegment {
        let accesses =
            |range: Range<usize>| steps[range].iter().filter(|step| step.accesses()).count() as u32;
        BlockSegment {
            number,
            recent: [0; 2],
            address,
            is_later,
            first: (first + range.start) as u32,
            length: range.len() as u32,
            accesses: accesses(0..range.start)..accesses(0..range.end),
            newest: 0,
            front_end_stall: 0,
        }
    }
}
