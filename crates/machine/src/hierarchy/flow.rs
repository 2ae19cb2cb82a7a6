//! What happens when the nearest cache or translation buffer does not simply have what is asked for: through
//! the levels down to memory, and back.

use super::cache::CacheState;
use super::tags::{Left, NOTHING};
use super::{Hierarchy, Request, Served};
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
            let has_front = self.has_fronts[side] && depth == 0;
            if buffer.touch(key, self.now, has_front.then_some(&mut self.fronts[side])) {
                break;
            }
            buffer.fill(key, self.now, has_front.then_some(&mut self.fronts[side]));
            buffer.misses[request as usize] += 1;
            self.buffer_class[depth] = class.unwrap_or_default();
            missed += 1;
        }
        missed
    }

    /// An access of the processor to the caches.
    #[inline]
    pub(super) fn ask(&mut self, side: usize, address: u64, request: Request) -> Served {
        let Some(&index) = self.paths[side].caches.first() else { return Served::default() };
        let write = self.caches[index].write;
        if request != Request::Store || write == Write::Ignored {
            return self.read(side, 0, address, request);
        }
        let is_back = write == Write::Back;
        let served = if self.looks_up(0, index, address, request, is_back) {
            Served::default()
        } else if let Some(served) = self.take_from_beside(side, 0, address, is_back) {
            served
        } else if self.caches[index].allocates {
            let served = self.read_behind(side, 0, address, request);
            self.fill(side, 0, address, is_back);
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

    /// Whether a cache holds an address; counts the request.
    #[inline]
    fn looks_up(
        &mut self,
        depth: usize,
        index: usize,
        address: u64,
        request: Request,
        is_change: bool,
    ) -> bool {
        let cache = &mut self.caches[index];
        let key = address >> cache.shift;
        let class = self.classes.as_mut().map(|classes| classes.of_cache(index, key));
        let slot = cache.tags.find(key);
        if depth > 0 {
            cache.counts.requests[request as usize] += 1;
        }
        match slot {
            Some(slot) if depth > 0 => cache.touch_alone(slot, self.now, is_change),
            Some(slot) => self.use_slot(depth, index, slot, is_change),
            None => {
                cache.counts.misses[request as usize] += 1;
                if request.is_of_processor() {
                    self.cache_class[depth] = class.unwrap_or_default();
                }
            }
        }
        slot.is_some()
    }

    /// What is in a slot of a cache is used.
    #[inline]
    fn use_slot(&mut self, depth: usize, index: usize, slot: usize, is_change: bool) {
        let cache = &mut self.caches[index];
        let front = cache.front;
        let (tags, mut marks) = cache.marked(&mut self.fronts);
        let pointed = tags.touch(slot, self.now, is_change, &mut marks);
        if let (Some(front), Some(pointed)) = (front, pointed) {
            let key = tags.key(pointed);
            self.forget(front, key);
        }
        if depth == 0 {
            self.near_slot = Some(slot);
        }
    }

    /// Reads a line of the cache at a depth of a path.
    #[inline]
    fn read(&mut self, side: usize, depth: usize, address: u64, request: Request) -> Served {
        let Some(&index) = self.paths[side].caches.get(depth) else {
            return Served { missed: depth as u8, level: depth as u8, untranslated: 0 };
        };
        if self.looks_up(depth, index, address, request, false) {
            return Served { missed: depth as u8, level: depth as u8, untranslated: 0 };
        }
        if let Some(served) = self.take_from_beside(side, depth, address, false) {
            return served;
        }
        let served = self.read_behind(side, depth, address, request);
        self.fill(side, depth, address, false);
        served
    }

    /// Reads from a cache that is not the nearest what it has; or else does nothing.
    #[inline(always)]
    fn serves(&mut self, index: usize, address: u64, request: Request) -> bool {
        let cache = &mut self.caches[index];
        let slot = if self.classes.is_none() { cache.tags.find(address >> cache.shift) } else { None };
        if let Some(slot) = slot {
            cache.counts.requests[request as usize] += 1;
            cache.touch_alone(slot, self.now, false);
        }
        slot.is_some()
    }

    /// Reads a line that a cache has missed from the next level, and prefetches.
    #[inline]
    fn read_behind(&mut self, side: usize, depth: usize, address: u64, request: Request) -> Served {
        let index = self.paths[side].caches[depth];
        self.write_out(side, depth, address);
        let next = self.paths[side].caches.get(depth + 1).copied();
        let served = if next.is_some_and(|next| self.serves(next, address, request)) {
            Served { missed: depth as u8 + 1, level: depth as u8 + 1, untranslated: 0 }
        } else {
            self.read(side, depth + 1, address, request)
        };
        match self.caches[index].prefetch {
            None => {}
            Some(Prefetch::NextLines(lines)) => {
                for address in following(&self.caches[index], address, lines) {
                    let cache = &self.caches[index];
                    if cache.tags.find(address >> cache.shift).is_none() {
                        self.read(side, depth + 1, address, Request::Prefetch);
                        self.fill(side, depth, address, false);
                    }
                }
            }
            Some(Prefetch::Stream(lines)) => self.go_ahead(side, depth, address, None, lines),
        }
        served
    }

    /// Fetches lines ahead of one that a cache has missed: as many as were taken from those beside it, behind
    /// them, or so many instead of them.
    pub(super) fn go_ahead(
        &mut self,
        side: usize,
        depth: usize,
        address: u64,
        taken: Option<usize>,
        lines: u32,
    ) {
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        let (last, lines) = match taken {
            Some(taken) => {
                cache.counts.from_stream += 1;
                (cache.stream.back().map_or(address, |last| last << cache.shift), taken as u32)
            }
            None => {
                cache.stream.clear();
                (address, lines)
            }
        };
        self.prefetch(side, depth, last, lines);
    }

    /// Fetches the lines behind an address into the buffer beside a cache.
    fn prefetch(&mut self, side: usize, depth: usize, address: u64, lines: u32) {
        let path = &self.paths[side].caches;
        let (index, next) = (path[depth], path.get(depth + 1).copied());
        for address in following(&self.caches[index], address, lines) {
            if !next.is_some_and(|next| self.serves(next, address, Request::Prefetch)) {
                self.read(side, depth + 1, address, Request::Prefetch);
            }
            let cache = &mut self.caches[index];
            cache.stream.push_back(address >> cache.shift);
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
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        if !cache.has_lines_beside() {
            return None;
        }
        let key = address >> cache.shift;
        let mut is_changed = is_change;
        if let Some(was_changed) = cache.take_victim(key) {
            cache.counts.from_victims += 1;
            is_changed |= was_changed;
        } else {
            let taken = cache.take_from_stream(key)?;
            self.go_ahead(side, depth, address, Some(taken), 0);
        }
        self.fill(side, depth, address, is_changed);
        Some(Served { missed: depth as u8 + 1, level: depth as u8, untranslated: 0 })
    }

    /// Puts a line into a cache, and sends away what it replaces.
    #[inline]
    fn fill(&mut self, side: usize, depth: usize, address: u64, is_changed: bool) {
        let index = self.paths[side].caches[depth];
        let cache = &mut self.caches[index];
        let (key, front) = (address >> cache.shift, cache.front);
        let (tags, mut marks) = cache.marked(&mut self.fronts);
        let slot = tags.choose(key, marks.used);
        let left = tags.replace(slot, key, &mut marks);
        if let Some(front) = front {
            self.forget(front, left.key);
        }
        self.use_slot(depth, index, slot, is_changed);
        if left.key == NOTHING {
            return;
        }
        if let Some(left) = self.caches[index].keep_victim(left) {
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
        let shift = self.caches[index].shift;
        let mut is_changed = false;
        for key in first >> shift..=(first + length - 1) >> shift {
            if let Some(front) = self.caches[index].front {
                self.forget(front, key);
            }
            let (tags, mut marks) = self.caches[index].marked(&mut self.fronts);
            is_changed |= tags.remove(key, &mut marks).unwrap_or(false);
            is_changed |= self.caches[index].take_victim(key).unwrap_or(false);
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
        if cache.writes.back() == Some(&block) || cache.writes.contains(&block) {
            cache.counts.merged += 1;
            return;
        }
        cache.writes.push_back(block);
        if cache.writes.len() > cache.most_writes {
            self.write_oldest(side, depth);
        }
    }

    fn write_oldest(&mut self, side: usize, depth: usize) {
        let cache = &mut self.caches[self.paths[side].caches[depth]];
        if let Some(block) = cache.writes.pop_front() {
            let address = block << cache.shift;
            self.write(side, depth + 1, address, false);
        }
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

/// The lines behind the one at an address.
fn following(cache: &CacheState, address: u64, lines: u32) -> impl Iterator<Item = u64> + use<> {
    let (line, shift) = (address >> cache.shift, cache.shift);
    (1..=u64::from(lines)).map(move |ahead| (line + ahead) << shift)
}
