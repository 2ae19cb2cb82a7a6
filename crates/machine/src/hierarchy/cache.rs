//! A cache at work: what it holds, what stands beside it, and what happened.

use std::ops::Range;

use super::Request;
use super::tags::{Left, Tags};
use super::writes::Writes;
use crate::description::{Cache, Machine, Prefetch, TranslationBuffer, Write};

/// What happened at a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, by [`Request`]. Of the nearest caches [`Caches`](crate::Caches) knows those of the
    /// processor: here they are 0.
    pub requests: [u64; Request::COUNT],
    /// Those that the cache could not serve.
    pub misses: [u64; Request::COUNT],
    /// Misses served by the victims beside the cache.
    pub from_victims: u64,
    /// Misses served by the prefetched lines beside the cache.
    pub from_stream: u64,
    /// Changed lines that were replaced, and so written to the next level.
    pub written_back: u64,
    /// Stores that joined others in the write buffer.
    pub merged: u64,
}

impl Cache {
    /// How many lines it has room for.
    pub(super) fn slots(&self) -> usize {
        self.sets() as usize * self.ways as usize
    }

    /// What it holds: nothing yet.
    pub(super) fn tags(&self, is_near: bool) -> Tags {
        Tags::new(self.sets(), self.ways, self.replacement, is_near)
    }
}

impl TranslationBuffer {
    /// What it holds: nothing yet.
    pub(super) fn tags(&self, is_near: bool) -> Tags {
        Tags::new(u64::from(self.entries / self.ways()), self.ways(), self.replacement, is_near)
    }
}

/// A cache at work.
#[derive(Debug)]
pub struct CacheState {
    /// What it holds, unless it is the nearest of a side.
    pub tags: Tags,
    /// The side whose nearest it is: what it holds is there.
    pub near: Option<usize>,
    /// The next one on the path of each side.
    pub behind: [Option<usize>; 2],
    pub counts: Counts,
    /// From an address to a line's number.
    pub shift: u32,
    pub write: Write,
    pub allocates: bool,
    pub prefetch: Option<Prefetch>,
    /// The caches whose lines it has too.
    pub includes: Vec<usize>,
    /// Blocks of stores on their way.
    pub writes: Writes,
    /// Lines that were replaced, the oldest first, and how many there may be.
    victims: Vec<Left>,
    most_victims: usize,
    /// Whether nothing is beside it, and nothing is prefetched into it.
    pub is_plain: bool,
    /// Lines that were prefetched.
    pub stream: Range<u64>,
}

impl CacheState {
    pub fn new(cache: &Cache, machine: &Machine) -> CacheState {
        let index_of = |name: &String| machine.caches.iter().position(|other| other.name == *name);
        CacheState {
            tags: cache.tags(false),
            near: None,
            behind: [None; 2],
            counts: Counts::default(),
            shift: cache.line.ilog2(),
            write: cache.write,
            allocates: cache.allocate_on_write,
            prefetch: cache.prefetch,
            includes: cache.includes.iter().filter_map(index_of).collect(),
            writes: Writes::new(cache.write_buffer.map_or(0, |buffer| buffer.entries as usize)),
            victims: Vec::new(),
            most_victims: cache.victim_lines as usize,
            is_plain: cache.prefetch.is_none() && cache.victim_lines == 0 && cache.write_buffer.is_none(),
            stream: 0..0,
        }
    }

    /// Whether any line is beside the cache.
    #[inline]
    pub fn has_lines_beside(&self) -> bool {
        !self.victims.is_empty() || !self.stream.is_empty()
    }

    /// Whether the block at an address waits in the write buffer.
    #[inline(always)]
    pub fn is_waiting(&self, address: u64) -> bool {
        self.writes.holds(address >> self.shift)
    }

    /// Takes a line out of those that were replaced. Returns whether it was changed, if it was there.
    pub fn take_victim(&mut self, key: u64) -> Option<bool> {
        let place = self.victims.iter().position(|victim| victim.key == key)?;
        Some(self.victims.remove(place).is_changed)
    }

    /// Keeps a line that was replaced. Returns the one that has to go for good.
    #[inline]
    pub fn keep_victim(&mut self, left: Left) -> Option<Left> {
        if self.most_victims == 0 {
            return Some(left);
        }
        self.victims.push(left);
        (self.victims.len() > self.most_victims).then(|| self.victims.remove(0))
    }

    /// Takes a line out of those that were prefetched, and those before it. Returns how many they are.
    pub fn take_from_stream(&mut self, key: u64) -> Option<u64> {
        let first = self.stream.start;
        self.stream.contains(&key).then(|| {
            self.stream.start = key + 1;
            key + 1 - first
        })
    }
}

/// A translation buffer at work.
#[derive(Debug)]
pub struct BufferState {
    /// What it holds, unless it is the nearest of a side.
    pub tags: Tags,
    /// The side whose nearest it is: what it holds is there.
    pub near: Option<usize>,
    /// From an address to a page's number.
    pub shift: u32,
    /// By the kind of request.
    pub misses: [u64; Request::OF_PROCESSOR],
}

impl BufferState {
    pub fn new(buffer: &TranslationBuffer) -> BufferState {
        BufferState {
            tags: buffer.tags(false),
            near: None,
            shift: buffer.page.ilog2(),
            misses: [0; Request::OF_PROCESSOR],
        }
    }
}
