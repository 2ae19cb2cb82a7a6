//! The miss path: from an access that L1 or the first TLB does not serve at once, through the levels to
//! memory, with write-backs, victim, stream and write buffers.

use std::ops::Range;

use super::cache::CacheState;
use super::l1::L1Outcome;
use super::request::At;
use super::tags::Evicted;
use super::{DATA, Hierarchy, INSTRUCTIONS, Path, Request, Served, SimpleL1};
use crate::description::WritePolicy;

impl Hierarchy {
    /// Translates an address. Returns how many TLBs missed.
    #[inline(always)]
    pub(super) fn translate(&mut self, side: usize, address: u64, request: Request) -> u8 {
        if self.has_fast_l1 {
            self.now += 1;
            if self.l1[side].access_page(address, self.now) {
                return 0;
            }
        }
        self.translate_slow(side, address, request)
    }

    /// How a fetch, or an access of data within one line, would be served now. Changes nothing.
    pub fn peek(&self, address: u64, is_fetch: bool) -> Served {
        let side = if is_fetch { INSTRUCTIONS } else { DATA };
        let tagged_address = address ^ self.address_maps[side].asid;
        let Path { caches, buffers } = &self.paths[side];
        let has_page = |&&index: &&usize| {
            let buffer = &self.buffers[index];
            match buffer.l1 {
                Some(side) => self.l1[side].has_page(tagged_address),
                None => buffer.tags.find(buffer.page_map.key(tagged_address)).is_some(),
            }
        };
        let misses = |&&index: &&usize| {
            let cache = &self.caches[index];
            let line = tagged_address >> cache.shift;
            !match cache.l1 {
                Some(side) => self.l1[side].holds_line(line),
                None => cache.tags.find(line).is_some(),
            }
        };
        let cache_misses = caches.iter().take_while(misses).count() as u8;
        let tlb_misses = buffers.iter().take_while(|index| !has_page(index)).count() as u8;
        let has_buffered =
            |&index: &usize| self.caches[index].buffers_line(tagged_address >> self.caches[index].shift);
        let level = caches[..cache_misses.into()].iter().position(has_buffered);
        Served { cache_misses, level: level.map_or(cache_misses, |level| level as u8), tlb_misses }
    }

    /// Translates an address where the fast L1's TLB, if there is one, has missed.
    #[inline(never)]
    fn translate_slow(&mut self, side: usize, address: u64, request: Request) -> u8 {
        let mut cache_misses = 0;
        for depth in 0..self.paths[side].buffers.len() {
            let index = self.paths[side].buffers[depth];
            let buffer = &mut self.buffers[index];
            let key = buffer.page_map.key(address);
            let class = self.classifier.as_mut().map(|classifier| classifier.of_buffer(index, key));
            self.now += 1;
            match buffer.l1 {
                Some(side) => self.l1[side].fill_page(key, self.now),
                None if buffer.tags.touch(key, false, self.now) => break,
                None => drop(buffer.tags.fill(key, false, self.now)),
            }
            buffer.misses[request as usize] += 1;
            self.buffer_class[depth] = class.unwrap_or_default();
            cache_misses += 1;
        }
        cache_misses
    }

    /// An access of the processor to the caches.
    #[inline(always)]
    pub(super) fn access_caches(&mut self, side: usize, address: u64, request: Request) -> Served {
        let Some(at) = self.at(side, 0) else { return Served::default() };
        let write = self.caches[at.index].write;
        let is_store = request == Request::Store;
        if !self.touch(at, address, request, is_store && write == WritePolicy::Back) {
            return self.access_beyond_l1(at, address, request);
        }
        if is_store && write == WritePolicy::Through {
            self.write_through(at, address);
        }
        Served::default()
    }

    /// An access of the processor that missed in L1.
    #[inline(always)]
    fn access_beyond_l1(&mut self, at: At, address: u64, request: Request) -> Served {
        let cache = &mut self.caches[at.index];
        let (write, write_allocates) = (cache.write, cache.write_allocates);
        cache.counts.misses[request as usize] += 1;
        if request != Request::Store || write == WritePolicy::Ignored {
            return self.allocate(at, address, request, false);
        }
        let is_back = write == WritePolicy::Back;
        let served = if write_allocates {
            self.allocate(at, address, request, is_back)
        } else {
            self.caches[at.index].count_unfilled(request, self.site);
            self.take_from_side_buffers(at, address, is_back).unwrap_or_else(|| {
                if is_back {
                    self.write_next_level(at, address);
                }
                Served { cache_misses: 1, level: 1, tlb_misses: 0 }
            })
        };
        if write == WritePolicy::Through {
            self.write_through(at, address);
        }
        served
    }

