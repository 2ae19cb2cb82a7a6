//! Caches and translation buffers as their definitions say, without a thought for speed: lists that are
//! searched and sorted. Shares no code with the crate but the descriptions.

#![allow(dead_code)]

// What includes this names the crate as it knows it.
use super::{Cache, Crossing, Machine, Prefetch, Replacement, Request, TranslationBuffer, Write};

/// Something with sets of ways, each a list of entries.
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
    /// The ways that hold something, the most recently used first.
    order: Vec<usize>,
    /// The next in turn, or the pointer.
    next: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    number: u64,
    is_changed: bool,
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

    /// Uses an entry that may be there.
    pub fn touch(&mut self, number: u64, is_change: bool) -> bool {
        let Some(way) = self.way_of(number) else { return false };
        let (ways, replacement) = (self.ways, self.replacement);
        let set = self.set(number);
        set.entries[way].as_mut().unwrap().is_changed |= is_change;
        set.order.retain(|&other| other != way);
        set.order.insert(0, way);
        if replacement == Replacement::NotLastUsed && set.next == way {
            set.next = (way + 1) % ways;
        }
        true
    }

    /// Puts in an entry that is not there; what leaves.
    pub fn fill(&mut self, number: u64, is_changed: bool) -> Option<(u64, bool)> {
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
        let left = self.set(number).entries[way].replace(Entry { number, is_changed: false });
        self.touch(number, is_changed);
        left.map(|left| (left.number, left.is_changed))
    }

    pub fn remove(&mut self, number: u64) -> bool {
        let Some(way) = self.way_of(number) else { return false };
        let set = self.set(number);
        set.order.retain(|&other| other != way);
        set.entries[way].take().unwrap().is_changed
    }

    /// The same numbers as the crate draws: which they are is part of what it promises, runs being alike.
    fn draw(&mut self) -> u64 {
        let mut state = self.random;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random = state;
        state >> 32
    }
}

/// What happened at one structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: [u64; 5],
    pub misses: [u64; 5],
    pub written_back: u64,
    pub from_victims: u64,
    pub from_stream: u64,
    pub merged: u64,
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
    levels: Vec<Level>,
    buffers: Vec<Buffer>,
    crossing: Crossing,
}

