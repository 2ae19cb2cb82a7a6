//! The reference model: caches and TLBs written from their definitions, with lists that are searched. It shares
//! only the machine descriptions with the crate.

#![allow(dead_code)]

// The including test imports these: the crate's name differs between tests.
use super::{
    Cache, Crossing, HintedRegions, Machine, Prefetch, Replacement, Request, TranslationBuffer, WritePolicy,
};

/// The tags of a cache or TLB.
pub struct Sets {
    replacement: Replacement,
    ways: usize,
    sets: Vec<Set>,
    random: u64,
}

#[derive(Clone, Default)]
struct Set {
    /// By way.
    entries: Vec<Option<Entry>>,
    /// The ways in use, the most recently used first.
    order: Vec<usize>,
    /// The way to replace next (FIFO), or the victim pointer.
    next: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    number: u64,
    is_dirty: bool,
}

impl Sets {
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Sets {
        let set = Set { entries: vec![None; ways as usize], ..Set::default() };
        Sets {
            replacement,
            ways: ways as usize,
            sets: vec![set; sets as usize],
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn set(&mut self, number: u64) -> &mut Set {
        let count = self.sets.len() as u64;
        &mut self.sets[(number % count) as usize]
    }

    fn way_of(&mut self, number: u64) -> Option<usize> {
        self.set(number).entries.iter().position(|entry| entry.is_some_and(|entry| entry.number == number))
    }

    pub fn holds(&mut self, number: u64) -> bool {
        self.way_of(number).is_some()
    }

    /// Uses an entry, if it is there. Returns whether it is.
    pub fn touch(&mut self, number: u64, makes_dirty: bool) -> bool {
        let Some(way) = self.way_of(number) else { return false };
        let (ways, replacement) = (self.ways, self.replacement);
        let set = self.set(number);
        set.entries[way].as_mut().unwrap().is_dirty |= makes_dirty;
        set.order.retain(|&other| other != way);
        set.order.insert(0, way);
        if replacement == Replacement::NotLastUsed && set.next == way {
            set.next = (way + 1) % ways;
        }
        true
    }

    /// Fills an entry that is not there. Returns the evicted one.
    pub fn fill(&mut self, number: u64, is_dirty: bool) -> Option<(u64, bool)> {
        let (ways, replacement) = (self.ways, self.replacement);
        let set = self.set(number);
        let empty = set.entries.iter().position(Option::is_none);
        let way = match (empty, replacement) {
            (Some(way), _) => way,
            (None, Replacement::Lru) => *set.order.last().unwrap(),
            (None, Replacement::NotLastUsed) => set.next,
            (None, Replacement::Fifo) => {
                let way = set.next;
                set.next = (way + 1) % ways;
                way
            }
            (None, Replacement::Random) if ways == 1 => 0,
            (None, Replacement::Random) => (self.draw() % ways as u64) as usize,
        };
        let left = self.set(number).entries[way].replace(Entry { number, is_dirty: false });
        self.touch(number, is_dirty);
        left.map(|left| (left.number, left.is_dirty))
    }

    pub fn remove(&mut self, number: u64) -> bool {
        let Some(way) = self.way_of(number) else { return false };
        let set = self.set(number);
        set.order.retain(|&other| other != way);
        set.entries[way].take().unwrap().is_dirty
    }

    /// The crate's sequence of random numbers: runs are repeatable, so that the sequence is specified.
    fn draw(&mut self) -> u64 {
        let mut state = self.random;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random = state;
        state >> 32
    }
}

/// The counts of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: [u64; 5],
    pub misses: [u64; 5],
    /// Lines read from the next level, by the kind of request.
    pub fills: [u64; 5],
    pub written_back: u64,
    pub from_victims: u64,
    pub from_stream: u64,
    pub merged: u64,
}

impl Tally {
    /// Lines filled for loads, filled for stores, and written back.
    pub fn traffic(&self) -> [u64; 3] {
        let fills = |request: Request| self.fills[request as usize];
        [fills(Request::Load), fills(Request::Store) + fills(Request::Write), self.written_back]
    }
}

struct Level {
    described: Cache,
    sets: Sets,
    tally: Tally,
    victims: Vec<(u64, bool)>,
    stream: Vec<u64>,
    writes: Vec<u64>,
}

struct Buffer {
    described: TranslationBuffer,
    sets: Sets,
    misses: [u64; 3],
}

/// A machine's hierarchy.
pub struct Plain {
    hinted: HintedRegions,
    levels: Vec<Level>,
    buffers: Vec<Buffer>,
    crossing: Crossing,
}

/// The first page of those that the entry of an address maps: of the largest block of pages, all of which lie in the address's
/// region with a hint, or else the page alone.
fn entry_of(address: u64, buffer: &TranslationBuffer, hinted: &HintedRegions) -> u64 {
    pages_of_entry(address, buffer.page, &buffer.granularity_hints, hinted).start
}

/// The pages that the entry of an address maps.
pub fn pages_of_entry(
    address: u64,
    page: u64,
    sizes: &[u32],
    hinted: &HintedRegions,
) -> std::ops::Range<u64> {
    // Bits above these are the process's.
    let in_process = address % (1 << 43);
    let other_bits = (address - in_process) / page;
    let own = in_process / page;
    let mut largest = own..own + 1;
    for region in hinted.iter() {
        let lies_in_it =
            |other: u64| other * page >= region.addresses.start && (other + 1) * page <= region.addresses.end;
        for &size in sizes {
            let first = own - own % u64::from(size);
            let block = first..first + u64::from(size);
            if size <= region.most_pages && block.clone().all(lies_in_it) {
                largest = block;
            }
        }
    }
    largest.start + other_bits..largest.end + other_bits
}

/// How an access was served: caches that missed, the level that hit, TLBs that missed.
pub type PlainServed = (u8, u8, u8);

impl Plain {
    pub fn new(machine: &Machine) -> Plain {
        let level = |cache: &Cache| Level {
            described: cache.clone(),
            sets: Sets::new(cache.size / cache.line / u64::from(cache.ways), cache.ways, cache.replacement),
            tally: Tally::default(),
            victims: Vec::new(),
            stream: Vec::new(),
            writes: Vec::new(),
        };
        let buffer = |buffer: &TranslationBuffer| {
            let ways = buffer.ways.unwrap_or(buffer.entries);
            Buffer {
                described: buffer.clone(),
                sets: Sets::new(u64::from(buffer.entries / ways), ways, buffer.replacement),
                misses: [0; 3],
            }
        };
        Plain {
            hinted: machine.memory.granularity_hints.clone(),
            levels: machine.caches.iter().map(level).collect(),
            buffers: machine.translation_buffers.iter().map(buffer).collect(),
            crossing: machine.processor.crossing,
        }
    }

