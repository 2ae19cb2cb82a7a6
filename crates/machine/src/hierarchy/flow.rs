//! What happens when the nearest cache or translation buffer does not simply have what is asked for: through
//! the levels down to memory, and back.

use super::cache::CacheState;
use super::near::Outcome;
use super::tags::Left;
use super::{DATA, Hierarchy, INSTRUCTIONS, Request, Served, Simple};
use crate::description::{Prefetch, Write};

/// A cache on the path of a side.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) side: usize,
    /// Caches that are nearer.
    pub(super) depth: usize,
    pub(super) index: usize,
}

impl Hierarchy {
    /// The translation of an address is asked for. Returns how many translation buffers miss.
    #[inline(always)]
    pub(super) fn translate(&mut self, side: usize, address: u64, request: Request) -> u8 {
        if self.has_near {
            self.now += 1;
            if self.near[side].touch_page(address, self.now) {
                return 0;
            }
        }
        self.translate_behind(side, address, request)
    }

    /// The same, where the nearest translation buffer does not have it if it is in one of `near`.
    #[inline(never)]
    fn translate_behind(&mut self, side: usize, address: u64, request: Request) -> u8 {
        let mut missed = 0;
        for depth in 0..self.paths[side].buffers.len() {
            let index = self.paths[side].buffers[depth];
            let buffer = &mut self.buffers[index];
            let key = address >> buffer.shift;
            let class = self.classes.as_mut().map(|classes| classes.of_buffer(index, key));
            self.now += 1;
            match buffer.near {
                Some(side) => self.near[side].fill_page(key, self.now),
                None if buffer.tags.touch(key, false, self.now) => break,
                None => drop(buffer.tags.fill(key, false, self.now)),
            }
            buffer.misses[request as usize] += 1;
            self.buffer_class[depth] = class.unwrap_or_default();
            missed += 1;
        }
        missed
    }

    /// An access of the processor to the caches.
    #[inline(always)]
    pub(super) fn ask(&mut self, side: usize, address: u64, request: Request) -> Served {
        let Some(at) = self.at(side, 0) else { return Served::default() };
        let write = self.caches[at.index].write;
        let is_store = request == Request::Store;
        if !self.touch(at, address, request, is_store && write == Write::Back) {
            return self.ask_behind(at, address, request);
        }
        if is_store && write == Write::Through {
            self.write_on(at, address);
        }
        Served::default()
    }

    /// An access of the processor that its nearest cache misses.
    #[inline(always)]
    fn ask_behind(&mut self, at: At, address: u64, request: Request) -> Served {
        let cache = &mut self.caches[at.index];
        let (write, allocates) = (cache.write, cache.allocates);
        cache.counts.misses[request as usize] += 1;
        if request != Request::Store || write == Write::Ignored {
            return self.bring_in(at, address, request, false);
        }
        let is_back = write == Write::Back;
        let served = if allocates {
            self.bring_in(at, address, request, is_back)
        } else if let Some(served) = self.take_from_beside(at, address, is_back) {
            served
        } else {
            if is_back {
                self.write_behind(at, address);
            }
            Served { missed: 1, level: 1, untranslated: 0 }
        };
        if write == Write::Through {
            self.write_on(at, address);
        }
        served
    }

    /// An access of the processor to a side whose nearest cache is simple. None if nothing was done: this is not, or
    /// the translation is not there.
    #[inline(always)]
    pub(super) fn go_simply(&mut self, side: usize, address: u64, request: Request) -> Option<Served> {
        let simple = self.simple[side]?;
        if side == DATA
            && !simple.stores_too
            && (request == Request::Store || self.caches[simple.index].is_waiting(address))
        {
            // What is to be read may have to be written first.
            return None;
        }
        self.now += 1;
        let is_change = request == Request::Store && self.stores == Write::Back;
        match self.near[side].access(address, is_change, self.now) {
            Outcome::Untranslated => None,
            Outcome::Hit => Some(Served::default()),
            Outcome::Missed(left) => {
                let at = At { side, depth: 0, index: simple.index };
                self.caches[simple.index].counts.misses[request as usize] += 1;
                let served = self.read_simply(simple, at, address, request);
                if let Some(left) = left
                    && left.is_changed
                {
                    self.leave(at, left);
                }
                Some(served)
            }
        }
    }