    /// An access to a side whose L1 is a [`SimpleL1`]. Returns None, having changed nothing, if it is not, or
    /// on a TLB miss.
    #[inline(always)]
    pub(super) fn access_simple_l1(&mut self, side: usize, address: u64, request: Request) -> Option<Served> {
        let simple = self.simple[side]?;
        if side == DATA
            && !simple.allocates_on_write
            && (request == Request::Store || self.caches[simple.index].has_pending_write(address))
        {
            // A store to the same block may have to leave the write buffer first.
            return None;
        }
        self.now += 1;
        let makes_dirty = request == Request::Store && self.stores == WritePolicy::Back;
        match self.l1[side].access(address, makes_dirty, self.now) {
            L1Outcome::TlbMiss => None,
            L1Outcome::Hit => Some(Served::default()),
            L1Outcome::Miss(evicted) => {
                let at = At { side, depth: 0, index: simple.index };
                self.caches[simple.index].counts.misses[request as usize] += 1;
                let served = self.fill_from_next_level(simple, at, address, request);
                if let Some(evicted) = evicted
                    && evicted.is_dirty
                {
                    self.evict(at, evicted);
                }
                Some(served)
            }
        }
    }

    /// Reads a line that a simple L1 has missed.
    #[inline(always)]
    fn fill_from_next_level(&mut self, simple: SimpleL1, at: At, address: u64, request: Request) -> Served {
        if at.side == INSTRUCTIONS && simple.has_stream {
            return self.fill_from_stream(simple, at, address, request);
        }
        match simple.next_level {
            Some(next_level) if !self.probe(next_level, address, request, false) => {
                self.allocate_at(At { depth: 1, index: next_level, ..at }, address, request)
            }
            _ => Served { cache_misses: 1, level: 1, tlb_misses: 0 },
        }
    }

    /// The same with a stream buffer.
    #[inline(never)]
    fn fill_from_stream(&mut self, simple: SimpleL1, at: At, address: u64, request: Request) -> Served {
        let cache = &mut self.caches[at.index];
        if let Some(lines) = cache.prefetcher.take(address >> cache.shift) {
            cache.counts.from_stream += 1;
            self.prefetch(at, lines);
            return Served { cache_misses: 1, level: 0, tlb_misses: 0 };
        }
        let served =
            self.fill_from_next_level(SimpleL1 { has_stream: false, ..simple }, at, address, request);
        self.prefetch_after_miss(at, address);
        served
    }

    /// Uses the line of an address in L1, if it hits. Classifies the miss if not.
    #[inline(always)]
    fn touch(&mut self, at: At, address: u64, request: Request, makes_dirty: bool) -> bool {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        self.now += 1;
        let is_there = match cache.l1 {
            Some(side) => self.l1[side].access_cached_line(key, makes_dirty, self.now),
            None => cache.tags.touch(key, makes_dirty, self.now),
        };
        if self.classifier.is_some() {
            self.note_miss_class(at, address, request, is_there);
        }
        is_there
    }

    /// Looks an address up in a cache beyond L1, counts the request, and classifies a miss.
    #[inline(always)]
    fn lookup(&mut self, at: At, address: u64, request: Request, makes_dirty: bool) -> bool {
        let is_there = self.probe(at.index, address, request, makes_dirty);
        if self.classifier.is_some() {
            self.note_miss_class(at, address, request, is_there);
        }
        is_there
    }

    /// The same without classification.
    #[inline(always)]
    fn probe(&mut self, index: usize, address: u64, request: Request, makes_dirty: bool) -> bool {
        let cache = &mut self.caches[index];
        self.now += 1;
        let is_there = cache.tags.touch(address >> cache.shift, makes_dirty, self.now);
        cache.counts.requests[request as usize] += 1;
        cache.counts.misses[request as usize] += u64::from(!is_there);
        is_there
    }

    /// Classifies a miss.
    #[inline(never)]
    fn note_miss_class(&mut self, at: At, address: u64, request: Request, is_there: bool) {
        if let Some(classifier) = &mut self.classifier {
            let class = classifier.of_cache(at.index, address >> self.caches[at.index].shift);
            if !is_there && request.is_of_processor() {
                self.cache_class[at.depth] = class;
            }
        }
    }

    /// Reads a line of a cache beyond L1.
    #[inline(always)]
    fn read(&mut self, at: At, address: u64, request: Request) {
        if !self.lookup(at, address, request, false) {
            self.allocate_at(at, address, request);
        }
    }

