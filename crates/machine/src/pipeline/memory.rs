//! What a pipeline sees of memory: who serves an access, what is missing, what waits to be written.

use std::collections::VecDeque;

use super::cycles::LEVELS;

/// Who served an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// 0 for the first cache, 1 for what is behind it, and so on to memory.
    pub level: u8,
    /// The line of instructions was asked for when the one before was: it may be on its way since. `level` does
    /// not matter then.
    pub is_ahead: bool,
    /// Cycles that a missing translation cost.
    pub translation: u32,
}

/// Caches, translation buffers and memory.
pub trait MemorySystem: Send {
    /// The process whose addresses follow: those of different ones are different.
    fn enter(&mut self, space: u32);
    /// Instructions are fetched; once for each line that control enters.
    fn fetch(&mut self, address: u64) -> Served;
    /// So many bytes are loaded.
    fn load(&mut self, address: u64, bytes: u8) -> Served;
    /// So many bytes are stored.
    fn store(&mut self, address: u64, bytes: u8) -> Served;
}

/// Memory in which nothing is ever missing.
pub struct Perfect;

impl MemorySystem for Perfect {
    fn enter(&mut self, _space: u32) {}
    fn fetch(&mut self, _address: u64) -> Served {
        Served::default()
    }
    fn load(&mut self, _address: u64, _bytes: u8) -> Served {
        Served::default()
    }
    fn store(&mut self, _address: u64, _bytes: u8) -> Served {
        Served::default()
    }
}

/// How long accesses take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Bytes of a line of the first instruction cache.
    pub fetch_line: u64,
    /// Bytes of a line of the first data cache, and of an entry of the write buffer.
    pub data_line: u64,
    /// Cycles more than the first cache takes, for each level, until instructions are there.
    pub fetch: [u32; LEVELS + 1],
    /// The same for data.
    pub load: [u32; LEVELS + 1],
    /// Entries of the write buffer; 0 if there is none.
    pub write_buffer: u32,
}

/// A block of data that is on its way.
#[derive(Clone, Copy)]
pub(super) struct Miss {
    block: u64,
    /// The result of the load that missed can be used as if the load had hit when it was issued then.
    pub as_if_issued: u64,
    pub level: u8,
}

/// The blocks that are on their way (the miss address file).
#[derive(Clone)]
pub(super) struct Misses {
    shift: u32,
    most: usize,
    list: Vec<Miss>,
    /// When the last of them is there.
    pub until: u64,
}

impl Misses {
    pub fn new(block: u64, most: u32) -> Misses {
        Misses { shift: block.ilog2(), most: most as usize, list: Vec::new(), until: 0 }
    }

    /// Forgets what is there at `time`. Says when there is place for one more, if there is none.
    pub fn settle(&mut self, time: u64) -> Option<u64> {
        if self.until <= time {
            self.list.clear();
            return None;
        }
        self.list.retain(|miss| miss.as_if_issued > time);
        let is_full = self.list.len() >= self.most;
        let first = self.list.iter().map(|miss| miss.as_if_issued).min();
        first.filter(|_| is_full)
    }

    /// What an address waits for.
    pub fn find(&self, space: u32, address: u64) -> Option<Miss> {
        let block = self.block(space, address);
        self.list.iter().copied().find(|miss| miss.block == block)
    }

    pub fn add(&mut self, space: u32, address: u64, as_if_issued: u64, level: u8) {
        let block = self.block(space, address);
        self.until = self.until.max(as_if_issued);
        self.list.push(Miss { block, as_if_issued, level });
    }

    fn block(&self, space: u32, address: u64) -> u64 {
        address >> self.shift ^ u64::from(space) << 44
    }
}

/// Collects stores by blocks; writes them one after the other, from a number of them on.
#[derive(Clone)]
pub(super) struct WriteBuffer {
    entries: usize,
    drain_from: usize,
    shift: u32,
    /// Blocks that wait, and the cycles that writing each takes.
    waiting: VecDeque<(u64, u64)>,
    /// One is being written until then.
    writing: Option<u64>,
    /// When the last one was written or came in, whichever is later.
    since: u64,
}

impl WriteBuffer {
    pub fn new(entries: u32, drain_from: u32, block: u64) -> WriteBuffer {
        WriteBuffer {
            entries: entries as usize,
            drain_from: drain_from.min(entries) as usize,
            shift: block.ilog2(),
            waiting: VecDeque::new(),
            writing: None,
            since: 0,
        }
    }

    fn settle(&mut self, time: u64) {
        loop {
            if let Some(end) = self.writing {
                if end > time {
                    return;
                }
                self.writing = None;
                self.since = self.since.max(end);
            }
            if self.waiting.len() < self.drain_from.max(1) {
                return;
            }
            let (_, cycles) = self.waiting.pop_front().expect("one waits");
            self.writing = Some(self.since + cycles);
        }
    }

    /// When there is place for a store that comes at `time`, if there is none then. A store to a block that
    /// waits may need none.
    pub fn full(&mut self, space: u32, address: u64, time: u64, may_join: bool) -> Option<u64> {
        self.settle(time);
        let used = self.waiting.len() + usize::from(self.writing.is_some());
        let joins = may_join && self.waits(self.block(space, address));
        self.writing.filter(|_| used >= self.entries && !joins)
    }

    /// Whether so many stores find place, whatever they store.
    pub fn has_room(&mut self, stores: usize, time: u64) -> bool {
        self.settle(time);
        self.entries == 0 || self.waiting.len() + usize::from(self.writing.is_some()) + stores <= self.entries
    }

    fn waits(&self, block: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.0 == block)
    }

    fn block(&self, space: u32, address: u64) -> u64 {
        address >> self.shift ^ u64::from(space) << 44
    }

    /// A store comes in that takes so many cycles to be written.
    pub fn push(&mut self, space: u32, address: u64, time: u64, cycles: u64) {
        self.settle(time);
        let block = self.block(space, address);
        if self.entries > 0 && !self.waits(block) {
            self.waiting.push_back((block, cycles));
            self.since = self.since.max(time);
            self.settle(time);
        }
    }

    /// Everything is written at once; says when that is done.
    pub fn drain(&mut self, time: u64) -> u64 {
        self.settle(time);
        let start = self.writing.take().unwrap_or(time);
        let end = start + self.waiting.drain(..).map(|(_, cycles)| cycles).sum::<u64>();
        self.since = self.since.max(end);
        end
    }
}