/// How far an access had to go: caches that missed, the one that had it, translation buffers that missed.
pub type Way = (u8, u8, u8);

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

    /// Fetches what begins at an address, within a line.
    pub fn fetch(&mut self, address: u64) -> Way {
        self.access(address, Request::Fetch)
    }

    /// Reads or writes: the worse of the parts.
    pub fn data(&mut self, address: u64, size: u8, is_store: bool) -> Way {
        let parts = self.parts(address, size, is_store);
        let worse = |one: Way, other: Way| (one.0.max(other.0), one.1.max(other.1), one.2.max(other.2));
        parts.into_iter().reduce(worse).unwrap()
    }

    /// Reads or writes: each line, or page if those are smaller, by itself.
    pub fn parts(&mut self, address: u64, size: u8, is_store: bool) -> Vec<Way> {
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

    fn access(&mut self, address: u64, request: Request) -> Way {
        let instructions = request == Request::Fetch;
        let mut untranslated = 0;
        for index in self.buffers_of(instructions) {
            let buffer = &mut self.buffers[index];
            let page = address / buffer.described.page;
            if buffer.sets.touch(page, false) {
                break;
            }
            buffer.misses[request as usize] += 1;
            buffer.sets.fill(page, false);
            untranslated += 1;
        }
        let path = self.path(instructions);
        let (missed, level) = if path.is_empty() { (0, 0) } else { self.ask(&path, address, request) };
        (missed, level, untranslated)
    }

    fn ask(&mut self, path: &[usize], address: u64, request: Request) -> (u8, u8) {
        let described = self.levels[path[0]].described.clone();
        if request != Request::Store || described.write == Write::Ignored {
            return self.read(path, 0, address, request);
        }
        let line = address / described.line;
        let is_back = described.write == Write::Back;
        let way = if self.levels[path[0]].sets.touch(line, is_back) {
            (0, 0)
        } else {
            self.levels[path[0]].tally.misses[Request::Store as usize] += 1;
            if self.beside(path, 0, address, is_back) {
                (1, 0)
            } else if described.allocate_on_write {
                let way = self.behind(path, 0, address, request);
                self.fill(path, 0, line, is_back);
                way
            } else {
                if is_back {
                    self.write(path, 1, address, false);
                }
                (1, 1)
            }
        };
        if described.write == Write::Through {
            self.write_on(path, 0, address);
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
        if self.beside(path, depth, address, false) {
            return (here + 1, here);
        }
        let way = self.behind(path, depth, address, request);
        self.fill(path, depth, line, false);
        way
    }

    /// What a cache does on a miss before the line comes in.
    fn behind(&mut self, path: &[usize], depth: usize, address: u64, request: Request) -> (u8, u8) {
        let index = path[depth];
        let size = self.levels[index].described.line;
        let line = address / size;
        if self.levels[index].writes.contains(&line) {
            while self.write_first(path, depth) != line {}
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

    fn beside(&mut self, path: &[usize], depth: usize, address: u64, is_change: bool) -> bool {
        let index = path[depth];
        let size = self.levels[index].described.line;
        let line = address / size;
        if let Some(place) = self.levels[index].victims.iter().position(|victim| victim.0 == line) {
            let (_, is_changed) = self.levels[index].victims.remove(place);
            self.levels[index].tally.from_victims += 1;
            self.fill(path, depth, line, is_changed || is_change);
            return true;
        }
        let Some(place) = self.levels[index].stream.iter().position(|&next| next == line) else {
            return false;
        };
        self.levels[index].tally.from_stream += 1;
        let last = *self.levels[index].stream.last().unwrap();
        for next in last + 1..=last + 1 + place as u64 {
            self.read(path, depth + 1, next * size, Request::Prefetch);
            self.levels[index].stream.remove(0);
            self.levels[index].stream.push(next);
        }
        self.fill(path, depth, line, is_change);
        true
    }

    fn fill(&mut self, path: &[usize], depth: usize, line: u64, is_changed: bool) {
        let level = &mut self.levels[path[depth]];
        let Some(mut left) = level.sets.fill(line, is_changed) else { return };
        level.victims.push(left);
        if level.victims.len() <= level.described.victim_lines as usize {
            return;
        }
        left = level.victims.remove(0);
        let described = level.described.clone();
        let first = left.0 * described.line;
        let mut is_changed = left.1;
        for name in &described.includes {
            is_changed |= self.expel(name, first, described.line);
        }
        if is_changed && described.write == Write::Back {
            self.levels[path[depth]].tally.written_back += 1;
            let is_whole =
                path.get(depth + 1).is_some_and(|&next| self.levels[next].described.line == described.line);
            self.write(path, depth + 1, first, is_whole);
        }
    }

    fn expel(&mut self, name: &str, first: u64, bytes: u64) -> bool {
        let level = self.levels.iter_mut().find(|level| level.described.name == *name).unwrap();
        let size = level.described.line;
        let mut is_changed = false;
        for line in first / size..=(first + bytes - 1) / size {
            is_changed |= level.sets.remove(line);
            if let Some(place) = level.victims.iter().position(|victim| victim.0 == line) {
                is_changed |= level.victims.remove(place).1;
            }
        }
        for name in level.described.includes.clone() {
            is_changed |= self.expel(&name, first, bytes);
        }
        is_changed
    }

    fn write(&mut self, path: &[usize], depth: usize, address: u64, is_whole: bool) {
        let Some(&index) = path.get(depth) else { return };
        let level = &mut self.levels[index];
        let described = level.described.clone();
        let line = address / described.line;
        let is_back = described.write == Write::Back;
        level.tally.requests[Request::Write as usize] += 1;
        if !level.sets.touch(line, is_back) {
            level.tally.misses[Request::Write as usize] += 1;
            if !self.beside(path, depth, address, is_back) {
                if described.allocate_on_write {
                    if !is_whole {
                        self.behind(path, depth, address, Request::Write);
                    }
                    self.fill(path, depth, line, is_back);
                } else if is_back {
                    return self.write(path, depth + 1, address, false);
                }
            }
        }
        if described.write == Write::Through {
            self.write_on(path, depth, address);
        }
    }

    fn write_on(&mut self, path: &[usize], depth: usize, address: u64) {
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
                self.write_first(path, depth);
            }
        }
    }

    fn write_first(&mut self, path: &[usize], depth: usize) -> u64 {
        let level = &mut self.levels[path[depth]];
        let line = level.writes.remove(0);
        let address = line * level.described.line;
        self.write(path, depth + 1, address, false);
        line
    }
}