    pub fn tallies(&self) -> Vec<Tally> {
        self.levels.iter().map(|level| level.tally).collect()
    }

    pub fn buffer_misses(&self) -> Vec<[u64; 3]> {
        self.buffers.iter().map(|buffer| buffer.misses).collect()
    }

    /// Fetches instructions within a line.
    pub fn fetch(&mut self, address: u64) -> PlainServed {
        self.access(address, Request::Fetch)
    }

    /// Loads or stores; the slowest of the parts.
    pub fn data(&mut self, address: u64, size: u8, is_store: bool) -> PlainServed {
        let parts = self.parts(address, size, is_store);
        let worse = |one: PlainServed, other: PlainServed| {
            (one.0.max(other.0), one.1.max(other.1), one.2.max(other.2))
        };
        parts.into_iter().reduce(worse).unwrap()
    }

    /// Loads or stores each line, or page if pages are smaller, by itself.
    pub fn parts(&mut self, address: u64, size: u8, is_store: bool) -> Vec<PlainServed> {
        let request = if is_store { Request::Store } else { Request::Load };
        let last = address + u64::from(size) - 1;
        let line = self.path(false).first().map(|&index| self.levels[index].described.line);
        let page = self.buffers_of(false).first().map(|&index| self.buffers[index].described.page);
        let piece = line.into_iter().chain(page).min();
        let is_two =
            self.crossing == Crossing::Both && piece.is_some_and(|piece| address / piece != last / piece);
        let mut parts = vec![self.access(address, request)];
        if is_two {
            parts.push(self.access(last, request));
        }
        parts
    }

