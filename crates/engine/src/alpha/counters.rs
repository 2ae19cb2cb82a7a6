//! How often compiled code executed each block. The counters lie close to the code, so that it adds to them by one
//! instruction, and in its order, so that what runs together is together.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there is no compiled code that counts"))]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use trace::BlockId;

/// Counters, at most.
pub(super) const MOST: usize = 8 << 20;

/// So many are looked at together.
const TOGETHER: usize = 16;

/// Address space of the process.
#[derive(Debug)]
pub(super) struct Space {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is address space, whoever uses it.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves so much; pages come as they are touched, and are zero.
    pub(super) fn new(bytes: usize, protection: i32) -> Option<Space> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping overlaps nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        Some(Space { base: NonNull::new(base.cast())?, bytes })
    }

    /// Where it begins.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; its owners are gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The counters of a thread's blocks. A block has one in each piece of code that it is a part of.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Where they begin, and what they are a part of.
    place: Option<(NonNull<u64>, Arc<Space>)>,
    /// The block of each one in use.
    blocks: Vec<BlockId>,
}

impl Counters {
    /// The host address of so many new ones. None if there is no room. The caller has [`MOST`] of them in `space`,
    /// from `first` on, always the same, and nobody else uses them but code that the calling thread runs.
    pub(super) fn next(&mut self, count: usize, first: NonNull<u64>, space: &Arc<Space>) -> Option<u64> {
        let (first, _) = self.place.get_or_insert_with(|| (first, space.clone()));
        let used = self.blocks.len();
        // SAFETY: no more than `MOST`.
        (used + count <= MOST).then(|| unsafe { first.as_ptr().add(used) } as u64)
    }

    /// The new ones are these blocks'.
    pub(super) fn add(&mut self, blocks: &[BlockId]) {
        self.blocks.extend(blocks);
    }

    /// Those in use, by block.
    fn in_use(&self) -> impl Iterator<Item = (BlockId, &Cell<u64>)> {
        let counters: &[Cell<u64>] = match &self.place {
            // SAFETY: as many as there are blocks are in use, by code of this thread only, which does not run now.
            Some((first, _)) => unsafe { slice::from_raw_parts(first.as_ptr().cast(), self.blocks.len()) },
            None => &[],
        };
        // Most are zero, and many together.
        let some = self.blocks.chunks(TOGETHER).zip(counters.chunks(TOGETHER));
        some.filter(|(_, counters)| counters.iter().fold(0, |all, counter| all | counter.get()) != 0)
            .flat_map(|(blocks, counters)| blocks.iter().copied().zip(counters))
            .filter(|(_, counter)| counter.get() != 0)
    }

    /// What was executed how often and was not taken yet; a block maybe in parts.
    pub(super) fn executions(&self) -> impl Iterator<Item = (BlockId, u64)> {
        self.in_use().map(|(block, counter)| (block, counter.get()))
    }

    /// Takes the same: from then on it is counted anew.
    pub(super) fn take(&self) -> impl Iterator<Item = (BlockId, u64)> {
        self.in_use().map(|(block, counter)| (block, counter.take()))
    }

    /// The code that adds to them is forgotten: from now on each block has one, if it was executed.
    pub(super) fn gather(&mut self) {
        let mut sums = BTreeMap::new();
        self.take().for_each(|(block, executions)| *sums.entry(block).or_insert(0) += executions);
        self.blocks = sums.keys().copied().collect();
        let Some((first, _)) = &self.place else { return };
        for (index, sum) in sums.values().enumerate() {
            // SAFETY: there are no more of them than before.
            unsafe { first.as_ptr().add(index).write(*sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters in memory of their own, where blocks were executed so often.
    fn counters(executed: &[(BlockId, u64)]) -> (Counters, *mut u64) {
        let space = Arc::new(Space::new(4096, libc::PROT_READ | libc::PROT_WRITE).expect("memory"));
        let mut counters = Counters::default();
        let first = counters.next(executed.len(), space.base().cast(), &space).expect("room") as *mut u64;
        counters.add(&executed.iter().map(|(block, _)| *block).collect::<Vec<_>>());
        for (index, (_, executions)) in executed.iter().enumerate() {
            // SAFETY: there is room for some hundred.
            unsafe { first.add(index).write(*executions) };
        }
        (counters, first)
    }

    #[test]
    fn executions_are_taken_once() {
        let (counters, _) = counters(&[(7, 3), (2, 0), (5, 1), (7, 4)]);
        let all = [(7, 3), (5, 1), (7, 4)];
        assert_eq!(counters.executions().collect::<Vec<_>>(), all);
        assert_eq!(counters.take().collect::<Vec<_>>(), all);
        assert_eq!(counters.take().count(), 0);
    }

    #[test]
    fn none_is_passed_over() {
        let executed: Vec<(BlockId, u64)> =
            (0..100).map(|block| (block, u64::from(block % 37 == 3))).collect();
        let (counters, _) = counters(&executed);
        assert_eq!(counters.take().collect::<Vec<_>>(), [(3, 1), (40, 1), (77, 1)]);
    }

    /// New counters come behind those that are left, and begin at zero.
    #[test]
    fn forgotten_code_leaves_its_counts() {
        let (mut counters, first) = counters(&[(7, 3), (2, 0), (5, 1), (7, 4)]);
        counters.gather();
        assert_eq!(counters.executions().collect::<Vec<_>>(), [(5, 1), (7, 7)]);
        let (_, space) = counters.place.clone().expect("they have one");
        let next = counters.next(2, space.base().cast(), &space).expect("room") as *mut u64;
        // SAFETY: as above.
        assert_eq!(unsafe { (next.offset_from(first), *next, *next.add(1)) }, (2, 0, 0));
    }

    #[test]
    fn there_is_an_end() {
        let (mut counters, _) = counters(&[(1, 1)]);
        let (first, space) = counters.place.clone().expect("they have one");
        assert_eq!(counters.next(MOST, first, &space), None);
        assert!(counters.next(MOST - 1, first, &space).is_some());
    }
}
