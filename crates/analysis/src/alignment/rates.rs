//! Faults over time, in a bounded number of windows: when there are too many, each two become one.

use std::collections::BTreeMap;

use events::record::Mark;
use machine::Sums;

use super::Totals;
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
    /// What `counts` have already.
    divided: Totals,
    /// By the first instruction of a window, which may have become a part of a longer one.
    counts: ClassSums<u64, Totals>,
}

impl Addable for Totals {
    fn add(&mut self, other: &Totals) {
        Sums::add(self, other);
    }
}

impl Default for FaultRates {
    fn default() -> FaultRates {
        FaultRates {
            length: FIRST_LENGTH,
            end: FIRST_LENGTH,
            divided: Totals::default(),
            counts: ClassSums::default(),
        }
    }
}

impl Totals {
    /// Faults per 1,000 instructions.
    pub(super) fn rate(self) -> Value {
        Value::from(1000.0 * self.faults as f64 / self.instructions as f64)
    }
}

impl FaultRates {
    /// So much is counted now, the last of it in this thread. The faults of a block belong to the window in which it begins.
    #[inline]
    pub fn reach(&mut self, thread: u32, totals: Totals) {
        if totals.instructions >= self.end {
            self.end_windows(thread, totals);
        }
    }

    #[cold]
    fn end_windows(&mut self, thread: u32, totals: Totals) {
        while totals.instructions >= self.end {
            self.divide(thread, Totals { instructions: self.end, ..totals });
            if self.end == self.length * MOST_WINDOWS {
                self.length *= 2;
            }
            self.end += self.length;
        }
    }

    /// What is counted now and is in no window yet belongs to the open one, and to the unit of work of this thread.
    pub fn divide(&mut self, thread: u32, totals: Totals) {
        let new = totals.since(&self.divided);
        if new != Totals::default() {
            Sums::add(self.counts.now(thread, self.end - self.length), &new);
            self.divided = totals;
        }
    }

    /// A mark of a thread, when so much is counted.
    pub fn mark(&mut self, thread: u32, mark: Mark, totals: Totals, classes: &UnitClasses) {
        self.divide(thread, totals);
        self.counts.mark(thread, mark, classes);
    }

    /// The windows in which a part of the execution has instructions, by the first instruction of all parts in them.
    pub fn windows(&self, part: ExecutionPart) -> BTreeMap<u64, Totals> {
        let mut windows: BTreeMap<u64, Totals> = BTreeMap::new();
        for (from, counts) in self.counts.of_part(part) {
            Sums::add(windows.entry(from - from % self.length).or_default(), counts);
        }
        windows
    }

    /// All of a part of the execution.
    pub fn totals(&self, part: ExecutionPart) -> Totals {
        let mut totals = Totals::default();
        self.counts.of_part(part).for_each(|(_, counts)| Sums::add(&mut totals, counts));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_however_long_it_takes() {
        let (mut rates, mut totals) = (FaultRates::default(), Totals::default());
        let mut classes = UnitClasses::default();
        (0..10_000).for_each(|unit| classes.add(unit, ["even", "odd"][unit as usize % 2]));
        let mut of_parts = [Totals::default(); 3];
        // Blocks of up to 50,000 instructions, each with as many faults as its number modulo 3; two of five are units.
        for block in 0..10_000u64 {
            let begins = [Mark::UnitBegins(block), Mark::UnitEnds(block)];
            let counts =
                Totals { instructions: 1 + block * 7919 % 50_000, faults: block % 3, ..Totals::default() };
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
            let mut sums = BTreeMap::<u64, Totals>::new();
            for (from, window) in parts.into_iter().flat_map(|part| rates.windows(part)) {
                Sums::add(sums.entry(from).or_default(), &window);
            }
            assert_eq!(sums, windows);
            assert_eq!(rates.totals(ExecutionPart::Whole), totals);
        }
    }
}
