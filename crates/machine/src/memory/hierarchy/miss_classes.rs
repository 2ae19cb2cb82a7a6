//! The class of a miss: compulsory, capacity or conflict (Hill, 1987).

use super::LruStack;
use crate::description::Machine;
use crate::memory::line_numbering::LineNumbering;

/// Why an access misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissClass {
    /// Not classified: see [`Hierarchy::classified`](super::Hierarchy::classified).
    #[default]
    Unknown,
    /// The first use of the line.
    Compulsory,
    /// A fully associative LRU cache with as many lines misses too.
    Capacity,
    /// A fully associative LRU cache with as many lines would hit.
    Conflict,
}

impl MissClass {
    /// The number of classes.
    pub const COUNT: usize = 4;
    /// All classes, in order.
    pub const ALL: [MissClass; MissClass::COUNT] =
        [MissClass::Unknown, MissClass::Compulsory, MissClass::Capacity, MissClass::Conflict];
    /// The classes of misses that are classified.
    pub const KNOWN: [MissClass; 3] = [MissClass::Compulsory, MissClass::Capacity, MissClass::Conflict];
}

/// Fully associative LRU caches of the size of each cache and TLB.
#[derive(Debug)]
pub struct MissClassifier {
    caches: Vec<IdealCache>,
    buffers: Vec<IdealCache>,
}

#[derive(Debug)]
struct IdealCache {
    held: LruStack,
    numbers: LineNumbering,
    /// By number, whether the line was ever used.
    seen: Vec<bool>,
}

impl MissClassifier {
    pub fn new(machine: &Machine) -> MissClassifier {
        let entries = machine.translation_buffers.iter().map(|buffer| buffer.entries);
        MissClassifier {
            caches: machine
                .caches
                .iter()
                .map(|cache| IdealCache::new((cache.size / cache.line) as u32))
                .collect(),
            buffers: entries.map(IdealCache::new).collect(),
        }
    }

    /// The class of a cache's access to a line, if it misses.
    pub fn of_cache(&mut self, index: usize, key: u64) -> MissClass {
        self.caches[index].touch(key)
    }

    /// The class of a TLB's access to a page, if it misses.
    pub fn of_buffer(&mut self, index: usize, key: u64) -> MissClass {
        self.buffers[index].touch(key)
    }
}

impl IdealCache {
    fn new(entries: u32) -> IdealCache {
        IdealCache { held: LruStack::new(&[entries]), numbers: LineNumbering::new(), seen: Vec::new() }
    }

    fn touch(&mut self, key: u64) -> MissClass {
        let number = self.numbers.line(key).number;
        let index = number as usize;
        if self.held.touch(number) == 0 {
            return MissClass::Conflict;
        }
        if self.seen.len() <= index {
            self.seen.resize(index + 1, false);
        }
        let was_seen = std::mem::replace(&mut self.seen[index], true);
        if was_seen { MissClass::Capacity } else { MissClass::Compulsory }
    }
}
