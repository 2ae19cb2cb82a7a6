//! From addresses in the code cache to the program's, for signals.

use super::{BlockCopy, CodeCache, SAVED_NONE};

/// A point of the program in translated code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramPoint {
    /// The block.
    pub block: u32,
    /// The index of its instruction.
    pub index: usize,
    /// The instruction's address in the program.
    pub address: u64,
    /// The register whose value is in a slot, and the slot.
    pub saved: Option<(u8, usize)>,
}

impl CodeCache {
    /// Whether a range has memory of the code cache.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.zones.iter().any(|zone| zone.overlaps(start, end))
    }

    /// Blocks so far.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The address in the program of the block whose translation begins here.
    pub fn block_entered_at(&self, code: u64) -> Option<u64> {
        let zone = self.zones.iter().find(|zone| zone.contains(code))?;
        let (start, block) = zone.block_at(code)?;
        (start == code).then(|| self.blocks[block as usize].address)
    }

    /// The instruction whose translation is at an address.
    pub fn locate(&self, code: u64) -> Option<ProgramPoint> {
        let zone = self.zones.iter().find(|zone| zone.contains(code))?;
        let (entry, block) = zone.block_at(code)?;
        let BlockCopy { address, starts, .. } = &self.blocks[block as usize];
        let offset = u32::try_from(code - entry).ok()?;
        let after = starts.partition_point(|start| start.code <= offset);
        let start = starts.get(after.checked_sub(1)?)?;
        let index = {
            let mut sources: Vec<u16> = starts[..after].iter().map(|start| start.source).collect();
            sources.dedup();
            sources.len() - 1
        };
        let saved = (start.saved != SAVED_NONE).then_some((start.saved & 15, usize::from(start.saved >> 4)));
        Some(ProgramPoint { block, index, address: address + u64::from(start.source), saved })
    }

    /// Whether a block has counted itself before an instruction.
    pub fn is_counted(&self, point: &ProgramPoint) -> bool {
        usize::from(self.blocks[point.block as usize].counts_before) <= point.index
    }

    /// The block of the first instructions of a block; None if there are none.
    pub fn prefix(&mut self, block: u32, instructions: usize) -> Option<u32> {
        let whole = &self.blocks[block as usize];
        if instructions == 0 {
            return None;
        }
        let number = instructions as u16;
        if let Some(&(_, known)) = whole.prefixes.iter().find(|(count, _)| *count == number) {
            return Some(known);
        }
        let mut sources: Vec<u16> = whole.starts.iter().map(|start| start.source).collect();
        sources.dedup();
        let size = u32::from(*sources.get(instructions)?);
        let prefix = BlockCopy {
            address: whole.address,
            size,
            entry: 0,
            indirect_entry: 0,
            trace: self.blocks.len() as u32,
            counts_before: 0,
            starts: Box::default(),
            linked: Vec::new(),
            prefixes: Vec::new(),
            image: whole.image,
        };
        let prefix = self.define(prefix);
        self.blocks[block as usize].prefixes.push((number, prefix));
        Some(prefix)
    }
}
