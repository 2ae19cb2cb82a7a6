//! Simulates caches and TLBs (translation buffers), and finds the level in which each fetch, load and store hits.

mod cache;
mod deferred_misses;
mod l1;
mod lru_stack;
mod miss_classes;
mod miss_path;
mod page_map;
mod prefetch;
mod recent;
mod request;
mod shared;
mod tags;
mod write_buffer;

use events::Words;

use crate::description::{Crossing, Machine, WritePolicy};
pub(crate) use cache::TrafficEvent;
use cache::{BufferState, CacheState, SiteTraffic};
pub use cache::{CacheCounts, LineTraffic};
use deferred_misses::DeferredMisses;
pub(crate) use l1::AddressMap;
use l1::L1;
pub(crate) use lru_stack::LruStack;
pub use miss_classes::MissClass;
use miss_classes::MissClassifier;
pub(crate) use page_map::{ADDRESS_BITS, PageMap};
pub use prefetch::Prefetch;
pub use request::Request;
use shared::SharedL1Words;
pub use tags::replacement::Replacement;
pub(crate) use tags::{Evicted, Tags};

/// Which level served an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Caches that missed, from L1 on. A store that its cache does not allocate, or writes through, belongs
    /// to the next level, and nothing waits for it.
    pub cache_misses: u8,
    /// The level that served it: 0 is L1; the number of caches means memory. One less than `cache_misses` if
    /// the cache's own victim buffer or stream buffer had the line.
    pub level: u8,
    /// TLBs that missed, from the first one on.
    pub tlb_misses: u8,
}

impl Served {
    /// Whether L1 and the first TLB hit.
    #[inline(always)]
    pub fn is_l1_hit(self) -> bool {
        self.cache_misses | self.tlb_misses == 0
    }

    /// The slower of two halves of an access that crosses a line.
    pub fn and(self, other: Served) -> Served {
        Served {
            cache_misses: self.cache_misses.max(other.cache_misses),
            level: self.level.max(other.level),
            tlb_misses: self.tlb_misses.max(other.tlb_misses),
        }
    }
}

/// The caches and TLBs that instructions, or data, go through, from L1 on: indices into the machine's lists.
#[derive(Debug)]
struct Path {
    caches: Vec<usize>,
    buffers: Vec<usize>,
}

impl Path {
    /// Whether the other side uses neither this side's L1 nor its first TLB.
    fn has_own_l1(&self, other: &Path) -> bool {
        let is_apart =
            |own: &[usize], other: &[usize]| own.first().is_none_or(|first| !other.contains(first));
        let has_cache = !self.caches.is_empty();
        has_cache && is_apart(&self.caches, &other.caches) && is_apart(&self.buffers, &other.buffers)
    }

    /// Whether each L1 line lies within one page, and is long enough for the hit filter.
    fn fits_fast_l1(&self, machine: &Machine) -> bool {
        let line = self.caches.first().map(|&index| machine.caches[index].line);
        let page = self.buffers.first().map(|&index| machine.translation_buffers[index].page);
        line.is_some_and(|line| line >> L1::MIN_LINE_SHIFT != 0 && page.is_none_or(|page| line <= page))
    }
}

/// An L1 cache in which a miss has no other effect than to fill a line (and to follow a stream), so that the
/// line can be filled before the next level is accessed.
#[derive(Clone, Copy, Debug)]
struct SimpleL1 {
    index: usize,
    next_level: Option<usize>,
    /// Whether it prefetches instructions into a stream buffer.
    has_stream: bool,
    /// Whether a store that misses allocates a line and does nothing else; if not, only loads take this path.
    allocates_on_write: bool,
}

