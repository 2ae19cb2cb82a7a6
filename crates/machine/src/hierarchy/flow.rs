//! What happens when the nearest cache or translation buffer does not simply have what is asked for: through
//! the levels down to memory, and back.

use super::cache::CacheState;
use super::tags::{Left, Tags};
use super::{Hierarchy, Near, Request, Served};
use crate::description::{Prefetch, Write};

impl Hierarchy {
    /// The translation of an address is asked for. Returns how many translation buffers miss.
    #[inline]
    pub(super) fn translate(&mut self, side: usize, address: u64, request: Request) -> u8 {
        let mut missed = 0;
        for depth in 0..self.paths[side].buffers.len() {
            let index = self.paths[side].buffers[depth];
            let buffer = &mut self.buffers[index];
            let key = address >> buffer.shift;
            let class = self.classes.as_mut().map(|classes| classes.of_buffer(index, key));
            let pages = match buffer.near {
                Some(side) => {
                    self.near[side].last_page = key;
                    self.near[side].pages.as_mut().expect("they are there")
                }
                None => &mut buffer.tags,
            };
            if pages.touch(key, false) {
                break;
            }
            pages.fill(key, false);
            buffer.misses[request as usize] += 1;
            self.buffer_class[depth] = class.unwrap_or_default();
            missed += 1;
        }
        missed
    }

    /// An access of the processor to the caches.
    pub(super) fn ask(&mut self, side: usize, address: u64, request: Request) -> Served {
        let Some(&index) = self.paths[side].caches.first() else { return Served::default() };
        let write = self.caches[index].write;
        let is_store = request == Request::Store;
        if !self.touch(0, index, address, request, is_store && write == Write::Back) {
            return self.ask_behind(side, address, request);
        }
        if is_store && write == Write::Through {
            self.write_on(side, 0, address);
        }
        Served::default()
    }

    /// An access of the processor that its nearest cache misses.
    #[inline(always)]
    pub(super) fn ask_behind(&mut self, side: usize, address: u64, request: Request) -> Served {
        let index = self.paths[side].caches[0];
        let cache = &mut self.caches[index];
        let (write, allocates) = (cache.write, cache.allocates);
        cache.counts.misses[request as usize] += 1;
        if request != Request::Store || write == Write::Ignored {
            return self.bring_in(side, 0, address, request, false);
        }
        let is_back = write == Write::Back;
        let served = if allocates {
            self.bring_in(side, 0, address, request, is_back)
        } else if let Some(served) = self.take_from_beside(side, 0, address, is_back) {
            served
        } else {
            if is_back {
                self.write(side, 1, address, false);
            }
            Served { missed: 1, level: 1, untranslated: 0 }
        };
        if write == Write::Through {
            self.write_on(side, 0, address);
        }
        served
    }

    /// Uses what is at an address if a cache has it. Notes why it does not.
    #[inline(always)]
    fn touch(&mut self, depth: usize, index: usize, address: u64, request: Request, is_change: bool) -> bool {
        let cache = &mut self.caches[index];
        let key = address >> cache.shift;
        let is_there = held(cache, &mut self.near).touch(key, is_change);
        if let Some(classes) = &mut self.classes {
            let class = classes.of_cache(index, key);
            if !is_there && request.is_of_processor() {
                self.cache_class[depth] = class;
            }
        }
        is_there
    }

    /// Whether a cache behind the nearest holds an address; counts the request.
    #[inline(always)]
    fn looks_up(
        &mut self,
        depth: usize,
        index: usize,
        address: u64,
        request: Request,
        is_change: bool,
    ) -> bool {
        let is_there = self.touch(depth, index, address, request, is_change);
        let counts = &mut self.caches[index].counts;
        counts.requests[request as usize] += 1;
        counts.misses[request as usize] += u64::from(!is_there);
        is_there
    }

    /// Reads a line of the cache at a depth of a path behind the nearest.
    fn read(&mut self, side: usize, depth: usize, address: u64, request: Request) {
        if let Some(&index) = self.paths[side].caches.get(depth)
            && !self.looks_up(depth, index, address, request, false)
        {
            self.bring_in(side, depth, address, request, false);
        }
    }

