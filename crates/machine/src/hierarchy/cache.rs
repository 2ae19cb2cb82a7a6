//! A cache at work: what it holds, what stands beside it, and what happened.

use std::collections::VecDeque;

use super::front::Front;
use super::tags::{Left, Marks, NOTHING, Tags};
use super::{INSTRUCTIONS, Request};
use crate::description::{Cache, Machine, Prefetch, Replacement, TranslationBuffer, Write};

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

/// A cache at work.
#[derive(Debug)]
pub struct CacheState {
    pub tags: Tags,
    /// The slots' marks, if the cache has no front.
    used: Box<[u64]>,
    changed: Box<[bool]>,
    pub counts: Counts,
    /// From an address to a line's number.
    pub shift: u32,
    pub write: Write,
    pub allocates: bool,
    pub prefetch: Option<Prefetch>,
    /// The caches whose lines it has too.
    pub includes: Vec<usize>,
    /// Which of the hierarchy's fronts is its own.
    pub front: Option<usize>,
    /// Blocks of stores on their way, the oldest first, and how many there may be.
    pub writes: VecDeque<u64>,
    pub most_writes: usize,
    /// Lines that were replaced, the oldest first, and how many there may be.
    victims: VecDeque<Left>,
    most_victims: usize,
    /// Lines that were prefetched, in order.
    pub stream: VecDeque<u64>,
}

impl CacheState {
    pub fn new(cache: &Cache, machine: &Machine) -> CacheState {
        let index_of = |name: &String| machine.caches.iter().position(|other| other.name == *name);
        let tags = Tags::new(cache.sets(), cache.ways, cache.replacement);
        CacheState {
            used: vec![0; tags.slots()].into(),
            changed: vec![false; tags.slots()].into(),
            tags,
            counts: Counts::default(),
            shift: cache.line.ilog2(),
            write: cache.write,
            allocates: cache.allocate_on_write,
            prefetch: cache.prefetch,
            includes: cache.includes.iter().filter_map(index_of).collect(),
            front: None,
            writes: VecDeque::new(),
            most_writes: cache.write_buffer.map_or(0, |buffer| buffer.entries as usize),
            victims: VecDeque::new(),
            most_victims: cache.victim_lines as usize,
            stream: VecDeque::new(),
        }
    }

    /// The tags, with the marks of their slots.
    #[inline]
    pub fn marked<'a>(&'a mut self, fronts: &'a mut [Front; 2]) -> (&'a mut Tags, Marks<'a>) {
        let marks = match self.front {
            Some(front) => fronts[front].marks(),
            None => Marks { used: &mut self.used, changed: &mut self.changed },
        };
        (&mut self.tags, marks)
    }

    /// Whether any line is beside the cache.
    #[inline]
    pub fn has_lines_beside(&self) -> bool {
        !self.victims.is_empty() || !self.stream.is_empty()
    }

    /// Whether lines that were replaced ever are.
    pub fn can_have_victims(&self) -> bool {
        self.most_victims > 0
    }

    /// Whether all that is asked for comes in.
    pub fn allocates_for(&self, side: usize) -> bool {
        side == INSTRUCTIONS || self.allocates || self.write != Write::Back
    }

    /// What is in a slot of a cache that has no front is used.
    #[inline(always)]
    pub fn touch_alone(&mut self, slot: usize, now: u64, is_change: bool) {
        let mut marks = Marks { used: &mut self.used, changed: &mut self.changed };
        self.tags.touch(slot, now, is_change, &mut marks);
    }

    /// Takes a line out of those that were replaced. Returns whether it was changed, if it was there.
    pub fn take_victim(&mut self, key: u64) -> Option<bool> {
        let place = self.victims.iter().position(|victim| victim.key == key)?;
        self.victims.remove(place).map(|victim| victim.is_changed)
    }

    /// Keeps a line that was replaced. Returns the one that has to go for good.
    #[inline]
    pub fn keep_victim(&mut self, left: Left) -> Option<Left> {
        if self.most_victims == 0 {
            return Some(left);
        }
        self.victims.push_back(left);
        if self.victims.len() > self.most_victims { self.victims.pop_front() } else { None }
    }

    /// Takes a line out of those that were prefetched, and those before it. Returns how many they are.
    pub fn take_from_stream(&mut self, key: u64) -> Option<usize> {
        let place = self.stream.iter().position(|&prefetched| prefetched == key)?;
        for _ in 0..=place {
            self.stream.pop_front();
        }
        Some(place + 1)
    }
}