    /// Whether a cache has a line.
    fn holds(&self, at: At, key: u64) -> bool {
        let cache = &self.caches[at.index];
        match cache.l1 {
            Some(side) => self.l1[side].holds_line(key),
            None => cache.tags.find(key).is_some(),
        }
    }

    /// Allocates a line that a cache has missed: from its victim or stream buffer, or from the next level.
    #[inline(always)]
    fn allocate(&mut self, at: At, address: u64, request: Request, is_dirty: bool) -> Served {
        if let Some(served) = self.take_from_side_buffers(at, address, is_dirty) {
            self.caches[at.index].count_unfilled(request, self.site);
            return served;
        }
        let served = self.read_next_level(at, address, request);
        self.fill(at, address, is_dirty);
        served
    }

    /// Reads a line that a cache has missed from the next levels, which allocate it, and prefetches.
    #[inline(always)]
    fn read_next_level(&mut self, at: At, address: u64, request: Request) -> Served {
        let is_plain = self.caches[at.index].is_plain;
        if !is_plain {
            self.drain_write_buffer(at, address);
        }
        let cache_misses = at.depth as u8 + 1;
        let served = match self.next_level(at) {
            Some(next) if !self.lookup(next, address, request, false) => {
                self.allocate_at(next, address, request)
            }
            _ => Served { cache_misses, level: cache_misses, tlb_misses: 0 },
        };
        if !is_plain {
            self.prefetch_after_miss(at, address);
        }
        served
    }

    /// Allocates a line that a cache beyond L1 has missed.
    #[inline(never)]
    pub(super) fn allocate_at(&mut self, at: At, address: u64, request: Request) -> Served {
        let served = self.allocate(at, address, request, false);
        if request == Request::Write && usize::from(served.level) > at.depth {
            self.caches[at.index].count_write_fill(self.site);
        }
        served
    }

    /// Prefetches what a cache prefetches on a miss.
    #[inline(always)]
    fn prefetch_after_miss(&mut self, at: At, address: u64) {
        let cache = &mut self.caches[at.index];
        match cache.prefetcher.miss(address >> cache.shift) {
            (lines, _) if lines.is_empty() => {}
            (lines, true) => self.prefetch_into_cache(at, lines),
            (lines, false) => self.prefetch(at, lines),
        }
    }

    /// Prefetches lines into a cache itself.
    fn prefetch_into_cache(&mut self, at: At, lines: Range<u64>) {
        let shift = self.caches[at.index].shift;
        for line in lines {
            if !self.holds(at, line) {
                if let Some(next) = self.next_level(at) {
                    self.read(next, line << shift, Request::Prefetch);
                }
                self.fill(at, line << shift, false);
            }
        }
    }

    /// Prefetches lines that the prefetcher of a cache holds.
    fn prefetch(&mut self, at: At, lines: Range<u64>) {
        let shift = self.caches[at.index].shift;
        let Some(next) = self.next_level(at) else { return };
        // Lines within one line of the next level are a single use of it.
        let shift_between = self.caches[next.index].shift.saturating_sub(shift);
        let (mut line, mut uses) = (lines.start, 0);
        while line < lines.end {
            self.read(next, line << shift, Request::Prefetch);
            line = ((line >> shift_between) + 1) << shift_between;
            uses += 1;
        }
        self.caches[next.index].counts.requests[Request::Prefetch as usize] += lines.end - lines.start - uses;
    }

    /// Takes a line that a cache has missed from its victim or stream buffer.
    #[inline(always)]
    fn take_from_side_buffers(&mut self, at: At, address: u64, makes_dirty: bool) -> Option<Served> {
        if !self.caches[at.index].has_side_buffer_lines() {
            return None;
        }
        self.search_side_buffers(at, address, makes_dirty)
    }

    fn search_side_buffers(&mut self, at: At, address: u64, makes_dirty: bool) -> Option<Served> {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        let mut is_dirty = makes_dirty;
        if let Some(was_dirty) = cache.take_victim(key) {
            cache.counts.from_victims += 1;
            is_dirty |= was_dirty;
        } else {
            let lines = cache.prefetcher.take(key)?;
            cache.counts.from_stream += 1;
            self.prefetch(at, lines);
        }
        self.fill(at, address, is_dirty);
        Some(Served { cache_misses: at.depth as u8 + 1, level: at.depth as u8, tlb_misses: 0 })
    }

