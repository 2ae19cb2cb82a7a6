//! Numbers of lines, and sets of processors or nodes.

use std::collections::HashMap;

/// The bit of a processor, or of a node, in a mask.
pub fn bit(processor: u8) -> u64 {
    1 << processor
}

/// The processors, or nodes, in a mask.
pub fn processors(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let next = (mask != 0).then(|| mask.trailing_zeros() as u8);
        mask &= mask.wrapping_sub(1);
        next
    })
}

/// Numbers lines from 0 in the order of their first use, so that each has one record, however far apart they are.
#[derive(Debug)]
pub struct LineNumbers {
    numbers: HashMap<u64, u32>,
    /// A direct-mapped cache of `numbers`.
    recent: Box<[(u64, u32); RECENT]>,
}

const RECENT: usize = 1024;

impl LineNumbers {
    pub fn new() -> LineNumbers {
        LineNumbers { numbers: HashMap::new(), recent: Box::new([(u64::MAX, 0); RECENT]) }
    }

    /// The number of a line.
    pub fn number(&mut self, line: u64) -> u32 {
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.0 != line {
            let next = self.numbers.len() as u32;
            *recent = (line, *self.numbers.entry(line).or_insert(next));
        }
        recent.1
    }

    /// The same, if the line has been used.
    pub fn find(&self, line: u64) -> Option<u32> {
        self.numbers.get(&line).copied()
    }
}
