//! The private caches of one processor, and their hit filter.

use crate::description::Cache;
use crate::memory::hierarchy::{Evicted, Tags};

/// The private caches of data of a processor, from the innermost to the one that observes the bus, and its instruction cache, if
/// instructions come through the same ones beyond it.
///
/// The outermost cache includes the others. An access uses the innermost cache that has the line, and fills the caches
/// before it. Most accesses end in the **hit filter**: lines of the innermost cache whose use changes nothing but their
/// time of last use, and for stores the bytes written.
#[derive(Debug)]
pub struct PrivateCaches {
    levels: Vec<Level>,
    instructions: Option<Level>,
    filter: Box<[FilterEntry; FILTER_ENTRIES]>,
    /// Whether the use of a line in the innermost cache changes only its time.
    is_filterable: bool,
    now: u64,
}

#[derive(Debug)]
struct Level {
    tags: Tags,
    line_shift: u32,
    /// A context switch empties it.
    is_flushed: bool,
}

/// How the caches served an access.
#[derive(Clone, Copy, Debug)]
pub struct CacheAccess {
    /// Whether the first cache asked had the line.
    pub is_first_hit: bool,
    /// The coherence line that the outermost cache evicts for it.
    pub evicted: Option<u64>,
}

/// A line of the innermost cache.
#[derive(Clone, Copy, Debug)]
struct FilterEntry {
    /// The line's number, and in bit 0 whether stores are filtered, too.
    key: u64,
    slot: u32,
    /// The coherence line that it belongs to.
    record: u32,
}

const FILTER_ENTRIES: usize = 1024;
const EMPTY: FilterEntry = FilterEntry { key: u64::MAX, slot: 0, record: 0 };

impl PrivateCaches {
    /// The caches of data, and that of instructions; context switches empty those of the names `flushes`.
    pub fn new(caches: &[&Cache], instructions: Option<&Cache>, flushes: &[String]) -> PrivateCaches {
        let level = |index: usize, cache: &Cache| Level {
            tags: Tags::new(cache.sets(), cache.ways, cache.replacement, index == 0),
            line_shift: cache.line.ilog2(),
            is_flushed: flushes.contains(&cache.name),
        };
        PrivateCaches {
            levels: caches.iter().enumerate().map(|(index, cache)| level(index, cache)).collect(),
            instructions: instructions.map(|cache| level(0, cache)),
            filter: Box::new([EMPTY; FILTER_ENTRIES]),
            is_filterable: !caches[0].replacement.has_victim_pointer(),
            now: 0,
        }
    }

    /// Uses the line at an address if the filter has it. Returns the record of its coherence line.
    #[inline(always)]
    pub fn filtered(&mut self, address: u64, is_store: bool) -> Option<u32> {
        let inner = &mut self.levels[0];
        let line = address >> inner.line_shift;
        let entry = self.filter[line as usize % FILTER_ENTRIES];
        let is_hit = if is_store { entry.key == line << 1 | 1 } else { entry.key >> 1 == line };
        if !is_hit {
            return None;
        }
        self.now += 1;
        inner.tags.mark_used(entry.slot as usize, false, self.now);
        Some(entry.record)
    }

    /// Uses the line at an address, and fills it where it is missing.
    pub fn access(&mut self, address: u64) -> CacheAccess {
        self.now += 1;
        self.access_from(0, address)
    }

    /// Fetches the instruction line at an address. Without an instruction cache nothing happens.
    pub fn fetch(&mut self, address: u64) -> CacheAccess {
        self.now += 1;
        let now = self.now;
        let hit = CacheAccess { is_first_hit: true, evicted: None };
        let Some(cache) = &mut self.instructions else { return hit };
        let line = address >> cache.line_shift;
        if let Some(slot) = cache.tags.find(line) {
            cache.tags.use_slot(slot, line, false, now);
            return hit;
        }
        let served = self.access_from(1, address);
        // After the outermost cache, whose eviction may have made room.
        if let Some(cache) = &mut self.instructions {
            cache.tags.fill(line, false, now);
        }
        CacheAccess { is_first_hit: false, ..served }
    }

