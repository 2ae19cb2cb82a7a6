//! The state of a cache or a TLB: contents, victim, stream and write buffers, counts.

use super::Request;
use super::page_map::PageMap;
use super::prefetch::PrefetcherState;
use super::tags::{Evicted, Tags};
use super::write_buffer::WriteBufferState;
use crate::description::{Cache, Machine, TranslationBuffer, WritePolicy};
use crate::memory::growing_lists::{add_to, at};

/// CacheCounts of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Requests, by [`Request`]. Those that the processor makes of L1 are counted by
    /// [`Caches`](crate::Caches): here they are 0.
    pub requests: [u64; Request::COUNT],
    /// Requests that missed.
    pub misses: [u64; Request::COUNT],
    /// Misses that the victim buffer served.
    pub from_victims: u64,
    /// Misses that the stream buffer served.
    pub from_stream: u64,
    /// Loads, and stores, that missed and filled no line from the next level: a victim or stream buffer had it, or the cache
    /// does not allocate on stores.
    pub unfilled: [u64; 2],
    /// Lines filled from the next level because a cache closer to the processor wrote a part of them.
    pub write_fills: u64,
    /// Dirty lines that were evicted and written to the next level.
    pub written_back: u64,
    /// Stores merged with others in the write buffer.
    pub merged: u64,
}

/// Lines that a cache moves from and to the next level for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTraffic {
    /// Lines filled because of loads.
    LoadFill,
    /// Lines filled because of stores: the processor's, or what was written through or back to the cache.
    StoreFill,
    /// Dirty lines written back.
    WriteBack,
}

impl LineTraffic {
    /// How many kinds there are.
    pub const COUNT: usize = 3;
    /// All kinds, in order.
    pub const ALL: [LineTraffic; LineTraffic::COUNT] =
        [LineTraffic::LoadFill, LineTraffic::StoreFill, LineTraffic::WriteBack];
}

/// An event of a cache that its misses do not tell, counted by instruction.
#[derive(Clone, Copy, Debug)]
pub enum TrafficEvent {
    /// One of the loads in [`CacheCounts::unfilled`].
    UnfilledLoad,
    /// One of the stores there.
    UnfilledStore,
    /// One of [`CacheCounts::write_fills`].
    WriteFill,
    /// One of [`CacheCounts::written_back`].
    WriteBack,
}

impl TrafficEvent {
    const COUNT: usize = 4;
}

/// The events of a cache, by site.
#[derive(Debug, Default)]
pub struct SiteTraffic([Vec<u64>; TrafficEvent::COUNT]);

impl SiteTraffic {
    /// The number of events at a site.
    pub fn get(&self, event: TrafficEvent, site: usize) -> u64 {
        at(&self.0[event as usize], site)
    }

    #[inline]
    fn count(&mut self, event: TrafficEvent, site: u32) {
        let sites = &mut self.0[event as usize];
        if sites.len() <= site as usize {
            sites.resize(site as usize + 1, 0);
        }
        sites[site as usize] += 1;
    }

    /// Adds the events of another cache.
    pub fn add(&mut self, other: &SiteTraffic) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| add_to(own, other));
    }
}

impl CacheCounts {
    /// The lines moved from and to the next level for data, by [`LineTraffic`].
    pub fn traffic(&self) -> [u64; LineTraffic::COUNT] {
        let [loads, stores] = [Request::Load, Request::Store].map(|request| self.misses[request as usize]);
        [loads - self.unfilled[0], stores - self.unfilled[1] + self.write_fills, self.written_back]
    }

    /// Adds other counts.
    pub(super) fn add(&mut self, other: &CacheCounts) {
        self.requests.iter_mut().zip(other.requests).for_each(|(own, other)| *own += other);
        self.misses.iter_mut().zip(other.misses).for_each(|(own, other)| *own += other);
        self.from_victims += other.from_victims;
        self.from_stream += other.from_stream;
        self.unfilled.iter_mut().zip(other.unfilled).for_each(|(own, other)| *own += other);
        self.write_fills += other.write_fills;
        self.written_back += other.written_back;
        self.merged += other.merged;
    }
}

impl Cache {
    /// Lines that it has room for.
    pub(super) fn slots(&self) -> usize {
        self.sets() as usize * self.ways as usize
    }

    /// Its tags, empty.
    pub(super) fn tags(&self, is_l1_hit: bool) -> Tags {
        Tags::new(self.sets(), self.ways, self.replacement, is_l1_hit)
    }
}

impl TranslationBuffer {
    /// Its tags, empty.
    pub(crate) fn tags(&self, is_l1_hit: bool) -> Tags {
        Tags::new(u64::from(self.entries / self.ways()), self.ways(), self.replacement, is_l1_hit)
    }
}

