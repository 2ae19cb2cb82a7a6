//! What a pipeline sees of memory: who serves an access, what is missing, what waits to be written.

use std::mem;

use super::cycles::LEVELS;

/// Who served an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// 0 for the first cache, 1 for what is behind it, and so on to memory.
    pub level: u8,
    /// The line of instructions was asked for when the one before was: it may be on its way since. `level` does
    /// not matter then.
    pub is_ahead: bool,
    /// Cycles that a missing translation cost: fewer than 2^24.
    pub translation: u32,
}

/// Caches, translation buffers and memory.
pub trait MemorySystem: Send {
    /// The process whose addresses follow: those of different ones are different.
    fn enter(&mut self, space: u32);
    /// Instructions are fetched; once for each line that control enters. Nothing is said if they are near.
    fn fetch(&mut self, address: u64) -> Option<Served>;
    /// So many bytes are loaded, or stored. Nothing is said if they are near.
    fn access(&mut self, address: u64, bytes: u8, is_store: bool) -> Option<Served>;
    /// What was counted is forgotten.
    fn forget_counts(&mut self) {}
}

/// Memory in which nothing is ever missing.
pub struct Perfect;

impl MemorySystem for Perfect {
    fn enter(&mut self, _space: u32) {}
    fn fetch(&mut self, _address: u64) -> Option<Served> {
        None
    }
    fn access(&mut self, _address: u64, _bytes: u8, _is_store: bool) -> Option<Served> {
        None
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

/// A line of data that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Miss {
    /// Its number among those that loads may find on their way.
    pub line: u32,
    /// The result of the load that missed can be used as if the load had hit when it was issued then.
    pub as_if_issued: u64,
    pub level: u8,
}

/// The lines that are on their way (the miss address file).
pub(super) struct Misses {
    most: usize,
    list: Vec<Miss>,
    /// When the last of them is there.
    pub until: u64,
}

impl Misses {
    pub fn new(most: u32) -> Misses {
        Misses { most: most as usize, list: Vec::new(), until: 0 }
    }

    /// Forgets what is there at `time`. Says when there is place for one more, if there is none.
    pub fn settle(&mut self, time: u64) -> Option<u64> {
        self.list.retain(|miss| miss.as_if_issued > time);
        let is_full = self.list.len() >= self.most;
        let first = self.list.iter().map(|miss| miss.as_if_issued).min();
        first.filter(|_| is_full)
    }

    /// A line, if it is still on its way at `time`.
    pub fn find(&self, line: u32, time: u64) -> Option<Miss> {
        self.list.iter().copied().find(|miss| miss.line == line && miss.as_if_issued > time)
    }

    pub fn add(&mut self, miss: Miss) {
        self.until = self.until.max(miss.as_if_issued);
        self.list.push(miss);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Miss> {
        self.list.iter()
    }

    /// All that are on their way.
    pub fn replace(&mut self, misses: impl Iterator<Item = Miss>) {
        self.list.clear();
        self.until = 0;
        misses.for_each(|miss| self.add(miss));
    }

    /// Numbers the lines anew; says which numbers they had.
    pub fn renumber(&mut self) -> Box<[u32]> {
        let numbered = (0..).zip(&mut self.list);
        numbered.map(|(number, miss)| mem::replace(&mut miss.line, number)).collect()
    }
}

/// What the last store stored.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    pub address: u64,
    pub is_hit: bool,
}

impl Stored {
    /// The bits of an address that say whether a load is of what was just stored.
    const COMPARED: u64 = 0x1ffc;

    /// Of a store that was served so.
    pub fn new(address: u64, served: Served) -> Stored {
        Stored { address, is_hit: served.level == 0 }
    }

    /// Whether it is in the first cache, at an address that looks like this one.
    pub fn is_of(self, address: u64) -> bool {
        self.is_hit && (address ^ self.address) & Stored::COMPARED == 0
    }
}

/// Collects stores by lines; writes them one after the other, from a number of them on.
#[derive(Clone)]
pub(super) struct WriteBuffer {
    entries: usize,
    drain_from: usize,
    /// Lines that wait, and the cycles that writing each takes.
    waiting: Vec<(u64, u64)>,
    /// One is being written until then; [`NEVER`] if none is.
    writing: u64,
    /// When the last one was written or came in, whichever is later.
    since: u64,
}

const NEVER: u64 = u64::MAX;

impl WriteBuffer {
    pub fn new(entries: u32, drain_from: u32) -> WriteBuffer {
        WriteBuffer {
            entries: entries as usize,
            drain_from: drain_from.min(entries).max(1) as usize,
            waiting: Vec::new(),
            writing: NEVER,
            since: 0,
        }
    }

    #[inline(always)]
    fn settle(&mut self, time: u64) {
        while self.writing <= time {
            self.since = self.since.max(self.writing);
            self.writing = NEVER;
            self.start();
        }
    }

    /// Begins to write one if enough wait; none is being written.
    fn start(&mut self) {
        if self.waiting.len() >= self.drain_from {
            self.writing = self.since + self.waiting.remove(0).1;
        }
    }

    fn used(&self) -> usize {
        self.waiting.len() + usize::from(self.writing != NEVER)
    }

    /// When there is place for a store that comes at `time`, if there is none then. A store to a line that waits
    /// may need none.
    pub fn full(&mut self, line: u64, time: u64, may_join: bool) -> Option<u64> {
        self.settle(time);
        let is_full = self.writing != NEVER && self.used() >= self.entries;
        (is_full && !(may_join && self.waits(line))).then_some(self.writing)
    }

    /// Whether so many stores find place, whatever they store.
    #[inline(always)]
    pub fn has_room(&mut self, stores: usize, time: u64) -> bool {
        self.settle(time);
        self.entries == 0 || self.used() + stores <= self.entries
    }

    #[inline(always)]
    fn waits(&self, line: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.0 == line)
    }

    /// A store comes in that takes so many cycles to be written.
    #[inline]
    pub fn push(&mut self, line: u64, time: u64, cycles: u64) {
        self.settle(time);
        if self.entries > 0 && !self.waits(line) {
            self.waiting.push((line, cycles));
            self.since = self.since.max(time);
            if self.writing == NEVER {
                self.start();
                self.settle(time);
            }
        }
    }

    /// Everything is written at once; says when that is done.
    pub fn drain(&mut self, time: u64) -> u64 {
        self.settle(time);
        let start = if self.writing == NEVER { time } else { self.writing };
        self.writing = NEVER;
        let end = start + self.waiting.drain(..).map(|(_, cycles)| cycles).sum::<u64>();
        self.since = self.since.max(end);
        end
    }
}
