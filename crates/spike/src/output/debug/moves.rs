//! Where the original instructions went.

use crate::assemble::Assembly;
use crate::program::{CodeExtent, LENGTH, NO_ORIGIN, Program};

/// Original and new addresses of instructions. Instructions that were added count as a part of the one before them.
pub struct Moves<'a> {
    code: &'a CodeExtent,
    base: u64,
    /// Original and new number of each instruction, ascending.
    order: Vec<(u32, u32)>,
    /// The original number of each new instruction.
    origins: Vec<u32>,
}

impl<'a> Moves<'a> {
    /// Those of an assembly.
    pub fn new(program: &'a Program, assembly: &Assembly) -> Moves<'a> {
        let mut origins = assembly.origins.clone();
        for &(start, end) in &assembly.fragments {
            let mut last = NO_ORIGIN;
            let range =
                ((start - assembly.base) / LENGTH) as usize..((end - assembly.base) / LENGTH) as usize;
            for origin in &mut origins[range] {
                if *origin == NO_ORIGIN {
                    *origin = last;
                }
                last = *origin;
            }
        }
        let numbered = origins.iter().copied().zip(0..);
        let mut order: Vec<(u32, u32)> = numbered.filter(|one| one.0 != NO_ORIGIN).collect();
        order.sort_unstable();
        Moves { code: &program.code, base: assembly.base, order, origins }
    }

    fn number(&self, address: u64) -> Option<u32> {
        self.code.index(address)
    }

    /// The address of a new instruction.
    pub fn new_address(&self, index: u32) -> u64 {
        self.base + u64::from(index) * LENGTH
    }

    /// The original address of a new instruction.
    pub fn original(&self, new: u32) -> u64 {
        self.code.address(self.origins[new as usize])
    }

    /// The new address of an original one, if it is one of code that moved. Of an instruction that was removed, that of
    /// the one that follows it.
    pub fn address(&self, address: u64) -> Option<u64> {
        let number = self.number(address)?;
        let at = self.order.partition_point(|one| one.0 < number);
        self.order.get(at).map(|one| self.new_address(one.1))
    }

    /// The new address of the instruction after a call.
    pub fn after_call(&self, address: u64) -> Option<u64> {
        let call = self.number(address.wrapping_sub(LENGTH))?;
        let at = self.order.partition_point(|one| one.0 < call);
        self.order.get(at).filter(|one| one.0 == call).map(|one| self.new_address(one.1) + LENGTH)
    }

    /// Runs of new instructions, ascending, that an original range became: first and last number plus one.
    pub fn runs(&self, start: u64, end: u64) -> Vec<(u32, u32)> {
        let (Some(first), true) = (self.number(start), start < end) else { return Vec::new() };
        let last = first.saturating_add(u32::try_from((end - start).div_ceil(LENGTH)).unwrap_or(u32::MAX));
        let from = self.order.partition_point(|one| one.0 < first);
        let count = self.order[from..].partition_point(|one| one.0 < last);
        let mut new: Vec<u32> = self.order[from..from + count].iter().map(|one| one.1).collect();
        new.sort_unstable();
        let runs = new.chunk_by(|a, b| a + 1 == *b);
        runs.map(|run| (run[0], run[0] + run.len() as u32)).collect()
    }

    /// The new ranges of an original one, first the one in which it begins. A range that is not of code that moved stays.
    pub fn ranges(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        if self.number(start).is_none() {
            return if start < end { vec![(start, end)] } else { Vec::new() };
        }
        let mut ranges: Vec<(u64, u64)> = self
            .runs(start, end)
            .iter()
            .map(|run| (self.new_address(run.0), self.new_address(run.1)))
            .collect();
        let entry = self.address(start).unwrap_or_default();
        if let Some(first) = ranges.iter().position(|range| (range.0..range.1).contains(&entry)) {
            ranges[..=first].rotate_right(1);
        }
        ranges
    }
}
