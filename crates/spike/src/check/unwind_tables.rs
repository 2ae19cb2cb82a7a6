//! The unwinding tables of an image, by address.

use crate::elf::Elf;
use crate::error::Problem;
use crate::unwind::{NO_ROW, UnwindRow, UnwindingTables};

/// The tables of an image.
#[derive(Debug, Default)]
pub struct UnwindTables {
    /// The first address of a range, the first one after it, and the number of its row; ascending.
    ranges: Vec<(u64, u64, u32)>,
    rows: Vec<UnwindRow>,
}

impl UnwindTables {
    /// Reads them.
    pub fn read(elf: &Elf) -> Result<UnwindTables, Problem> {
        let mut ranges = Vec::new();
        let frames = UnwindingTables::read(elf, |start, end, row| ranges.push((start, end, row)))?;
        ranges.sort_unstable();
        Ok(UnwindTables { ranges, rows: frames.rows })
    }

    /// The row of the instruction at an address.
    pub fn row(&self, address: u64) -> Option<&UnwindRow> {
        let before = self.ranges.partition_point(|range| range.0 <= address).checked_sub(1)?;
        let &(_, end, row) = self.ranges.get(before)?;
        (address < end && row != NO_ROW).then(|| &self.rows[row as usize])
    }
}
