//! Counters of the executions of blocks by compiled code. They lie close to the code, so that one instruction with a
//! relative address increments them, and in the order of the code, for locality. Not all blocks have one: see `flow`.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is no compiled code that counts"))]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use events::BlockId;

use crate::flow::{self, Term};

/// The maximum number of counters.
pub const MAX_COUNTERS: usize = 8 << 20;

/// A reserved range of the host process's address space.
#[derive(Debug)]
pub struct ReservedRange {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it holds a range of addresses, and accesses nothing there but to unmap it.
unsafe impl Send for ReservedRange {}
// SAFETY: as above.
unsafe impl Sync for ReservedRange {}

impl ReservedRange {
    /// Reserves this number of bytes. Pages are allocated at the first access, and are zero.
    pub fn new(bytes: usize, protection: i32) -> Option<ReservedRange> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping overlaps nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        Some(ReservedRange { base: NonNull::new(base.cast())?, bytes })
    }

    /// Where it begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for ReservedRange {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; its owners are gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The counters of a thread's compiled code. A block may have one in each region that contains it.
#[derive(Debug, Default)]
pub struct BlockCounters {
    /// Where they begin, and what they are a part of.
    mapped: Option<(NonNull<u64>, Arc<ReservedRange>)>,
    /// How each counter in use is evaluated.
    terms: Vec<Term>,
    /// The value of each when executions were last taken.
    taken: Vec<Cell<u64>>,
}

impl BlockCounters {
    /// The number of the first of `count` new counters. None if there is no room. There must be [`MAX_COUNTERS`] counters in `mapping`
    /// from `first` on, the same in every call, which only code that the calling thread runs accesses.
    pub fn next(&mut self, count: usize, first: NonNull<u64>, mapping: &Arc<ReservedRange>) -> Option<usize> {
        self.mapped.get_or_insert_with(|| (first, mapping.clone()));
        let used = self.terms.len();
        (used + count <= MAX_COUNTERS).then_some(used)
    }

    /// Adds counters, which are evaluated by these terms.
    pub fn add(&mut self, terms: impl Iterator<Item = Term>) {
        self.terms.extend(terms);
        self.taken.resize(self.terms.len(), Cell::new(0));
    }

    /// Where the counters begin, once there are any.
    pub fn address(&self) -> Option<NonNull<u64>> {
        self.mapped.as_ref().map(|(first, _)| *first)
    }

    /// How each counter is evaluated.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Increments a counter.
    pub fn increment(&self, counter: usize) {
        self.in_use()[counter].update(|count| count + 1);
    }

    fn in_use(&self) -> &[Cell<u64>] {
        match &self.mapped {
            // SAFETY: `terms` has an element for each counter in use; they are written by code of this thread only, which does not run now.
            Some((first, _)) => unsafe { slice::from_raw_parts(first.as_ptr().cast(), self.terms.len()) },
            None => &[],
        }
    }

    /// Calls `tell` with the executions of blocks since they were last taken. A block may be reported more than once.
    pub fn executions(&self, tell: impl FnMut(BlockId, u64)) {
        flow::take(&self.terms, self.in_use(), &self.taken.clone(), tell);
    }

    /// As [`BlockCounters::executions`], and takes them.
    pub fn take(&self, tell: impl FnMut(BlockId, u64)) {
        flow::take(&self.terms, self.in_use(), &self.taken, tell);
    }

    /// Calls `tell` with all executions since the counters were last cleared, whether taken or not.
    pub fn all_executions(&self, tell: impl FnMut(BlockId, u64)) {
        flow::take(&self.terms, self.in_use(), &vec![Cell::new(0); self.terms.len()], tell);
    }

    /// Sets all counters to zero. The executions that they counted have been taken.
    pub fn clear(&self) {
        self.in_use().iter().chain(&self.taken).for_each(|counter| counter.set(0));
    }

    /// The code that increments the counters is discarded: sums them up into one counter for each executed block.
    pub fn gather(&mut self) {
        let mut sums = BTreeMap::new();
        self.take(|block, times| *sums.entry(block).or_insert(0) += times);
        self.clear();
        self.terms = sums.keys().map(|&block| Term::counter(block)).collect();
        self.taken.truncate(self.terms.len());
        self.in_use().iter().zip(sums.into_values()).for_each(|(counter, sum)| counter.set(sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters in memory of their own, of blocks that were executed so often.
    fn counters(executed: &[(BlockId, u64)]) -> BlockCounters {
        let mapping = Arc::new(ReservedRange::new(4096, libc::PROT_READ | libc::PROT_WRITE).expect("memory"));
        let mut counters = BlockCounters::default();
        let first = counters.next(executed.len(), mapping.base().cast(), &mapping).expect("room");
        counters.add(executed.iter().map(|&(block, _)| Term::counter(block)));
        for (counter, &(_, executions)) in (first..).zip(executed) {
            (0..executions).for_each(|_| counters.increment(counter));
        }
        counters
    }

    fn taken(counters: &BlockCounters) -> Vec<(BlockId, u64)> {
        let mut taken = Vec::new();
        counters.take(|block, times| taken.push((block, times)));
        taken
    }

    #[test]
    fn executions_are_taken_once() {
        let counters = counters(&[(7, 3), (2, 0), (5, 1), (7, 4)]);
        let (mut reported, all) = (Vec::new(), [(7, 3), (5, 1), (7, 4)]);
        counters.executions(|block, times| reported.push((block, times)));
        assert_eq!(reported, all);
        assert_eq!(taken(&counters), all);
        assert_eq!(taken(&counters), []);
        counters.increment(0);
        assert_eq!(taken(&counters), [(7, 1)]);
        reported.clear();
        counters.all_executions(|block, times| reported.push((block, times)));
        assert_eq!(reported, [(7, 4), (5, 1), (7, 4)]);
        counters.clear();
        counters.all_executions(|block, _| panic!("{block} was not cleared"));
    }

    #[test]
    fn none_is_passed_over() {
        let executed: Vec<(BlockId, u64)> =
            (0..100).map(|block| (block, u64::from(block % 37 == 3))).collect();
        assert_eq!(taken(&counters(&executed)), [(3, 1), (40, 1), (77, 1)]);
    }

    /// New counters come behind those that are left, and begin at zero.
    #[test]
    fn forgotten_code_leaves_its_counts() {
        let mut counters = counters(&[(7, 3), (2, 0), (5, 1), (7, 4)]);
        counters.gather();
        let (first, mapping) = counters.mapped.clone().expect("they have one");
        assert_eq!(counters.next(2, first, &mapping), Some(2));
        counters.add([8, 9].into_iter().map(Term::counter));
        counters.increment(3);
        assert_eq!(taken(&counters), [(5, 1), (7, 7), (9, 1)]);
    }

    #[test]
    fn there_is_an_end() {
        let mut counters = counters(&[(1, 1)]);
        let (first, mapping) = counters.mapped.clone().expect("they have one");
        assert_eq!(counters.next(MAX_COUNTERS, first, &mapping), None);
        assert!(counters.next(MAX_COUNTERS - 1, first, &mapping).is_some());
    }
}