/// A cache that is simulated.
#[derive(Debug)]
pub struct CacheState {
    /// Contents, unless it is the L1 of a side.
    pub tags: Tags,
    /// The side whose L1 it is, which has the contents then.
    pub l1: Option<usize>,
    /// The next level on the path of each side.
    pub next_level: [Option<usize>; 2],
    pub counts: CacheCounts,
    /// Events by the instruction that was executed.
    pub sites: SiteTraffic,
    /// Shift from an address to a line's number.
    pub shift: u32,
    pub write: WritePolicy,
    pub write_allocates: bool,
    pub prefetcher: PrefetcherState,
    /// The caches that it includes: evicting a line here invalidates it there.
    pub includes: Vec<usize>,
    /// The write buffer.
    pub write_buffer: WriteBufferState,
    /// The victim buffer, the oldest line first, and its size.
    victims: Vec<Evicted>,
    most_victims: usize,
    /// Whether it has neither prefetch nor victim nor write buffer.
    pub is_plain: bool,
}

impl CacheState {
    pub fn new(cache: &Cache, machine: &Machine) -> CacheState {
        let index_of = |name: &String| machine.caches.iter().position(|other| other.name == *name);
        CacheState {
            tags: cache.tags(false),
            l1: None,
            next_level: [None; 2],
            counts: CacheCounts::default(),
            sites: SiteTraffic::default(),
            shift: cache.line.ilog2(),
            write: cache.write,
            write_allocates: cache.allocate_on_write,
            prefetcher: PrefetcherState::new(cache.prefetch),
            includes: cache.includes.iter().filter_map(index_of).collect(),
            write_buffer: WriteBufferState::new(
                cache.write_buffer.map_or(0, |buffer| buffer.entries as usize),
            ),
            victims: Vec::new(),
            most_victims: cache.victim_lines as usize,
            is_plain: cache.prefetch.is_none() && cache.victim_lines == 0 && cache.write_buffer.is_none(),
        }
    }

    /// Counts a dirty line that is written back while the instruction of a site is executed.
    #[inline]
    pub fn count_write_back(&mut self, site: u32) {
        self.counts.written_back += 1;
        self.sites.count(TrafficEvent::WriteBack, site);
    }

    /// Counts a line that is filled because a part of it was written.
    #[inline]
    pub fn count_write_fill(&mut self, site: u32) {
        self.counts.write_fills += 1;
        self.sites.count(TrafficEvent::WriteFill, site);
    }

    /// Counts a miss that fills no line from the next level.
    #[inline]
    pub fn count_unfilled(&mut self, request: Request, site: u32) {
        let event = match request {
            Request::Load => TrafficEvent::UnfilledLoad,
            Request::Store => TrafficEvent::UnfilledStore,
            _ => return,
        };
        self.counts.unfilled[event as usize] += 1;
        self.sites.count(event, site);
    }

    /// Whether the victim buffer or the prefetcher has any line.
    #[inline]
    pub fn has_side_buffer_lines(&self) -> bool {
        !self.victims.is_empty() || !self.prefetcher.is_empty()
    }

    /// Whether the write buffer has a store to the line of an address.
    #[inline(always)]
    pub fn has_pending_write(&self, address: u64) -> bool {
        self.write_buffer.holds(address >> self.shift)
    }

    /// Whether the victim buffer or the prefetcher has a line.
    pub fn buffers_line(&self, key: u64) -> bool {
        self.prefetcher.holds(key) || self.victims.iter().any(|victim| victim.key == key)
    }

    /// Takes a line out of the victim buffer. Returns whether it was dirty, if it was there.
    pub fn take_victim(&mut self, key: u64) -> Option<bool> {
        let position = self.victims.iter().position(|victim| victim.key == key)?;
        Some(self.victims.remove(position).is_dirty)
    }

    /// Puts an evicted line into the victim buffer. Returns the oldest one there if it is full,
    /// or the line itself if there is no victim buffer.
    #[inline]
    pub fn keep_victim(&mut self, evicted: Evicted) -> Option<Evicted> {
        if self.most_victims == 0 {
            return Some(evicted);
        }
        self.victims.push(evicted);
        (self.victims.len() > self.most_victims).then(|| self.victims.remove(0))
    }
}

/// A TLB that is simulated.
#[derive(Debug)]
pub struct BufferState {
    /// Contents, unless it is the first TLB of a side.
    pub tags: Tags,
    /// The side whose first TLB it is: [`L1`](super::L1) has the contents then.
    pub l1: Option<usize>,
    /// Its entries' keys by address.
    pub page_map: PageMap,
    /// By the kind of request.
    pub misses: [u64; Request::OF_PROCESSOR],
}

impl BufferState {
    pub fn new(buffer: &TranslationBuffer, machine: &Machine) -> BufferState {
        BufferState {
            tags: buffer.tags(false),
            l1: None,
            page_map: PageMap::new(buffer, &machine.memory.granularity_hints),
            misses: [0; Request::OF_PROCESSOR],
        }
    }
}