impl SimpleL1 {
    /// For the L1 cache of a side, at an index of the machine's caches, if it is of this kind.
    fn new(machine: &Machine, side: usize, index: usize, next_level: Option<usize>) -> Option<SimpleL1> {
        let cache = &machine.caches[index];
        let has_stream = side == INSTRUCTIONS && matches!(cache.prefetch, Some(Prefetch::Stream(_)));
        // Where other caches back-invalidate lines, the victim must not depend on the order of fills, and
        // must not be dirty.
        let has_fixed_victim = cache.ways == 1 && cache.write == WritePolicy::Through && !has_stream;
        let has_no_side_effects = cache.victim_lines == 0
            && (cache.prefetch.is_none() || has_stream)
            && (has_fixed_victim || !is_included_elsewhere(machine, &cache.name));
        let allocates_on_write = cache.allocate_on_write && cache.write != WritePolicy::Through;
        has_no_side_effects.then_some(SimpleL1 { index, next_level, has_stream, allocates_on_write })
    }
}

/// Caches and TLBs of a machine with one processor.
///
/// Addresses are virtual, of up to 43 bits; an address-space identifier (ASID) distinguishes those of different
/// processes.
///
/// ```
/// use pathlength_machine::{Hierarchy, Machine};
/// let mut hierarchy = Hierarchy::new(&Machine::find("alphastation500").unwrap());
/// assert_eq!(hierarchy.load(0x1_4000_0000, 8).level, 3); // memory
/// assert!(hierarchy.load(0x1_4000_0018, 8).is_l1_hit());
/// ```
#[derive(Debug)]
pub struct Hierarchy {
    /// L1 cache and first TLB of instructions, and of data.
    l1: [L1; 2],
    /// Whether the L1 structures have the fast path: each side has its own.
    has_fast_l1: bool,
    caches: Vec<CacheState>,
    buffers: Vec<BufferState>,
    /// Of instructions, and of data.
    paths: [Path; 2],
    /// The write policy of L1's data cache.
    stores: WritePolicy,
    /// Of each side, its L1 cache if that is a [`SimpleL1`].
    simple: [Option<SimpleL1>; 2],
    /// Whether an access to data can back-invalidate instructions in L1.
    data_can_evict_instructions: bool,
    /// Shift from an address of data to the unit that one access may not cross: the smaller of line and page.
    split_shift: u32,
    /// The same of instructions.
    fetch_shift: u32,
    /// How addresses of instructions, and of data, of the current process map to lines.
    address_maps: [AddressMap; 2],
    /// The time: uses of caches and TLBs so far, or more. It orders uses for LRU replacement.
    now: u64,
    /// The site of the instruction that is executed, if the model counts by instruction.
    site: u32,
    /// The words that compiled code shares with the hierarchy.
    shared: Option<SharedL1Words>,
    /// Whether L1 misses may be deferred ([`Hierarchy::defer`]), and those that are.
    may_defer: bool,
    deferred: DeferredMisses,
    classifier: Option<MissClassifier>,
    /// Why each cache, and each TLB, of a path missed when it last did.
    cache_class: Vec<MissClass>,
    buffer_class: Vec<MissClass>,
}

const INSTRUCTIONS: usize = 0;
const DATA: usize = 1;

impl Hierarchy {
    /// A hierarchy that also says why accesses miss (compulsory, capacity, conflict). That takes several
    /// times as long.
    pub fn classified(machine: &Machine) -> Hierarchy {
        Hierarchy { classifier: Some(MissClassifier::new(machine)), ..Hierarchy::without_fast_l1(machine) }
    }

    /// Whether misses are classified.
    pub fn is_classified(&self) -> bool {
        self.classifier.is_some()
    }

    /// The caches and TLBs of a machine, empty.
    pub fn new(machine: &Machine) -> Hierarchy {
        let mut hierarchy = Hierarchy::without_fast_l1(machine);
        let [instructions, data] = &hierarchy.paths;
        let is_apart = instructions.has_own_l1(data) && data.has_own_l1(instructions);
        if is_apart && hierarchy.paths.iter().all(|path| path.fits_fast_l1(machine)) {
            hierarchy.has_fast_l1 = true;
            let l1_caches = [INSTRUCTIONS, DATA].map(|side| hierarchy.paths[side].caches[0]);
            let [code, data] = l1_caches.map(|index| machine.caches[index].slots());
            let (shared, words) = SharedL1Words::new([code, data]);
            for (side, words) in words.into_iter().enumerate() {
                hierarchy.attach_l1(side, machine, words);
            }
            hierarchy.shared = Some(shared);
            hierarchy.may_defer = hierarchy.can_defer();
        }
        hierarchy.set_process(0);
        hierarchy
    }