    /// Fills the line at an address, which no cache has, into the outermost cache. Returns the line that it evicts.
    pub fn place(&mut self, address: u64) -> Option<u64> {
        self.now += 1;
        self.access_from(self.levels.len() - 1, address).evicted
    }

    /// Uses the line at an address in the caches from this one on, and fills it where it is missing.
    fn access_from(&mut self, first: usize, address: u64) -> CacheAccess {
        let now = self.now;
        let lines = self.levels.iter().map(|level| address >> level.line_shift);
        let mut levels = self.levels.iter().zip(lines).enumerate().skip(first);
        let found =
            levels.find(|(_, (level, line))| level.tags.find(*line).is_some()).map(|(index, _)| index);
        if let Some(level) = found.map(|found| &mut self.levels[found]) {
            let line = address >> level.line_shift;
            let slot = level.tags.find(line).expect("it was found");
            level.tags.use_slot(slot, line, false, now);
        }
        let missed = found.unwrap_or(self.levels.len());
        let mut evicted_from_bus = None;
        for index in (first..missed).rev() {
            let level = &mut self.levels[index];
            let line = address >> level.line_shift;
            if let Some(Evicted { key, .. }) = level.tags.fill(line, false, now) {
                if index == 0 {
                    self.remove_from_filter(key);
                }
                if index + 1 == self.levels.len() {
                    self.invalidate_inner(key);
                    evicted_from_bus = Some(key);
                }
            }
        }
        CacheAccess { is_first_hit: found == Some(first), evicted: evicted_from_bus }
    }

    /// Enters the line at an address, which was just used, into the filter.
    pub fn add_to_filter(&mut self, address: u64, record: u32, is_writable: bool) {
        let inner = &self.levels[0];
        let line = address >> inner.line_shift;
        if self.is_filterable
            && let Some(slot) = inner.tags.find(line)
        {
            let key = line << 1 | u64::from(is_writable);
            self.filter[line as usize % FILTER_ENTRIES] = FilterEntry { key, slot: slot as u32, record };
        }
    }

    /// Invalidates a coherence line.
    pub fn invalidate(&mut self, line: u64) {
        if let Some(outer) = self.levels.last_mut() {
            outer.tags.remove(line);
        }
        self.invalidate_inner(line);
    }

    /// The outermost cache loses a line: so do the others, which it includes.
    fn invalidate_inner(&mut self, line: u64) {
        let (outer, inner) = self.levels.split_last_mut().expect("there is a cache");
        for level in inner.iter_mut().chain(&mut self.instructions) {
            let shift = outer.line_shift - level.line_shift;
            for part in line << shift..(line + 1) << shift {
                level.tags.remove(part);
            }
        }
        self.filter_parts(line, |entry| *entry = EMPTY);
    }

    /// Stores to a line must be seen from now on.
    pub fn protect(&mut self, line: u64) {
        self.filter_parts(line, |entry| entry.key &= !1);
    }

    /// The filter's entries of a coherence line.
    fn filter_parts(&mut self, line: u64, mut change: impl FnMut(&mut FilterEntry)) {
        let shift = self.levels[self.levels.len() - 1].line_shift - self.levels[0].line_shift;
        for part in line << shift..(line + 1) << shift {
            let entry = &mut self.filter[part as usize % FILTER_ENTRIES];
            if entry.key >> 1 == part {
                change(entry);
            }
        }
    }

    fn remove_from_filter(&mut self, line: u64) {
        let entry = &mut self.filter[line as usize % FILTER_ENTRIES];
        if entry.key >> 1 == line {
            *entry = EMPTY;
        }
    }

    /// Another process runs: the caches that a context switch flushes lose all lines. The next ones, which include them, have
    /// what was stored.
    pub fn switch(&mut self) {
        let levels = self.levels.iter_mut().chain(&mut self.instructions);
        levels.filter(|level| level.is_flushed).for_each(|level| level.tags.clear());
        if self.levels[0].is_flushed {
            self.filter.fill(EMPTY);
        }
    }

    /// Whether the outermost cache has a coherence line.
    pub fn holds(&self, line: u64) -> bool {
        self.levels.last().is_some_and(|level| level.tags.find(line).is_some())
    }
}