    /// Reads what a simple cache has missed.
    #[inline(always)]
    fn read_simply(&mut self, simple: Simple, at: At, address: u64, request: Request) -> Served {
        if at.side == INSTRUCTIONS && simple.streams {
            return self.read_in_stream(simple, at, address, request);
        }
        match simple.behind {
            Some(behind) if !self.holds_behind(behind, address, request, false) => {
                self.bring_in_behind(At { depth: 1, index: behind, ..at }, address, request)
            }
            _ => Served { missed: 1, level: 1, untranslated: 0 },
        }
    }

    /// The same, where lines are prefetched in a stream.
    #[inline(never)]
    fn read_in_stream(&mut self, simple: Simple, at: At, address: u64, request: Request) -> Served {
        let cache = &mut self.caches[at.index];
        if let Some(taken) = cache.take_from_stream(address >> cache.shift) {
            cache.counts.from_stream += 1;
            self.prefetch(at, taken);
            return Served { missed: 1, level: 0, untranslated: 0 };
        }
        let served = self.read_simply(Simple { streams: false, ..simple }, at, address, request);
        self.prefetch_behind(at, address);
        served
    }

    /// Uses what is at an address if a nearest cache has it. Notes why it does not.
    #[inline(always)]
    fn touch(&mut self, at: At, address: u64, request: Request, is_change: bool) -> bool {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        self.now += 1;
        let is_there = match cache.near {
            Some(side) => self.near[side].touch_line(key, is_change, self.now),
            None => cache.tags.touch(key, is_change, self.now),
        };
        if self.classes.is_some() {
            self.note_class(at, address, request, is_there);
        }
        is_there
    }

    /// Whether a cache behind the nearest holds an address; counts the request.
    #[inline(always)]
    fn looks_up(&mut self, at: At, address: u64, request: Request, is_change: bool) -> bool {
        let is_there = self.holds_behind(at.index, address, request, is_change);
        if self.classes.is_some() {
            self.note_class(at, address, request, is_there);
        }
        is_there
    }

    /// The same, where nobody asks why it misses.
    #[inline(always)]
    fn holds_behind(&mut self, index: usize, address: u64, request: Request, is_change: bool) -> bool {
        let cache = &mut self.caches[index];
        self.now += 1;
        let is_there = cache.tags.touch(address >> cache.shift, is_change, self.now);
        cache.counts.requests[request as usize] += 1;
        cache.counts.misses[request as usize] += u64::from(!is_there);
        is_there
    }

    /// Notes why a cache missed, if it did.
    #[inline(never)]
    fn note_class(&mut self, at: At, address: u64, request: Request, is_there: bool) {
        if let Some(classes) = &mut self.classes {
            let class = classes.of_cache(at.index, address >> self.caches[at.index].shift);
            if !is_there && request.is_of_processor() {
                self.cache_class[at.depth] = class;
            }
        }
    }

    /// Reads a line of a cache behind the nearest.
    #[inline(always)]
    fn read(&mut self, at: At, address: u64, request: Request) {
        if !self.looks_up(at, address, request, false) {
            self.bring_in_behind(at, address, request);
        }
    }

    /// Whether a cache holds a line.
    fn holds(&self, at: At, key: u64) -> bool {
        let cache = &self.caches[at.index];
        match cache.near {
            Some(side) => self.near[side].holds_line(key),
            None => cache.tags.find(key).is_some(),
        }
    }

    /// Brings in a line that a cache has missed: from what is beside it, or from behind.
    #[inline(always)]
    fn bring_in(&mut self, at: At, address: u64, request: Request, is_changed: bool) -> Served {
        if let Some(served) = self.take_from_beside(at, address, is_changed) {
            return served;
        }
        let served = self.read_behind(at, address, request);
        self.fill(at, address, is_changed);
        served
    }