    /// Gives a side the fast L1 path; its hit filter, entries and times are in words that compiled code
    /// shares.
    fn attach_l1(&mut self, side: usize, machine: &Machine, [filter, entries, times]: [Words; 3]) {
        let path = &self.paths[side];
        let (cache, lines) = (&mut self.caches[path.caches[0]], &machine.caches[path.caches[0]]);
        (cache.l1, cache.tags) = (Some(side), Tags::none());
        let pages = path.buffers.first().map(|&index| {
            let buffer = &mut self.buffers[index];
            (buffer.l1, buffer.tags) = (Some(side), Tags::none());
            (buffer.page_map.clone(), machine.translation_buffers[index].tags(true))
        });
        self.simple[side] = SimpleL1::new(machine, side, path.caches[0], cache.next_level[side]);
        self.l1[side] = L1::new(cache.shift, lines.tags(true).at(entries, times), pages, filter.into());
    }

    fn without_fast_l1(machine: &Machine) -> Hierarchy {
        let [instructions, data] = [true, false].map(|side| Path {
            caches: positions(&machine.caches, |cache| cache.holds.has(side)),
            buffers: positions(&machine.translation_buffers, |buffer| buffer.holds.has(side)),
        });
        let granule = |path: &Path| {
            let line = path.caches.first().map(|&index| machine.caches[index].line);
            let page = path.buffers.first().map(|&index| machine.translation_buffers[index].page);
            line.into_iter().chain(page).min().map_or(63, u64::ilog2)
        };
        let mut caches: Vec<_> = machine.caches.iter().map(|cache| CacheState::new(cache, machine)).collect();
        for (side, path) in [&instructions, &data].into_iter().enumerate() {
            for pair in path.caches.windows(2) {
                caches[pair[0]].next_level[side] = Some(pair[1]);
            }
        }
        let write = data.caches.first().map(|&first| machine.caches[first].write);
        Hierarchy {
            l1: [L1::none(), L1::none()],
            now: 0,
            site: 0,
            shared: None,
            may_defer: false,
            deferred: DeferredMisses::default(),
            fetch_shift: granule(&instructions),
            has_fast_l1: false,
            simple: [None; 2],
            stores: write.unwrap_or_default(),
            data_can_evict_instructions: instructions
                .caches
                .first()
                .is_some_and(|&first| is_included_elsewhere(machine, &machine.caches[first].name)),
            split_shift: match machine.processor.crossing {
                Crossing::First => 63,
                Crossing::Both => granule(&data),
            },
            caches,
            buffers: machine
                .translation_buffers
                .iter()
                .map(|buffer| BufferState::new(buffer, machine))
                .collect(),
            cache_class: vec![MissClass::Unknown; instructions.caches.len().max(data.caches.len())],
            buffer_class: vec![MissClass::Unknown; instructions.buffers.len().max(data.buffers.len())],
            paths: [instructions, data],
            address_maps: [L1::none().address_map(0); 2],
            classifier: None,
        }
    }

    /// Addresses that follow belong to the process with this number.
    pub fn set_process(&mut self, process: u32) {
        let asid = Hierarchy::asid_bits(process);
        self.address_maps = [INSTRUCTIONS, DATA].map(|side| self.l1[side].address_map(asid));
    }

    /// The bits of an address that identify a process.
    pub(crate) fn asid_bits(process: u32) -> u64 {
        u64::from(process) << ADDRESS_BITS & u64::MAX >> 1
    }

