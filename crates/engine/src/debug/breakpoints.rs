//! The breakpoints of a debugger.
//!
//! A function that computes its global pointer has a second entry after that code, for callers with the same global
//! pointer. A thread that enters there is reported to the debugger as being at the first entry, and skips the
//! instructions between the entries. It stops at breakpoints on these instructions nevertheless, including those that
//! a debugger sets to step, as GDB does on Alpha.

use std::collections::BTreeSet;

use isa::InstructionSet;

/// The breakpoints of a program.
#[derive(Clone, Debug)]
pub(super) struct Breakpoints {
    instruction_set: &'static dyn InstructionSet,
    set: BTreeSet<u64>,
    /// The second entries of functions that have breakpoints on instructions before these.
    second_entries: BTreeSet<u64>,
}

impl Breakpoints {
    /// None in a program of an instruction set.
    pub(super) fn new(instruction_set: &'static dyn InstructionSet) -> Breakpoints {
        Breakpoints { instruction_set, set: BTreeSet::new(), second_entries: BTreeSet::new() }
    }

    /// Adds a breakpoint. `second_entry` is the function's second entry if the address is before it. False if the
    /// address has a breakpoint already.
    pub(super) fn insert(&mut self, address: u64, second_entry: Option<u64>) -> bool {
        self.second_entries.extend(second_entry);
        self.set.insert(address)
    }

    /// Removes a breakpoint. False if the address has none.
    pub(super) fn remove(&mut self, address: u64) -> bool {
        let was_there = self.set.remove(&address);
        let (set, instruction_set) = (&self.set, self.instruction_set);
        self.second_entries
            .retain(|&second| before(instruction_set, second).any(|address| set.contains(&address)));
        was_there
    }

    /// Whether the address has a breakpoint.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.set.contains(&address)
    }

    /// The first breakpoint between the function's start and this second entry, after `passed` if that is given.
    pub(super) fn before_second_entry(&self, address: u64, passed: Option<u64>) -> Option<u64> {
        if !self.second_entries.contains(&address) {
            return None;
        }
        before(self.instruction_set, address)
            .find(|at| passed.is_none_or(|passed| *at > passed) && self.contains(*at))
    }

    /// The addresses at which threads may have to stop, in ascending order.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.set.union(&self.second_entries).copied().collect()
    }
}

/// The addresses between a function's start and its second entry.
fn before(set: &'static dyn InstructionSet, second_entry: u64) -> impl Iterator<Item = u64> {
    let alignment = set.code_alignment();
    (1..=set.second_entry() / alignment).rev().map(move |back| second_entry.wrapping_sub(alignment * back))
}