    /// Reads a line that a cache has missed from the levels behind it, which bring it in, and prefetches.
    #[inline(always)]
    fn read_behind(&mut self, at: At, address: u64, request: Request) -> Served {
        let is_plain = self.caches[at.index].is_plain;
        if !is_plain {
            self.write_out(at, address);
        }
        let missed = at.depth as u8 + 1;
        let served = match self.behind(at) {
            Some(next) if !self.looks_up(next, address, request, false) => {
                self.bring_in_behind(next, address, request)
            }
            _ => Served { missed, level: missed, untranslated: 0 },
        };
        if !is_plain {
            self.prefetch_behind(at, address);
        }
        served
    }

    /// Brings in a line that a cache behind the nearest has missed.
    #[inline(never)]
    pub(super) fn bring_in_behind(&mut self, at: At, address: u64, request: Request) -> Served {
        self.bring_in(at, address, request, false)
    }

    /// Fetches what a cache fetches ahead when it misses.
    #[inline(always)]
    fn prefetch_behind(&mut self, at: At, address: u64) {
        let cache = &mut self.caches[at.index];
        let (line, shift) = (address >> cache.shift, cache.shift);
        match cache.prefetch {
            None => {}
            Some(Prefetch::NextLines(lines)) => {
                for line in line + 1..=line + u64::from(lines) {
                    if !self.holds(at, line) {
                        if let Some(next) = self.behind(at) {
                            self.read(next, line << shift, Request::Prefetch);
                        }
                        self.fill(at, line << shift, false);
                    }
                }
            }
            Some(Prefetch::Stream(lines)) => {
                cache.stream = line + 1..line + 1;
                self.prefetch(at, lines.into());
            }
        }
    }

    /// Fetches so many more lines into the buffer beside a cache.
    fn prefetch(&mut self, at: At, lines: u64) {
        let cache = &mut self.caches[at.index];
        let (first, shift) = (cache.stream.end, cache.shift);
        let end = first + lines;
        cache.stream.end = end;
        let Some(next) = self.behind(at) else { return };
        // Those that are in one line of the next cache are one use of it.
        let shift_between = self.caches[next.index].shift.saturating_sub(shift);
        let (mut line, mut uses) = (first, 0);
        while line < end {
            self.read(next, line << shift, Request::Prefetch);
            line = ((line >> shift_between) + 1) << shift_between;
            uses += 1;
        }
        self.caches[next.index].counts.requests[Request::Prefetch as usize] += lines - uses;
    }

    /// Takes a line that a cache has missed from what is beside it: its victims, or its prefetched lines.
    #[inline(always)]
    fn take_from_beside(&mut self, at: At, address: u64, is_change: bool) -> Option<Served> {
        if !self.caches[at.index].has_lines_beside() {
            return None;
        }
        self.search_beside(at, address, is_change)
    }

    fn search_beside(&mut self, at: At, address: u64, is_change: bool) -> Option<Served> {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        let mut is_changed = is_change;
        if let Some(was_changed) = cache.take_victim(key) {
            cache.counts.from_victims += 1;
            is_changed |= was_changed;
        } else {
            let taken = cache.take_from_stream(key)?;
            cache.counts.from_stream += 1;
            self.prefetch(at, taken);
        }
        self.fill(at, address, is_changed);
        Some(Served { missed: at.depth as u8 + 1, level: at.depth as u8, untranslated: 0 })
    }

    /// Puts a line into a cache, and sends away what it replaces.
    #[inline(always)]
    fn fill(&mut self, at: At, address: u64, is_changed: bool) {
        let cache = &mut self.caches[at.index];
        let key = address >> cache.shift;
        self.now += 1;
        let left = match cache.near {
            Some(side) => self.near[side].fill_line(key, is_changed, self.now),
            None => cache.tags.fill(key, is_changed, self.now),
        };
        if let Some(left) = left.and_then(|left| cache.keep_victim(left))
            && (left.is_changed || !cache.includes.is_empty())
        {
            self.leave(at, left);
        }
    }