    fn path(&self, instructions: bool) -> Vec<usize> {
        (0..self.levels.len()).filter(|&index| self.levels[index].described.holds.has(instructions)).collect()
    }

    fn buffers_of(&self, instructions: bool) -> Vec<usize> {
        (0..self.buffers.len())
            .filter(|&index| self.buffers[index].described.holds.has(instructions))
            .collect()
    }

    fn access(&mut self, address: u64, request: Request) -> PlainServed {
        let instructions = request == Request::Fetch;
        let mut tlb_misses = 0;
        for index in self.buffers_of(instructions) {
            let buffer = &mut self.buffers[index];
            let page = entry_of(address, &buffer.described, &self.hinted);
            if buffer.sets.touch(page, false) {
                break;
            }
            buffer.misses[request as usize] += 1;
            buffer.sets.fill(page, false);
            tlb_misses += 1;
        }
        let path = self.path(instructions);
        let (missed, level) = if path.is_empty() { (0, 0) } else { self.access_l1(&path, address, request) };
        (missed, level, tlb_misses)
    }

    fn access_l1(&mut self, path: &[usize], address: u64, request: Request) -> (u8, u8) {
        let described = self.levels[path[0]].described.clone();
        if request != Request::Store || described.write == WritePolicy::Ignored {
            return self.read(path, 0, address, request);
        }
        let line = address / described.line;
        let is_back = described.write == WritePolicy::Back;
        let way = if self.levels[path[0]].sets.touch(line, is_back) {
            (0, 0)
        } else {
            self.levels[path[0]].tally.misses[Request::Store as usize] += 1;
            if self.take_from_buffers(path, 0, address, is_back) {
                (1, 0)
            } else if described.allocate_on_write {
                let way = self.read_next_level(path, 0, address, request);
                self.fill(path, 0, line, is_back);
                way
            } else {
                if is_back {
                    self.write(path, 1, address, false);
                }
                (1, 1)
            }
        };
        if described.write == WritePolicy::Through {
            self.write_through(path, 0, address);
        }
        way
    }

    fn read(&mut self, path: &[usize], depth: usize, address: u64, request: Request) -> (u8, u8) {
        let here = depth as u8;
        let Some(&index) = path.get(depth) else { return (here, here) };
        let level = &mut self.levels[index];
        let line = address / level.described.line;
        if depth > 0 {
            level.tally.requests[request as usize] += 1;
        }
        if level.sets.touch(line, false) {
            return (here, here);
        }
        level.tally.misses[request as usize] += 1;
        if self.take_from_buffers(path, depth, address, false) {
            return (here + 1, here);
        }
        let way = self.read_next_level(path, depth, address, request);
        self.fill(path, depth, line, false);
        way
    }

    /// Reads a line from the next level, and prefetches.
    fn read_next_level(&mut self, path: &[usize], depth: usize, address: u64, request: Request) -> (u8, u8) {
        let index = path[depth];
        let size = self.levels[index].described.line;
        let line = address / size;
        self.levels[index].tally.fills[request as usize] += 1;
        if self.levels[index].writes.contains(&line) {
            while self.drain_one_write(path, depth) != line {}
        }
        let way = self.read(path, depth + 1, address, request);
        match self.levels[index].described.prefetch {
            None => {}
            Some(Prefetch::NextLines(lines)) => {
                for next in line + 1..=line + u64::from(lines) {
                    if !self.levels[index].sets.holds(next) {
                        self.read(path, depth + 1, next * size, Request::Prefetch);
                        self.fill(path, depth, next, false);
                    }
                }
            }
            Some(Prefetch::Stream(lines)) => {
                self.levels[index].stream.clear();
                for next in line + 1..=line + u64::from(lines) {
                    self.read(path, depth + 1, next * size, Request::Prefetch);
                    self.levels[index].stream.push(next);
                }
            }
        }
        way
    }

