//! Where a debugger wants threads to stop.
//!
//! A function that computes its global pointer has a second entry, behind that, for callers that share it. Who enters
//! there is, to the debugger, at the first entry, and comes to the second one without executing what lies between: so
//! it stops at breakpoints there, also at those of a debugger that steps with breakpoints, as GDB does on Alpha.

use std::collections::BTreeSet;

use crate::places::SECOND_ENTRY;

/// The breakpoints of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Breakpoints {
    set: BTreeSet<u64>,
    /// The second entries of functions that have breakpoints before these.
    second_entries: BTreeSet<u64>,
}

impl Breakpoints {
    /// Adds one. `second_entry` is that of the function, if the address is before it. False if there is one.
    pub(super) fn insert(&mut self, address: u64, second_entry: Option<u64>) -> bool {
        self.second_entries.extend(second_entry);
        self.set.insert(address)
    }

    /// Removes one. False if there is none.
    pub(super) fn remove(&mut self, address: u64) -> bool {
        let was_there = self.set.remove(&address);
        let set = &self.set;
        self.second_entries.retain(|&second| before(second).any(|address| set.contains(&address)));
        was_there
    }

    /// Whether there is one at an address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.set.contains(&address)
    }

    /// The first breakpoint before a second entry, behind `passed` if that is given.
    pub(super) fn before_second_entry(&self, address: u64, passed: Option<u64>) -> Option<u64> {
        if !self.second_entries.contains(&address) {
            return None;
        }
        before(address).find(|at| passed.is_none_or(|passed| *at > passed) && self.contains(*at))
    }

    /// Where threads may have to stop, in order.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.set.union(&self.second_entries).copied().collect()
    }
}

/// The instructions before a second entry.
fn before(second_entry: u64) -> impl Iterator<Item = u64> {
    (1..=SECOND_ENTRY / 4).rev().map(move |back| second_entry.wrapping_sub(4 * back))
}
