//! Faults over time, in a bounded number of windows: when there are too many, each two become one.

use std::collections::BTreeMap;

use events::record::Mark;
use machine::Sums;

use super::AlignmentTotals;
use crate::models::{Addable, ClassSums, ExecutionPart, UnitClasses};
use table::Value;

/// The greatest number of windows.
const MOST_WINDOWS: u64 = 128;
/// The instructions of a window at first.
const FIRST_LENGTH: u64 = 1 << 14;

/// Faults in windows of the same number of instructions, by class of units of work.
#[derive(Debug)]
pub(super) struct FaultRates {
    /// Instructions of a window.
    length: u64,
    /// The number of instructions at the end of the open window.
    end: u64,
    /// The part of the totals that `counts` have already.
    divided: AlignmentTotals,
    /// By the first instruction of a window, which may have become a part of a longer one.
    counts: ClassSums<u64, AlignmentTotals>,
}

impl Addable for AlignmentTotals {
    fn add(&mut self, other: &AlignmentTotals) {
        Sums::add(self, other);
    }
}

impl Default for FaultRates {
    fn default() -> FaultRates {
        FaultRates {
            length: FIRST_LENGTH,
            end: FIRST_LENGTH,
            divided: AlignmentTotals::default(),
            counts: ClassSums::default(),
        }
    }
}

impl AlignmentTotals {
    /// Faults per 1,000 instructions.
    pub(super) fn rate(self) -> Value {
        Value::from(1000.0 * self.faults as f64 / self.instructions as f64)
    }
}

impl FaultRates {
    /// So much is counted now, the last of it in this thread. The faults of a block belong to the window in which it begins.
    #[inline]
    pub fn reach(&mut self, thread: u32, totals: AlignmentTotals) {
        if totals.instructions >= self.end {
            self.end_windows(thread, totals);
        }
    }

    #[cold]
    fn end_windows(&mut self, thread: u32, totals: AlignmentTotals) {
        while totals.instructions >= self.end {
            self.divide(thread, AlignmentTotals { instructions: self.end, ..totals });
            if self.end == self.length * MOST_WINDOWS {
                self.length *= 2;
            }
            self.end += self.length;
        }
    }

    /// Counts that are in no window yet belong to the open one, and to the unit of work of this thread.
    pub fn divide(&mut self, thread: u32, totals: AlignmentTotals) {
        let new = totals.since(&self.divided);
        if new != AlignmentTotals::default() {
            Sums::add(self.counts.now(thread, self.end - self.length), &new);
            self.divided = totals;
        }
    }

    /// A mark of a thread, when so much is counted.
    pub fn mark(&mut self, thread: u32, mark: Mark, totals: AlignmentTotals, classes: &UnitClasses) {
        self.divide(thread, totals);
        self.counts.mark(thread, mark, classes);
    }

    /// The windows in which a part of the execution has instructions, by the first instruction of all parts in them.
    pub fn windows(&self, part: ExecutionPart) -> BTreeMap<u64, AlignmentTotals> {
        let mut windows: BTreeMap<u64, AlignmentTotals> = BTreeMap::new();
        for (from, counts) in self.counts.of_part(part) {
            Sums::add(windows.entry(from - from % self.length).or_default(), counts);
        }
        windows
    }

    /// All of a part of the execution.
    pub fn totals(&self, part: ExecutionPart) -> AlignmentTotals {
        let mut totals = AlignmentTotals::default();
        self.counts.of_part(part).for_each(|(_, counts)| Sums::add(&mut totals, counts));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_however_long_it_takes() {
        let (mut rates, mut totals) = (FaultRates::default(), AlignmentTotals::default());
        let mut classes = UnitClasses::default();
        (0..10_000).for_each(|unit| classes.add(unit, ["even", "odd"][unit as usize % 2]));
        let mut of_parts = [AlignmentTotals::default(); 3];
        // Blocks of up to 50,000 instructions, each with as many faults as its number modulo 3; two of five are units.
        for block in 0..10_000u64 {
            let begins = [Mark::UnitBegins(block), Mark::UnitEnds(block)];
            let counts = AlignmentTotals {
                instructions: 1 + block * 7919 % 50_000,
                faults: block % 3,
                ..AlignmentTotals::default()
            };
            let is_unit = block % 5 < 2;
            if is_unit {
                rates.mark(0, begins[0], totals, &classes);
            }
            Sums::add(&mut totals, &counts);
            rates.reach(0, totals);
            if is_unit {
                rates.mark(0, begins[1], totals, &classes);
            }
            rates.divide(0, totals);
            Sums::add(&mut of_parts[if is_unit { block as usize % 2 } else { 2 }], &counts);
            if block % 100 != 0 {
                continue;
            }
            let windows = rates.windows(ExecutionPart::Whole);
            assert!(windows.len() as u64 <= MOST_WINDOWS);
            assert_eq!(windows.len() as u64, totals.instructions.div_ceil(rates.length));
            assert!(windows.values().rev().skip(1).all(|window| window.instructions == rates.length));
            let parts = [ExecutionPart::Class(0), ExecutionPart::Class(1), ExecutionPart::OutsideUnits];
            assert_eq!(parts.map(|part| rates.totals(part)), of_parts, "after {totals:?}");
            let mut sums = BTreeMap::<u64, AlignmentTotals>::new();
            for (from, window) in parts.into_iter().flat_map(|part| rates.windows(part)) {
                Sums::add(sums.entry(from).or_default(), &window);
            }
            assert_eq!(sums, windows);
            assert_eq!(rates.totals(ExecutionPart::Whole), totals);
        }
    }
}