    fn take_from_buffers(&mut self, path: &[usize], depth: usize, address: u64, makes_dirty: bool) -> bool {
        let index = path[depth];
        let size = self.levels[index].described.line;
        let line = address / size;
        if let Some(position) = self.levels[index].victims.iter().position(|victim| victim.0 == line) {
            let (_, is_dirty) = self.levels[index].victims.remove(position);
            self.levels[index].tally.from_victims += 1;
            self.fill(path, depth, line, is_dirty || makes_dirty);
            return true;
        }
        let Some(position) = self.levels[index].stream.iter().position(|&next| next == line) else {
            return false;
        };
        self.levels[index].tally.from_stream += 1;
        let last = *self.levels[index].stream.last().unwrap();
        for next in last + 1..=last + 1 + position as u64 {
            self.read(path, depth + 1, next * size, Request::Prefetch);
            self.levels[index].stream.remove(0);
            self.levels[index].stream.push(next);
        }
        self.fill(path, depth, line, makes_dirty);
        true
    }

    fn fill(&mut self, path: &[usize], depth: usize, line: u64, is_dirty: bool) {
        let level = &mut self.levels[path[depth]];
        let Some(mut left) = level.sets.fill(line, is_dirty) else { return };
        level.victims.push(left);
        if level.victims.len() <= level.described.victim_lines as usize {
            return;
        }
        left = level.victims.remove(0);
        let described = level.described.clone();
        let first = left.0 * described.line;
        let mut is_dirty = left.1;
        for name in &described.includes {
            is_dirty |= self.back_invalidate(name, first, described.line);
        }
        if is_dirty && described.write == WritePolicy::Back {
            self.levels[path[depth]].tally.written_back += 1;
            let is_whole =
                path.get(depth + 1).is_some_and(|&next| self.levels[next].described.line == described.line);
            self.write(path, depth + 1, first, is_whole);
        }
    }

    fn back_invalidate(&mut self, name: &str, first: u64, bytes: u64) -> bool {
        let level = self.levels.iter_mut().find(|level| level.described.name == *name).unwrap();
        let size = level.described.line;
        let mut is_dirty = false;
        for line in first / size..=(first + bytes - 1) / size {
            is_dirty |= level.sets.remove(line);
            if let Some(position) = level.victims.iter().position(|victim| victim.0 == line) {
                is_dirty |= level.victims.remove(position).1;
            }
        }
        for name in level.described.includes.clone() {
            is_dirty |= self.back_invalidate(&name, first, bytes);
        }
        is_dirty
    }

    fn write(&mut self, path: &[usize], depth: usize, address: u64, is_whole: bool) {
        let Some(&index) = path.get(depth) else { return };
        let level = &mut self.levels[index];
        let described = level.described.clone();
        let line = address / described.line;
        let is_back = described.write == WritePolicy::Back;
        level.tally.requests[Request::Write as usize] += 1;
        if !level.sets.touch(line, is_back) {
            level.tally.misses[Request::Write as usize] += 1;
            if !self.take_from_buffers(path, depth, address, is_back) {
                if described.allocate_on_write {
                    if !is_whole {
                        self.read_next_level(path, depth, address, Request::Write);
                    }
                    self.fill(path, depth, line, is_back);
                } else if is_back {
                    return self.write(path, depth + 1, address, false);
                }
            }
        }
        if described.write == WritePolicy::Through {
            self.write_through(path, depth, address);
        }
    }

    fn write_through(&mut self, path: &[usize], depth: usize, address: u64) {
        let level = &mut self.levels[path[depth]];
        let Some(buffer) = level.described.write_buffer else {
            return self.write(path, depth + 1, address, false);
        };
        let line = address / level.described.line;
        if level.writes.contains(&line) {
            level.tally.merged += 1;
        } else {
            level.writes.push(line);
            if level.writes.len() > buffer.entries as usize {
                self.drain_one_write(path, depth);
            }
        }
    }

    fn drain_one_write(&mut self, path: &[usize], depth: usize) -> u64 {
        let level = &mut self.levels[path[depth]];
        let line = level.writes.remove(0);
        let address = line * level.described.line;
        self.write(path, depth + 1, address, false);
        line
    }
}
