//! Why accesses miss.

use std::collections::HashSet;

use super::Stack;
use crate::description::Machine;

/// Why an access misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Not asked for: see [`Hierarchy::classify`](super::Hierarchy::classify).
    #[default]
    Unknown,
    /// Nobody has asked for the line before.
    Compulsory,
    /// A fully associative cache with as many lines, which replaces the least recently used, misses too.
    Capacity,
    /// That cache would have had it.
    Conflict,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All, in order.
    pub const ALL: [Class; Class::COUNT] =
        [Class::Unknown, Class::Compulsory, Class::Capacity, Class::Conflict];
}

/// What each structure would be if it were fully associative.
#[derive(Debug)]
pub struct Classes {
    caches: Vec<Ideal>,
    buffers: Vec<Ideal>,
}

#[derive(Debug)]
struct Ideal {
    held: Stack,
    seen: HashSet<u64>,
}

impl Classes {
    pub fn new(machine: &Machine) -> Classes {
        let entries = machine.translation_buffers.iter().map(|buffer| buffer.entries);
        Classes {
            caches: machine.caches.iter().map(|cache| Ideal::new((cache.size / cache.line) as u32)).collect(),
            buffers: entries.map(Ideal::new).collect(),
        }
    }

    /// A cache is asked for a line: why it misses, if it does.
    pub fn of_cache(&mut self, index: usize, key: u64) -> Class {
        self.caches[index].touch(key)
    }

    /// A translation buffer is asked for a page: why it misses, if it does.
    pub fn of_buffer(&mut self, index: usize, key: u64) -> Class {
        self.buffers[index].touch(key)
    }
}

impl Ideal {
    fn new(entries: u32) -> Ideal {
        Ideal { held: Stack::new(&[entries]), seen: HashSet::new() }
    }

    fn touch(&mut self, key: u64) -> Class {
        if self.held.touch(key) == 0 {
            Class::Conflict
        } else if self.seen.insert(key) {
            Class::Compulsory
        } else {
            Class::Capacity
        }
    }
}
