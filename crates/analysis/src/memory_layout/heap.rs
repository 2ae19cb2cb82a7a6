//! Blocks of the heap by the call that allocated them, for traces with heap marks.

use std::collections::{BTreeMap, HashMap};

use events::Thread;
use events::record::{Heap as Mark, NAME_BYTES};

use super::at;

/// The heaps of all processes.
#[derive(Debug, Default)]
pub struct Heaps {
    /// By process: the end and the array of each block, by its start.
    processes: Vec<BTreeMap<u64, (u64, u32)>>,
    /// By thread.
    threads: HashMap<u32, HeapThreadState>,
    /// The number of blocks in all heaps.
    blocks: usize,
}

/// The origin of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrigin<'n> {
    /// The return address of the call that allocated it.
    Caller(u64),
    /// The name of a block that was allocated before.
    Named(&'n str),
}

/// The state of a thread between its heap marks.
#[derive(Clone, Debug, Default)]
struct HeapThreadState {
    caller: u64,
    /// The bytes of a name so far.
    name: Vec<u8>,
    size: u64,
    /// The block that was freed.
    freed: Option<(u64, (u64, u32))>,
}

/// The most bytes of a name.
const LONGEST_NAME: usize = 256;
/// The greatest number of blocks: it bounds the memory that a damaged trace can take.
const MAX_BLOCKS: usize = 1 << 22;

impl Heaps {
    /// The array of the block that contains an address of a process.
    #[inline]
    pub fn find(&self, process: u32, address: u64) -> Option<u32> {
        self.block(process, address).map(|(_, array)| array)
    }

    /// The start and the array of the block that contains an address of a process.
    #[inline]
    pub fn block(&self, process: u32, address: u64) -> Option<(u64, u32)> {
        let (&start, &(end, array)) = self.processes.get(process as usize)?.range(..=address).next_back()?;
        (address < end).then_some((start, array))
    }

    /// Follows a mark; `array` returns the array of blocks of an origin.
    pub fn mark(&mut self, thread: Thread, mark: Mark, array: impl FnOnce(BlockOrigin) -> u32) {
        let state = self.threads.entry(thread.number).or_default();
        match mark {
            Mark::Caller(address) => {
                state.caller = address;
                state.name.clear();
            }
            Mark::Name(bytes) => {
                let bytes = bytes.to_le_bytes().into_iter().take(NAME_BYTES).filter(|&byte| byte != 0);
                let room = LONGEST_NAME.saturating_sub(state.name.len());
                state.name.extend(bytes.take(room));
            }
            Mark::Size(bytes) => state.size = bytes,
            Mark::Block(0) => {
                if let Some((start, (end, array))) = state.freed.take() {
                    self.add(thread.process, start, end, array);
                }
            }
            Mark::Block(start) => {
                let end = start.saturating_add(state.size);
                let name = std::mem::take(&mut state.name);
                let array = match name.is_empty() {
                    true => array(BlockOrigin::Caller(state.caller)),
                    false => array(BlockOrigin::Named(&String::from_utf8_lossy(&name))),
                };
                self.add(thread.process, start, end, array);
            }
            Mark::Freed(start) => {
                let block = at(&mut self.processes, thread.process).remove(&start);
                self.blocks -= usize::from(block.is_some());
                state.freed = block.map(|block| (start, block));
            }
            Mark::Copied(parent) => {
                let parent = at(&mut self.processes, parent);
                let copy =
                    if self.blocks + parent.len() <= MAX_BLOCKS { parent.clone() } else { BTreeMap::new() };
                let own = at(&mut self.processes, thread.process);
                if own.is_empty() {
                    self.blocks += copy.len();
                    *own = copy;
                }
            }
            Mark::Gone => {
                self.blocks -= std::mem::take(at(&mut self.processes, thread.process)).len();
            }
        }
    }

    /// Adds a block, and removes blocks that overlap it: they were freed without a mark.
    fn add(&mut self, process: u32, start: u64, end: u64, array: u32) {
        let blocks = at(&mut self.processes, process);
        while let Some((&other, &(other_end, _))) = blocks.range(..end).next_back()
            && other_end > start
        {
            blocks.remove(&other);
            self.blocks -= 1;
        }
        if start < end && self.blocks < MAX_BLOCKS {
            blocks.insert(start, (end, array));
            self.blocks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_and_go() {
        let mut heaps = Heaps::default();
        let thread = |process, number| Thread { process, number };
        let allocate = |heaps: &mut Heaps, thread, start, size, array: u32| {
            for mark in [Mark::Caller(0x100 + u64::from(array)), Mark::Size(size), Mark::Block(start)] {
                heaps.mark(thread, mark, |origin| match origin {
                    BlockOrigin::Caller(caller) => (caller - 0x100) as u32,
                    BlockOrigin::Named(_) => panic!(),
                });
            }
        };
        let free = |heaps: &mut Heaps, thread, start| heaps.mark(thread, Mark::Freed(start), |_| panic!());
        allocate(&mut heaps, thread(0, 0), 1000, 10, 5);
        allocate(&mut heaps, thread(0, 1), 1010, 10, 6);
        let found =
            |heaps: &Heaps, process| [999, 1000, 1009, 1010, 1019, 1020].map(|at| heaps.find(process, at));
        assert_eq!(found(&heaps, 0), [None, Some(5), Some(5), Some(6), Some(6), None]);
        assert_eq!(found(&heaps, 1), [None; 6]);
        // A forked process begins with a copy of its parent's blocks.
        heaps.mark(thread(1, 2), Mark::Copied(0), |_| panic!());
        free(&mut heaps, thread(0, 0), 1000);
        assert_eq!(found(&heaps, 0), [None, None, None, Some(6), Some(6), None]);
        assert_eq!(found(&heaps, 1)[1..3], [Some(5); 2]);
        // A block that realloc could not enlarge stays.
        heaps.mark(thread(0, 0), Mark::Block(0), |_| panic!());
        assert_eq!(heaps.find(0, 1000), Some(5));
        // A block replaces those that it overlaps.
        allocate(&mut heaps, thread(0, 0), 1005, 7, 7);
        assert_eq!(found(&heaps, 0), [None, None, Some(7), Some(7), None, None]);
        assert_eq!([1005, 1011, 1012].map(|at| heaps.find(0, at)), [Some(7), Some(7), None]);
        heaps.mark(thread(1, 2), Mark::Gone, |_| panic!());
        assert_eq!((found(&heaps, 1), heaps.blocks), ([None; 6], 1));
        // A block that was there before has a name.
        for mark in Mark::named_block("Buffer Descriptors", 5000, 64) {
            heaps.mark(thread(0, 0), mark, |origin| {
                assert_eq!(origin, BlockOrigin::Named("Buffer Descriptors"));
                9
            });
        }
        assert_eq!([4999, 5000, 5063, 5064].map(|at| heaps.find(0, at)), [None, Some(9), Some(9), None]);
        allocate(&mut heaps, thread(0, 0), 6000, 8, 5);
        assert_eq!(heaps.find(0, 6000), Some(5));
        // Inconsistent marks do no harm.
        allocate(&mut heaps, thread(0, 0), u64::MAX, u64::MAX, 8);
        free(&mut heaps, thread(0, 0), 3);
        heaps.mark(thread(0, 3), Mark::Block(0), |_| panic!());
        heaps.mark(thread(0, 3), Mark::Copied(77), |_| panic!());
    }
}
