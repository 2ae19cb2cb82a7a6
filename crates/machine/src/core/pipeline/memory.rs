//! The pipeline's view of memory: the level that serves an access, outstanding lines, the write buffer.

use std::mem;

use super::cycles::LEVELS;

/// How a request was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedBy {
    /// The level: 0 for L1, 1 for the next, and so on to memory.
    pub level: u8,
    /// The instruction line was prefetched, requested together with the line before, and may have arrived
    /// since. `level` does not matter then.
    pub is_ahead: bool,
    /// Cycles of TLB misses: fewer than 2^24.
    pub translation: u32,
    /// Software fills the TLB: the access traps.
    pub traps: bool,
}

/// Caches, TLBs and memory.
pub trait MemorySystem: Send {
    /// Switches to a process; processes do not share addresses.
    fn enter(&mut self, process: u32);
    /// Fetches the instruction line that control enters. None for an L1 hit.
    fn fetch(&mut self, address: u64) -> Option<ServedBy>;
    /// Loads or stores this number of bytes. None for an L1 hit.
    fn access(&mut self, address: u64, bytes: u8, is_store: bool) -> Option<ServedBy>;
    /// How a fetch or an access would be served now. Changes nothing.
    fn probe(&self, address: u64, is_fetch: bool) -> ServedBy;
    /// Resets the counts.
    fn reset_counts(&mut self) {}
}

/// Memory in which every access hits L1.
pub struct PerfectMemory;

impl MemorySystem for PerfectMemory {
    fn enter(&mut self, _space: u32) {}
    fn fetch(&mut self, _address: u64) -> Option<ServedBy> {
        None
    }
    fn access(&mut self, _address: u64, _bytes: u8, _is_store: bool) -> Option<ServedBy> {
        None
    }
    fn probe(&self, _address: u64, _is_fetch: bool) -> ServedBy {
        ServedBy::default()
    }
}

/// Latencies of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Bytes of a line of L1's instruction cache.
    pub fetch_line: u64,
    /// Bytes of a line of L1's data cache, and of an entry of the write buffer.
    pub data_line: u64,
    /// The latency of L1's instruction cache, which the pipeline has in stages: whatever refills the pipeline takes it.
    pub fetch_hit: u32,
    /// The latency of L1's data cache.
    pub load_hit: u32,
    /// Cycles until instructions arrive beyond the one in which those of L1 are fetched, by level.
    pub fetch: [u32; LEVELS + 1],
    /// Cycles until data arrive beyond L1's latency, by level.
    pub load: [u32; LEVELS + 1],
    /// Entries of the write buffer; 0 if there is none.
    pub write_buffer: u32,
}

/// An outstanding line of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OutstandingMiss {
    /// Its number among the lines that loads may find outstanding.
    pub line: u32,
    /// The issue time at which a load that hit would have its result when this one has.
    pub as_if_issued: u64,
    pub level: u8,
}

/// The miss address file: lines that are outstanding.
pub(super) struct MissAddressFile {
    most: usize,
    list: Vec<OutstandingMiss>,
    /// When the last of them arrives.
    pub until: u64,
}

impl MissAddressFile {
    pub fn new(most: u32) -> MissAddressFile {
        MissAddressFile { most: most as usize, list: Vec::new(), until: 0 }
    }

    /// Retires lines that have arrived by `time`. If the file is full, returns when there is room.
    pub fn advance(&mut self, time: u64) -> Option<u64> {
        self.list.retain(|miss| miss.as_if_issued > time);
        let is_full = self.list.len() >= self.most;
        let first = self.list.iter().map(|miss| miss.as_if_issued).min();
        first.filter(|_| is_full)
    }

    /// A line, if it is still outstanding at `time`.
    pub fn find(&self, line: u32, time: u64) -> Option<OutstandingMiss> {
        self.list.iter().copied().find(|miss| miss.line == line && miss.as_if_issued > time)
    }

    pub fn add(&mut self, miss: OutstandingMiss) {
        self.until = self.until.max(miss.as_if_issued);
        self.list.push(miss);
    }

    pub fn iter(&self) -> impl Iterator<Item = &OutstandingMiss> {
        self.list.iter()
    }

    /// Replaces the contents.
    pub fn replace(&mut self, misses: impl Iterator<Item = OutstandingMiss>) {
        self.list.clear();
        self.until = 0;
        misses.for_each(|miss| self.add(miss));
    }

