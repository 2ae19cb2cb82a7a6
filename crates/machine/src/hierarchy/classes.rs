//! Why accesses miss.

use super::Stack;
use crate::description::Machine;
use crate::numbers::Numbers;

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
    numbers: Numbers,
    /// By number, whether anybody has asked for it.
    seen: Vec<bool>,
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
        Ideal { held: Stack::new(&[entries]), numbers: Numbers::new(), seen: Vec::new() }
    }

    fn touch(&mut self, key: u64) -> Class {
        let number = self.numbers.line(key).number;
        let place = number as usize;
        if self.held.touch(number) == 0 {
            return Class::Conflict;
        }
        if self.seen.len() <= place {
            self.seen.resize(place + 1, false);
        }
        let was_seen = std::mem::replace(&mut self.seen[place], true);
        if was_seen { Class::Capacity } else { Class::Compulsory }
    }
}