    /// A line leaves a cache for good, and all caches that it includes.
    pub(super) fn leave(&mut self, at: At, left: Left) {
        let cache = &self.caches[at.index];
        let (first, length) = (left.key << cache.shift, 1 << cache.shift);
        let is_changed = left.is_changed | self.expel_included(at.index, first, length);
        let cache = &mut self.caches[at.index];
        if is_changed && cache.write == Write::Back {
            cache.counts.written_back += 1;
            let shift = cache.shift;
            if let Some(next) = self.behind(at) {
                self.write(next, first, self.caches[next.index].shift == shift);
            }
        }
    }

    /// Takes lines out of the caches that a cache includes. Returns whether one was changed.
    fn expel_included(&mut self, index: usize, first: u64, length: u64) -> bool {
        let mut is_changed = false;
        for place in 0..self.caches[index].includes.len() {
            let included = self.caches[index].includes[place];
            let cache = &mut self.caches[included];
            for key in first >> cache.shift..=(first + length - 1) >> cache.shift {
                let was_changed = match cache.near {
                    Some(side) => self.near[side].remove_line(key),
                    None => cache.tags.remove(key),
                };
                is_changed |= was_changed.unwrap_or(false);
                is_changed |= cache.take_victim(key).unwrap_or(false);
            }
            is_changed |= self.expel_included(included, first, length);
        }
        is_changed
    }

    /// Writes to a cache what comes from a nearer one: a whole line of it, or a part.
    fn write(&mut self, at: At, address: u64, is_whole: bool) {
        let CacheState { write, allocates, .. } = self.caches[at.index];
        let is_back = write == Write::Back;
        if !self.looks_up(at, address, Request::Write, is_back)
            && self.take_from_beside(at, address, is_back).is_none()
        {
            if !allocates && is_back {
                return self.write_behind(at, address);
            }
            if allocates {
                if !is_whole {
                    self.read_behind(at, address, Request::Write);
                }
                self.fill(at, address, is_back);
            }
        }
        if write == Write::Through {
            self.write_on(at, address);
        }
    }

    /// Writes a part of a line to what is behind a cache.
    fn write_behind(&mut self, at: At, address: u64) {
        if let Some(next) = self.behind(at) {
            self.write(next, address, false);
        }
    }

    /// Sends on what was written through the nearest cache of data.
    #[inline]
    pub(super) fn write_on_from_nearest(&mut self, address: u64) {
        if let Some(at) = self.at(DATA, 0) {
            self.write_on(at, address);
        }
    }

    /// Sends on what was written through a cache, by way of its write buffer.
    fn write_on(&mut self, at: At, address: u64) {
        let cache = &mut self.caches[at.index];
        if !cache.writes.exists() {
            self.write_behind(at, address);
        } else if cache.is_waiting(address) {
            cache.counts.merged += 1;
        } else if let Some(oldest) = cache.writes.push(address >> cache.shift) {
            let address = oldest << cache.shift;
            self.write_behind(at, address);
        }
    }

    /// Empties a write buffer up to the block that is about to be read.
    #[inline]
    fn write_out(&mut self, at: At, address: u64) {
        while self.caches[at.index].is_waiting(address) {
            let cache = &mut self.caches[at.index];
            let Some(oldest) = cache.writes.pop() else { return };
            let first = oldest << cache.shift;
            self.write_behind(at, first);
        }
    }

    /// The cache at a depth of a side's path.
    #[inline(always)]
    fn at(&self, side: usize, depth: usize) -> Option<At> {
        let index = *self.paths[side].caches.get(depth)?;
        Some(At { side, depth, index })
    }

    /// The cache behind another one.
    #[inline(always)]
    fn behind(&self, at: At) -> Option<At> {
        let index = self.caches[at.index].behind[at.side]?;
        Some(At { depth: at.depth + 1, index, ..at })
    }
}