    /// Fills a line into a cache, and evicts the one that it replaces.
    #[inline(always)]
    fn fill(&mut self, at: At, address: u64, is_dirty: bool) {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        self.now += 1;
        let evicted = match cache.l1 {
            Some(side) => self.l1[side].fill_line(key, is_dirty, self.now),
            None => cache.tags.fill(key, is_dirty, self.now),
        };
        if let Some(evicted) = evicted.and_then(|evicted| cache.keep_victim(evicted))
            && (evicted.is_dirty || !cache.includes.is_empty())
        {
            self.evict(at, evicted);
        }
    }

    /// Handles a line that left the cache and its victim buffer: back-invalidates it in the caches that this one includes, and
    /// writes it to the next level if it is dirty.
    pub(super) fn evict(&mut self, at: At, evicted: Evicted) {
        let cache = &self.caches[at.index];
        let (first, length) = (evicted.key << cache.shift, 1 << cache.shift);
        let is_dirty = evicted.is_dirty | self.back_invalidate(at.index, first, length);
        let cache = &mut self.caches[at.index];
        if is_dirty && cache.write == WritePolicy::Back {
            cache.count_write_back(self.site);
            let shift = cache.shift;
            if let Some(next) = self.next_level(at) {
                self.write(next, first, self.caches[next.index].shift == shift);
            }
        }
    }

    /// Invalidates lines in the caches that a cache includes. Returns whether one of them was dirty.
    fn back_invalidate(&mut self, index: usize, first: u64, length: u64) -> bool {
        let mut is_dirty = false;
        for position in 0..self.caches[index].includes.len() {
            let included = self.caches[index].includes[position];
            let cache = &mut self.caches[included];
            for key in first >> cache.shift..=(first + (length - 1)) >> cache.shift {
                let was_dirty = match cache.l1 {
                    Some(side) => self.l1[side].remove_line(key),
                    None => cache.tags.remove(key),
                };
                is_dirty |= was_dirty.unwrap_or(false);
                is_dirty |= cache.take_victim(key).unwrap_or(false);
            }
            is_dirty |= self.back_invalidate(included, first, length);
        }
        is_dirty
    }

    /// Writes to a cache, for the level before it, a whole line or a part of one.
    fn write(&mut self, at: At, address: u64, is_whole: bool) {
        let CacheState { write, write_allocates, .. } = self.caches[at.index];
        let is_back = write == WritePolicy::Back;
        if !self.lookup(at, address, Request::Write, is_back)
            && self.take_from_side_buffers(at, address, is_back).is_none()
        {
            if !write_allocates && is_back {
                return self.write_next_level(at, address);
            }
            if write_allocates {
                if !is_whole {
                    self.caches[at.index].count_write_fill(self.site);
                    self.read_next_level(at, address, Request::Write);
                }
                self.fill(at, address, is_back);
            }
        }
        if write == WritePolicy::Through {
            self.write_through(at, address);
        }
    }

    /// Writes a part of a line to the next level.
    fn write_next_level(&mut self, at: At, address: u64) {
        if let Some(next) = self.next_level(at) {
            self.write(next, address, false);
        }
    }

    /// Writes a store to L1's data cache through.
    #[inline]
    pub(super) fn write_through_from_l1(&mut self, address: u64) {
        if let Some(at) = self.at(DATA, 0) {
            self.write_through(at, address);
        }
    }

    /// Writes a store through, by way of the write buffer.
    fn write_through(&mut self, at: At, address: u64) {
        let cache = &mut self.caches[at.index];
        if !cache.write_buffer.exists() {
            self.write_next_level(at, address);
        } else if cache.has_pending_write(address) {
            cache.counts.merged += 1;
        } else if let Some(least_recent) = cache.write_buffer.push(address >> cache.shift) {
            let address = least_recent << cache.shift;
            self.write_next_level(at, address);
        }
    }

    /// Drains a write buffer up to the block that is about to be read.
    #[inline]
    fn drain_write_buffer(&mut self, at: At, address: u64) {
        while self.caches[at.index].has_pending_write(address) {
            let cache = &mut self.caches[at.index];
            let Some(least_recent) = cache.write_buffer.pop() else { return };
            let first = least_recent << cache.shift;
            self.write_next_level(at, first);
        }
    }

    /// The cache at a depth of a side's path.
    #[inline(always)]
    fn at(&self, side: usize, depth: usize) -> Option<At> {
        let index = *self.paths[side].caches.get(depth)?;
        Some(At { side, depth, index })
    }

    /// The next level.
    #[inline(always)]
    fn next_level(&self, at: At) -> Option<At> {
        let index = self.caches[at.index].next_level[at.side]?;
        Some(At { depth: at.depth + 1, index, ..at })
    }
}