    /// Renumbers the lines; returns the numbers that they had.
    pub fn renumber(&mut self) -> Box<[u32]> {
        let numbered = (0..).zip(&mut self.list);
        numbered.map(|(number, miss)| mem::replace(&mut miss.line, number)).collect()
    }
}

/// The data of the last store.
#[derive(Clone, Copy, Default)]
pub(super) struct LastStoreData {
    address: u64,
    bytes: u8,
    is_hit: bool,
}

impl LastStoreData {
    /// The bits of a longword's number that the processor compares to find a load of data just stored.
    const COMPARED: u64 = 0x7ff;

    /// For a store of this number of bytes that was served so.
    pub fn new(address: u64, bytes: u8, served: ServedBy) -> LastStoreData {
        LastStoreData { address, bytes, is_hit: served.level == 0 }
    }

    /// Whether the store hit L1, and one of its longwords equals one of the load's in the bits that the processor compares.
    pub fn overlaps(self, address: u64, bytes: u8) -> bool {
        let longwords = |address: u64, bytes: u8| {
            let last = address.wrapping_add(u64::from(bytes.max(1)) - 1);
            address >> 2..=last >> 2
        };
        let same = |stored: u64, loaded: u64| (stored ^ loaded) & LastStoreData::COMPARED == 0;
        let mut stored = longwords(self.address, self.bytes);
        self.is_hit && stored.any(|stored| longwords(address, bytes).any(|loaded| same(stored, loaded)))
    }
}

/// Merges stores by line; writes them to the next level one after the other, once enough are waiting.
#[derive(Clone)]
pub(super) struct WriteBufferModel {
    entries: usize,
    drain_from: usize,
    /// Lines that wait, and the cycles that each takes to write.
    waiting: Vec<(u64, u64)>,
    /// When the current write ends; [`NEVER`] if there is none.
    writing: u64,
    /// When the last write ended or the last store came, whichever is later.
    since: u64,
}

const NEVER: u64 = u64::MAX;

impl WriteBufferModel {
    pub fn new(entries: u32, drain_from: u32) -> WriteBufferModel {
        WriteBufferModel {
            entries: entries as usize,
            drain_from: drain_from.min(entries).max(1) as usize,
            waiting: Vec::new(),
            writing: NEVER,
            since: 0,
        }
    }

    #[inline(always)]
    fn advance(&mut self, time: u64) {
        while self.writing <= time {
            self.since = self.since.max(self.writing);
            self.writing = NEVER;
            self.start();
        }
    }

    /// Starts a write if enough stores are waiting; there is no current one.
    fn start(&mut self) {
        if self.waiting.len() >= self.drain_from {
            self.writing = self.since + self.waiting.remove(0).1;
        }
    }

    fn used(&self) -> usize {
        self.waiting.len() + usize::from(self.writing != NEVER)
    }

    /// When there is room for a store at `time`, if there is none then. A store may merge with a waiting
    /// line.
    pub fn full(&mut self, line: u64, time: u64, may_join: bool) -> Option<u64> {
        self.advance(time);
        let is_full = self.writing != NEVER && self.used() >= self.entries;
        (is_full && !(may_join && self.waits(line))).then_some(self.writing)
    }

    /// Whether there is room for this number of stores to any lines.
    #[inline(always)]
    pub fn has_room(&mut self, stores: usize, time: u64) -> bool {
        self.advance(time);
        self.entries == 0 || self.used() + stores <= self.entries
    }

    #[inline(always)]
    fn waits(&self, line: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.0 == line)
    }

    /// Adds a store, which takes this number of cycles to write.
    #[inline]
    pub fn push(&mut self, line: u64, time: u64, cycles: u64) {
        self.advance(time);
        if self.entries > 0 && !self.waits(line) {
            self.waiting.push((line, cycles));
            self.since = self.since.max(time);
            if self.writing == NEVER {
                self.start();
                self.advance(time);
            }
        }
    }

    /// Writes everything; returns when that is done.
    pub fn drain(&mut self, time: u64) -> u64 {
        self.advance(time);
        let start = if self.writing == NEVER { time } else { self.writing };
        self.writing = NEVER;
        let end = start + self.waiting.drain(..).map(|(_, cycles)| cycles).sum::<u64>();
        self.since = self.since.max(end);
        end
    }
}