    /// Brings in a line that a cache has missed: from what is beside it, or from behind.
    #[inline(always)]
    fn bring_in(
        &mut self,
        side: usize,
        depth: usize,
        address: u64,
        request: Request,
        is_changed: bool,
    ) -> Served {
        if let Some(served) = self.take_from_beside(side, depth, address, is_changed) {
            return served;
        }
        let served = self.read_behind(side, depth, address, request);
        self.fill(side, depth, address, is_changed);
        served
    }

    /// Reads a line that a cache has missed from the levels behind it, which bring it in, and prefetches.
    #[inline]
    fn read_behind(&mut self, side: usize, depth: usize, address: u64, request: Request) -> Served {
        let mut missed = depth;
        let served = loop {
            self.write_out(side, missed, address);
            missed += 1;
            let here = Served { missed: missed as u8, level: missed as u8, untranslated: 0 };
            let Some(&index) = self.paths[side].caches.get(missed) else { break here };
            if self.looks_up(missed, index, address, request, false) {
                break here;
            }
            if let Some(served) = self.take_from_beside(side, missed, address, false) {
                break served;
            }
        };
        for missed in (depth + 1..missed).rev() {
            self.prefetch_behind(side, missed, address);
            self.fill(side, missed, address, false);
        }
        self.prefetch_behind(side, depth, address);
        served
    }

    /// Fetches what a cache fetches ahead when it misses.
    #[inline(always)]
    fn prefetch_behind(&mut self, side: usize, depth: usize, address: u64) {
        let index = self.paths[side].caches[depth];
        match self.caches[index].prefetch {
            None => {}
            Some(Prefetch::NextLines(lines)) => {
                for address in following(&self.caches[index], address, lines) {
                    let cache = &mut self.caches[index];
                    let key = address >> cache.shift;
                    if !held(cache, &mut self.near).holds(key) {
                        self.read(side, depth + 1, address, Request::Prefetch);
                        self.fill(side, depth, address, false);
                    }
                }
            }
            Some(Prefetch::Stream(lines)) => {
                self.caches[index].stream.clear();
                self.prefetch(side, depth, address, lines);
            }
        }
    }

    /// Fetches the lines behind an address into the buffer beside a cache.
    fn prefetch(&mut self, side: usize, depth: usize, address: u64, lines: u32) {
        let index = self.paths[side].caches[depth];
        for address in following(&self.caches[index], address, lines) {
            self.read(side, depth + 1, address, Request::Prefetch);
            let cache = &mut self.caches[index];
            cache.stream.push(address >> cache.shift);
        }
    }

    /// Takes a line that a cache has missed from what is beside it: its victims, or its prefetched lines.
    #[inline]
    fn take_from_beside(
        &mut self,
        side: usize,
        depth: usize,
        address: u64,
        is_change: bool,
    ) -> Option<Served> {
        if !self.caches[self.paths[side].caches[depth]].has_lines_beside() {
            return None;
        }
        self.search_beside(side, depth, address, is_change)
    }

    fn search_beside(&mut self, side: usize, depth: usize, address: u64, is_change: bool) -> Option<Served> {
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        let key = address >> cache.shift;
        let mut is_changed = is_change;
        if let Some(was_changed) = cache.take_victim(key) {
            cache.counts.from_victims += 1;
            is_changed |= was_changed;
        } else {
            let taken = cache.take_from_stream(key)?;
            cache.counts.from_stream += 1;
            let last = cache.stream.last().copied().unwrap_or(key) << cache.shift;
            self.prefetch(side, depth, last, taken as u32);
        }
        self.fill(side, depth, address, is_changed);
        Some(Served { missed: depth as u8 + 1, level: depth as u8, untranslated: 0 })
    }

    /// Puts a line into a cache, and sends away what it replaces.
    #[inline(always)]
    fn fill(&mut self, side: usize, depth: usize, address: u64, is_changed: bool) {
        let index = self.paths[side].caches[depth];
        let cache = &mut self.caches[index];
        let key = address >> cache.shift;
        let left = held(cache, &mut self.near).fill(key, is_changed);
        if let Some(left) = left.and_then(|left| cache.keep_victim(left))
            && (left.is_changed || !cache.includes.is_empty())
        {
            self.leave(side, depth, left);
        }
    }