    /// Bytes of instructions that are fetched at once: a line, or a page.
    pub(crate) fn fetch_granule(&self) -> u64 {
        1 << self.fetch_shift
    }

    /// Fetches instructions: those of one line.
    #[inline]
    pub fn fetch(&mut self, address: u64) -> Served {
        self.now += 1;
        if self.fetch_fast(self.address_maps[INSTRUCTIONS], address, self.now) {
            Served::default()
        } else {
            self.fetch_slow(address)
        }
    }

    /// Fetches instructions if the hit filter has their line; returns false, having done nothing, if not.
    /// `now` is [`Hierarchy::now`] plus one for each use since.
    #[inline(always)]
    pub(crate) fn fetch_fast(&mut self, address_map: AddressMap, address: u64, now: u64) -> bool {
        self.l1[INSTRUCTIONS].touch(address_map, address, false, now)
    }

    /// How addresses of instructions, and of data, map to lines until the process changes.
    pub(crate) fn address_maps(&self) -> [AddressMap; 2] {
        self.address_maps
    }

    /// The time: uses of caches and TLBs so far, or more.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Sets the time unless it is later already: lines written through take time too.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Sets the site of the instruction that is executed from now on.
    #[inline(always)]
    pub(crate) fn set_site(&mut self, site: u32) {
        self.site = site;
    }

    /// Fetches instructions that the hit filter does not have.
    #[inline]
    pub(crate) fn fetch_slow(&mut self, address: u64) -> Served {
        self.access(INSTRUCTIONS, address, Request::Fetch)
    }

