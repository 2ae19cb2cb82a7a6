//! Numbers of lines, and sets of processors or nodes.

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
///
/// A hash table with open addressing and multiplicative hashing: every access that the hit filter does not serve looks here.
#[derive(Debug)]
pub struct LineNumbers {
    /// A line and its number; [`FREE`] in free slots. At least half of the slots are free.
    slots: Vec<(u64, u32)>,
    count: u32,
}

/// Lines are physical addresses without their low bits, so that no line is all ones.
const FREE: (u64, u32) = (u64::MAX, 0);
/// Slots of an empty table: a power of two, as always.
const FIRST_SLOTS: usize = 1024;

impl LineNumbers {
    pub fn new() -> LineNumbers {
        LineNumbers { slots: vec![FREE; FIRST_SLOTS], count: 0 }
    }

    /// The number of a line.
    #[inline]
    pub fn number(&mut self, line: u64) -> u32 {
        let slot = self.slot(line);
        if self.slots[slot].0 == line {
            return self.slots[slot].1;
        }
        self.add(line)
    }

    /// The same, if the line has been used.
    pub fn find(&self, line: u64) -> Option<u32> {
        let (found, number) = self.slots[self.slot(line)];
        (found == line).then_some(number)
    }

    /// The slot of a line, or the free one that it would get.
    #[inline(always)]
    fn slot(&self, line: u64) -> usize {
        let last = self.slots.len() - 1;
        let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> 32) as usize & last;
        while self.slots[slot].0 != line && self.slots[slot].0 != FREE.0 {
            slot = (slot + 1) & last;
        }
        slot
    }

    #[cold]
    fn add(&mut self, line: u64) -> u32 {
        if 2 * (self.count as usize + 1) > self.slots.len() {
            let larger = vec![FREE; 2 * self.slots.len()];
            let entries = std::mem::replace(&mut self.slots, larger);
            for entry in entries.into_iter().filter(|entry| entry.0 != FREE.0) {
                let slot = self.slot(entry.0);
                self.slots[slot] = entry;
            }
        }
        let (slot, number) = (self.slot(line), self.count);
        self.slots[slot] = (line, number);
        self.count += 1;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_in_the_order_of_their_first_use() {
        let mut numbers = LineNumbers::new();
        let line = |index: u64| index.wrapping_mul(0x1_0000_0001) ^ index << 40;
        for round in 0..2 {
            for index in 0..5000 {
                assert_eq!(numbers.find(line(index)).is_some(), round > 0);
                assert_eq!(numbers.number(line(index)), index as u32);
            }
        }
        assert_eq!(numbers.find(line(5000)), None);
    }
}