    /// A line leaves a cache for good, and all caches that it includes.
    fn leave(&mut self, side: usize, depth: usize, left: Left) {
        let index = self.paths[side].caches[depth];
        let (first, length) = (left.key << self.caches[index].shift, 1 << self.caches[index].shift);
        let mut is_changed = left.is_changed;
        for place in 0..self.caches[index].includes.len() {
            is_changed |= self.expel(self.caches[index].includes[place], first, length);
        }
        if is_changed && self.caches[index].write == Write::Back {
            self.caches[index].counts.written_back += 1;
            let next = self.paths[side].caches.get(depth + 1);
            let is_whole = next.is_some_and(|&next| self.caches[next].shift == self.caches[index].shift);
            self.write(side, depth + 1, first, is_whole);
        }
    }

    /// Takes lines out of a cache and those that it includes. Returns whether one was changed.
    fn expel(&mut self, index: usize, first: u64, length: u64) -> bool {
        let cache = &mut self.caches[index];
        let shift = cache.shift;
        let mut is_changed = false;
        for key in first >> shift..=(first + length - 1) >> shift {
            is_changed |= held(cache, &mut self.near).remove(key).unwrap_or(false);
            is_changed |= cache.take_victim(key).unwrap_or(false);
        }
        for place in 0..self.caches[index].includes.len() {
            is_changed |= self.expel(self.caches[index].includes[place], first, length);
        }
        is_changed
    }

    /// Writes to the cache at a depth of a path what comes from a nearer one: a whole line of it, or a part.
    fn write(&mut self, side: usize, depth: usize, address: u64, is_whole: bool) {
        let Some(&index) = self.paths[side].caches.get(depth) else { return };
        let (write, allocates) = (self.caches[index].write, self.caches[index].allocates);
        let is_back = write == Write::Back;
        if !self.looks_up(depth, index, address, Request::Write, is_back)
            && self.take_from_beside(side, depth, address, is_back).is_none()
        {
            if !allocates && is_back {
                return self.write(side, depth + 1, address, false);
            }
            if allocates {
                if !is_whole {
                    self.read_behind(side, depth, address, Request::Write);
                }
                self.fill(side, depth, address, is_back);
            }
        }
        if write == Write::Through {
            self.write_on(side, depth, address);
        }
    }

    /// Sends on what was written through a cache, by way of its write buffer.
    pub(super) fn write_on(&mut self, side: usize, depth: usize, address: u64) {
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        let block = address >> cache.shift;
        if cache.most_writes == 0 {
            return self.write(side, depth + 1, address, false);
        }
        if cache.writes.contains(&block) {
            cache.counts.merged += 1;
            return;
        }
        cache.writes.push(block);
        if cache.writes.len() > cache.most_writes {
            self.write_oldest(side, depth);
        }
    }

    fn write_oldest(&mut self, side: usize, depth: usize) {
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        let address = cache.writes.remove(0) << cache.shift;
        self.write(side, depth + 1, address, false);
    }

    /// Empties a write buffer up to the block that is about to be read.
    #[inline]
    fn write_out(&mut self, side: usize, depth: usize, address: u64) {
        let cache = &self.caches[self.paths[side].caches[depth]];
        if cache.writes.is_empty() {
            return;
        }
        let block = address >> cache.shift;
        if let Some(place) = cache.writes.iter().position(|&held| held == block) {
            for _ in 0..=place {
                self.write_oldest(side, depth);
            }
        }
    }
}

/// What a cache holds.
#[inline]
fn held<'a>(cache: &'a mut CacheState, near: &'a mut [Near; 2]) -> &'a mut Tags {
    match cache.near {
        Some(side) => &mut near[side].lines,
        None => &mut cache.tags,
    }
}

/// The lines behind the one at an address.
fn following(cache: &CacheState, address: u64, lines: u32) -> impl Iterator<Item = u64> + use<> {
    let (line, shift) = (address >> cache.shift, cache.shift);
    (1..=u64::from(lines)).map(move |ahead| (line + ahead) << shift)
}