    /// Loads data.
    #[inline(always)]
    pub fn load(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, false)
    }

    /// Stores data.
    #[inline(always)]
    pub fn store(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, true)
    }

    #[inline(always)]
    pub(crate) fn data(&mut self, address: u64, size: u8, is_store: bool) -> Served {
        let last = address.wrapping_add(u64::from(size.saturating_sub(1)));
        match self.splits(address, last) {
            false => self.access_line(address, is_store),
            true => self.access_split(address, last, is_store),
        }
    }

    #[cold]
    #[inline(never)]
    fn access_split(&mut self, first: u64, last: u64, is_store: bool) -> Served {
        self.access_line(first, is_store).and(self.access_line(last, is_store))
    }

    #[inline(always)]
    fn access_line(&mut self, address: u64, is_store: bool) -> Served {
        self.now += 1;
        let is_l1_hit =
            self.data_fast(self.stores as u8, self.address_maps[DATA], address, is_store, self.now);
        if is_l1_hit { Served::default() } else { self.data_slow(address, is_store) }
    }

    /// Whether an access, from its first to its last byte, crosses a line and so becomes two.
    #[inline(always)]
    pub(crate) fn splits(&self, first: u64, last: u64) -> bool {
        (first ^ last) >> self.split_shift != 0
    }

    /// The write policy of L1's data cache.
    pub(crate) fn stores(&self) -> WritePolicy {
        self.stores
    }

    /// Loads or stores data within one line if the hit filter has it; `now` as in [`Hierarchy::fetch_fast`],
    /// `stores` is [`Hierarchy::stores`] as a number.
    #[inline(always)]
    pub(crate) fn data_fast(
        &mut self,
        stores: u8,
        address_map: AddressMap,
        address: u64,
        is_store: bool,
        now: u64,
    ) -> bool {
        let makes_dirty = is_store & (stores == WritePolicy::Back as u8);
        let is_l1_hit = self.l1[DATA].touch(address_map, address, makes_dirty, now);
        if stores == WritePolicy::Through as u8 && is_l1_hit & is_store {
            self.write_through_from_l1(address ^ address_map.asid);
        }
        is_l1_hit
    }

    /// Loads or stores data within one line that the hit filter does not have.
    #[inline]
    pub(crate) fn data_slow(&mut self, address: u64, is_store: bool) -> Served {
        self.access(DATA, address, if is_store { Request::Store } else { Request::Load })
    }

    /// An access that the hit filter did not serve.
    #[inline(always)]
    fn access(&mut self, side: usize, address: u64, request: Request) -> Served {
        let tagged_address = address ^ self.address_maps[side].asid;
        match self.access_simple_l1(side, tagged_address, request) {
            Some(served) => served,
            None => self.access_general(side, tagged_address, request),
        }
    }

    #[cold]
    #[inline(never)]
    fn access_general(&mut self, side: usize, tagged_address: u64, request: Request) -> Served {
        let tlb_misses = self.translate(side, tagged_address, request);
        Served { tlb_misses, ..self.access_caches(side, tagged_address, request) }
    }

    /// Whether fetches that hit L1 and accesses to data commute, so that they may be replayed in either
    /// order.
    pub(crate) fn is_order_free(&self) -> bool {
        self.has_fast_l1 && !self.data_can_evict_instructions
    }

    /// The caches that a request goes through, from L1 on: indices into the machine's list.
    pub(crate) fn caches_of(&self, request: Request) -> &[usize] {
        &self.paths[side_of(request)].caches
    }

    /// The TLBs that a request goes through, from the first on: indices into the machine's list.
    pub(crate) fn buffers_of(&self, request: Request) -> &[usize] {
        &self.paths[side_of(request)].buffers
    }

    /// Why the cache at a depth of the path missed when it last did.
    pub(crate) fn cache_class(&self, depth: usize) -> MissClass {
        self.cache_class[depth]
    }

    /// Why the TLB at a depth of the path missed when it last did.
    pub(crate) fn buffer_class(&self, depth: usize) -> MissClass {
        self.buffer_class[depth]
    }

    /// Resets the counts; contents stay.
    pub(crate) fn reset_counts(&mut self) {
        for cache in &mut self.caches {
            (cache.counts, cache.sites) = (CacheCounts::default(), SiteTraffic::default());
        }
        self.buffers.iter_mut().for_each(|buffer| buffer.misses = Default::default());
    }

    /// Adds the counts of a hierarchy of the same machine.
    pub(crate) fn add_counts(&mut self, other: &Hierarchy) {
        for (own, other) in self.caches.iter_mut().zip(&other.caches) {
            own.counts.add(&other.counts);
            own.sites.add(&other.sites);
        }
        for (own, other) in self.buffers.iter_mut().zip(&other.buffers) {
            own.misses.iter_mut().zip(other.misses).for_each(|(own, other)| *own += other);
        }
    }

    /// Misses of each TLB by the kind of request, in the order of the machine's list.
    pub fn buffer_misses(&self) -> impl Iterator<Item = [u64; Request::OF_PROCESSOR]> {
        self.buffers.iter().map(|buffer| buffer.misses)
    }

    /// Lines that each cache of data moved: [`CacheCounts::traffic`], one cache after another.
    pub(crate) fn traffic(&self) -> Vec<u64> {
        self.paths[DATA].caches.iter().flat_map(|&index| self.caches[index].counts.traffic()).collect()
    }

    /// Events of a cache at a site.
    pub(crate) fn site_events(&self, cache: usize, event: TrafficEvent, site: usize) -> u64 {
        self.caches[cache].sites.get(event, site)
    }

    /// CacheCounts of each cache, in the order of the machine's list.
    pub fn counts(&self) -> impl Iterator<Item = &CacheCounts> {
        self.caches.iter().map(|cache| &cache.counts)
    }
}

/// Whether a cache loses lines by back-invalidation.
fn is_included_elsewhere(machine: &Machine, name: &String) -> bool {
    machine.caches.iter().any(|cache| cache.includes.contains(name))
}

fn side_of(request: Request) -> usize {
    if request == Request::Fetch { INSTRUCTIONS } else { DATA }
}

fn positions<T>(list: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..list.len()).filter(|&index| is_wanted(&list[index])).collect()
}