const INDEX_SIZE: usize = 256;

/// A translation buffer at work.
#[derive(Debug)]
pub struct BufferState {
    pub tags: Tags,
    used: Box<[u64]>,
    changed: Box<[bool]>,
    /// Where some pages are, by the low bits of their numbers.
    index: Box<[(u64, usize); INDEX_SIZE]>,
    /// From an address to a page's number.
    pub shift: u32,
    /// By the kind of request.
    pub misses: [u64; Request::OF_PROCESSOR],
}

impl BufferState {
    pub fn new(buffer: &TranslationBuffer) -> BufferState {
        let sets = u64::from(buffer.entries / buffer.ways());
        BufferState {
            tags: Tags::new(sets, buffer.ways(), buffer.replacement),
            used: vec![0; buffer.entries as usize].into(),
            changed: vec![false; buffer.entries as usize].into(),
            index: Box::new([(NOTHING, 0); INDEX_SIZE]),
            shift: buffer.page.ilog2(),
            misses: [0; Request::OF_PROCESSOR],
        }
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let (known, slot) = self.index[key as usize % INDEX_SIZE];
        if known == key { Some(slot) } else { self.tags.find(key) }
    }

    /// Where the page of an address is, if that is known without a search.
    #[inline]
    pub fn known(&self, address: u64) -> Option<usize> {
        let key = address >> self.shift;
        let (known, slot) = self.index[key as usize % INDEX_SIZE];
        (known == key).then_some(slot)
    }

    /// Uses a page if it is there. Returns whether it is. The front of a nearest buffer's lines forgets those
    /// whose use is more than a use.
    #[inline]
    pub fn touch(&mut self, key: u64, now: u64, front: Option<&mut Front>) -> bool {
        let Some(slot) = self.find(key) else { return false };
        self.touch_slot(slot, key, now, front);
        true
    }

    #[inline]
    pub fn touch_slot(&mut self, slot: usize, key: u64, now: u64, front: Option<&mut Front>) {
        self.index[key as usize % INDEX_SIZE] = (key, slot);
        let mut marks = Marks { used: &mut self.used, changed: &mut self.changed };
        let pointed = self.tags.touch(slot, now, false, &mut marks);
        if let (Some(pointed), Some(front)) = (pointed, front) {
            front.forget_page(self.tags.key(pointed));
        }
    }

    /// A page was used when the front knew its line.
    pub fn note(&mut self, (key, time): (u64, u64)) {
        if let Some(slot) = self.find(key) {
            self.used[slot] = self.used[slot].max(time);
        }
    }

    /// Brings in a page that is not there.
    pub fn fill(&mut self, key: u64, now: u64, mut front: Option<&mut Front>) {
        let mut slot = self.tags.choose(key, &self.used);
        // Uses of lines that the front knows are uses of their pages.
        if let (Some(front), Replacement::Lru) = (front.as_deref(), self.tags.replacement()) {
            loop {
                let last_use = front.last_use(self.tags.key(slot));
                if last_use <= self.used[slot] {
                    break;
                }
                self.used[slot] = last_use;
                slot = self.tags.choose(key, &self.used);
            }
        }
        let mut marks = Marks { used: &mut self.used, changed: &mut self.changed };
        let left = self.tags.replace(slot, key, &mut marks);
        let known = &mut self.index[left.key as usize % INDEX_SIZE];
        if known.0 == left.key {
            known.0 = NOTHING;
        }
        if let Some(front) = front.as_deref_mut() {
            front.forget_page(left.key);
        }
        self.touch_slot(slot, key, now, front);
    }
}
