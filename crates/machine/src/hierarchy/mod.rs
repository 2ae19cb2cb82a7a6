//! Caches and translation buffers at work: where each fetch, load and store finds what it asks for.

mod cache;
mod classes;
mod flow;
mod later;
mod lru;
mod near;
mod recent;
mod shared;
mod tags;
mod writes;

use trace::Words;

use crate::description::{Crossing, Machine, Prefetch, Write};
pub use cache::Counts;
use cache::{BufferState, CacheState};
pub use classes::Class;
use classes::Classes;
use later::Later;
pub(crate) use lru::Stack;
pub(crate) use near::Lens;
use near::Near;
use shared::Shared;
use tags::Tags;

/// What is asked of a cache or translation buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Instructions, by the processor.
    Fetch,
    /// Data to read, by the processor.
    Load,
    /// Data to write, by the processor.
    Store,
    /// What a nearer cache prefetches.
    Prefetch,
    /// Data to write, by a nearer cache: stores sent on, and lines written back.
    Write,
}

impl Request {
    /// How many kinds there are.
    pub const COUNT: usize = 5;
    /// Kinds that the processor itself asks: the first ones.
    pub const OF_PROCESSOR: usize = 3;
    /// All kinds, in order.
    pub const ALL: [Request; Request::COUNT] =
        [Request::Fetch, Request::Load, Request::Store, Request::Prefetch, Request::Write];

    fn is_of_processor(self) -> bool {
        (self as usize) < Request::OF_PROCESSOR
    }
}

/// Where an access found what it asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Caches that missed, from the nearest on. A store that its cache does not bring in, or sends on, is the
    /// next level's, and nothing waits for it.
    pub missed: u8,
    /// The cache that had it: 0 is the nearest; the number of caches means memory. One less than `missed` if
    /// a cache's own buffer of victims or prefetched lines had it.
    pub level: u8,
    /// Translation buffers that missed, from the nearest on.
    pub untranslated: u8,
}

impl Served {
    /// Whether the nearest cache and translation buffer had it.
    #[inline(always)]
    pub fn is_near(self) -> bool {
        self.missed | self.untranslated == 0
    }

    /// The worse of two parts of an access.
    pub fn and(self, other: Served) -> Served {
        Served {
            missed: self.missed.max(other.missed),
            level: self.level.max(other.level),
            untranslated: self.untranslated.max(other.untranslated),
        }
    }
}

/// The structures that accesses of one side, of instructions or of data, ask: from the nearest on.
#[derive(Debug)]
struct Path {
    caches: Vec<usize>,
    buffers: Vec<usize>,
}

impl Path {
    /// Whether the other side asks neither the nearest cache nor the nearest translation buffer.
    fn nearest_is_apart(&self, other: &Path) -> bool {
        let is_apart =
            |own: &[usize], other: &[usize]| own.first().is_none_or(|nearest| !other.contains(nearest));
        let has_cache = !self.caches.is_empty();
        has_cache && is_apart(&self.caches, &other.caches) && is_apart(&self.buffers, &other.buffers)
    }

    /// Whether lines of the nearest cache are in one page each, and long enough.
    fn may_be_near(&self, machine: &Machine) -> bool {
        let line = self.caches.first().map(|&index| machine.caches[index].line);
        let page = self.buffers.first().map(|&index| machine.translation_buffers[index].page);
        line.is_some_and(|line| line >> Near::LEAST_SHIFT != 0 && page.is_none_or(|page| line <= page))
    }
}

/// A nearest cache of which what it misses can be in its place before it is asked for.
#[derive(Clone, Copy, Debug)]
struct Simple {
    index: usize,
    behind: Option<usize>,
    /// Whether it prefetches a stream, of instructions.
    streams: bool,
    /// Whether stores that miss bring in a line and do nothing else; if not, only loads are simple.
    stores_too: bool,
}

impl Simple {
    /// If a cache of a machine, at an index, the nearest of a side, is so simple.
    fn new(machine: &Machine, side: usize, index: usize, behind: Option<usize>) -> Option<Simple> {
        let cache = &machine.caches[index];
        let streams = side == INSTRUCTIONS && matches!(cache.prefetch, Some(Prefetch::Stream(_)));
        // Where others take lines away, which one leaves must not depend on that, nor may one that was changed.
        let goes_alone = cache.ways == 1 && cache.write == Write::Through && !streams;
        let is_simple = cache.victim_lines == 0
            && (cache.prefetch.is_none() || streams)
            && (goes_alone || !is_included(machine, &cache.name));
        let stores_too = cache.allocate_on_write && cache.write != Write::Through;
        is_simple.then_some(Simple { index, behind, streams, stores_too })
    }
}

/// Caches and translation buffers of a machine with one processor.
///
/// Addresses are virtual, of up to 43 bits; those of different processes differ.
///
/// ```
/// use pathlength_machine::{Hierarchy, Machine};
/// let mut hierarchy = Hierarchy::new(&Machine::find("alphastation500").unwrap());
/// assert_eq!(hierarchy.load(0x1_4000_0000, 8).level, 3); // memory
/// assert!(hierarchy.load(0x1_4000_0018, 8).is_near());
/// ```
#[derive(Debug)]
pub struct Hierarchy {
    /// Of instructions, and of data.
    near: [Near; 2],
    /// Whether accesses need not ask more than those if they have what is asked for.
    has_near: bool,
    caches: Vec<CacheState>,
    buffers: Vec<BufferState>,
    /// Of instructions, and of data.
    paths: [Path; 2],
    /// What stores to the nearest cache of data do.
    stores: Write,
    /// Of each side, the nearest cache if little happens there when it misses.
    simple: [Option<Simple>; 2],
    /// Whether an access to data can take away instructions from the nearest cache.
    can_expel_instructions: bool,
    /// From an address to the number of what an access asks for at once.
    crossing: u32,
    /// The same of instructions.
    fetching: u32,
    /// How addresses of instructions, and of data, are looked at.
    lenses: [Lens; 2],
    /// Uses of structures so far, or more.
    now: u64,
    /// What compiled code sees.
    shared: Option<Shared>,
    /// Whether what the nearest caches miss may wait ([`Hierarchy::go_later`]), and what does.
    may_wait: bool,
    later: Later,
    classes: Option<Classes>,
    /// Why each cache of a path, and each translation buffer, missed when one did last.
    cache_class: Vec<Class>,
    buffer_class: Vec<Class>,
}

/// Bits of a virtual address on the 21064 and 21164; those above hold the process's number.
const ADDRESS_BITS: u32 = 43;

const INSTRUCTIONS: usize = 0;
const DATA: usize = 1;

impl Hierarchy {
    /// The same, which tells why accesses miss. That takes several times as long.
    pub fn classified(machine: &Machine) -> Hierarchy {
        Hierarchy { classes: Some(Classes::new(machine)), ..Hierarchy::without_near(machine) }
    }

    /// The caches and translation buffers of a machine, empty.
    pub fn new(machine: &Machine) -> Hierarchy {
        let mut hierarchy = Hierarchy::without_near(machine);
        let [instructions, data] = &hierarchy.paths;
        let is_apart = instructions.nearest_is_apart(data) && data.nearest_is_apart(instructions);
        if is_apart && hierarchy.paths.iter().all(|path| path.may_be_near(machine)) {
            hierarchy.has_near = true;
            let nearest = [INSTRUCTIONS, DATA].map(|side| hierarchy.paths[side].caches[0]);
            let [code, data] = nearest.map(|index| machine.caches[index].slots());
            let (shared, words) = Shared::new([code, data]);
            for (side, words) in words.into_iter().enumerate() {
                hierarchy.bring_near(side, machine, words);
            }
            hierarchy.shared = Some(shared);
            hierarchy.may_wait = hierarchy.can_wait();
        }
        hierarchy.set_space(0);
        hierarchy
    }

    /// The nearest cache and translation buffer of a side are to be in one place: what is known, entries and times.
    fn bring_near(&mut self, side: usize, machine: &Machine, [known, entries, times]: [Words; 3]) {
        let path = &self.paths[side];
        let (cache, lines) = (&mut self.caches[path.caches[0]], &machine.caches[path.caches[0]]);
        (cache.near, cache.tags) = (Some(side), Tags::none());
        let pages = path.buffers.first().map(|&index| {
            let buffer = &mut self.buffers[index];
            (buffer.near, buffer.tags) = (Some(side), Tags::none());
            (buffer.shift, machine.translation_buffers[index].tags(true))
        });
        self.simple[side] = Simple::new(machine, side, path.caches[0], cache.behind[side]);
        self.near[side] = Near::new(cache.shift, lines.tags(true).at(entries, times), pages, known.into());
    }

    fn without_near(machine: &Machine) -> Hierarchy {
        let [instructions, data] = [true, false].map(|side| Path {
            caches: positions(&machine.caches, |cache| cache.holds.has(side)),
            buffers: positions(&machine.translation_buffers, |buffer| buffer.holds.has(side)),
        });
        let piece = |path: &Path| {
            let line = path.caches.first().map(|&index| machine.caches[index].line);
            let page = path.buffers.first().map(|&index| machine.translation_buffers[index].page);
            line.into_iter().chain(page).min().map_or(63, u64::ilog2)
        };
        let mut caches: Vec<_> = machine.caches.iter().map(|cache| CacheState::new(cache, machine)).collect();
        for (side, path) in [&instructions, &data].into_iter().enumerate() {
            for pair in path.caches.windows(2) {
                caches[pair[0]].behind[side] = Some(pair[1]);
            }
        }
        let write = data.caches.first().map(|&first| machine.caches[first].write);
        Hierarchy {
            near: [Near::none(), Near::none()],
            now: 0,
            shared: None,
            may_wait: false,
            later: Later::default(),
            fetching: piece(&instructions),
            has_near: false,
            simple: [None; 2],
            stores: write.unwrap_or_default(),
            can_expel_instructions: instructions
                .caches
                .first()
                .is_some_and(|&first| is_included(machine, &machine.caches[first].name)),
            crossing: match machine.processor.crossing {
                Crossing::First => 63,
                Crossing::Both => piece(&data),
            },
            caches,
            buffers: machine.translation_buffers.iter().map(BufferState::new).collect(),
            cache_class: vec![Class::Unknown; instructions.caches.len().max(data.caches.len())],
            buffer_class: vec![Class::Unknown; instructions.buffers.len().max(data.buffers.len())],
            paths: [instructions, data],
            lenses: [Near::none().lens(0); 2],
            classes: None,
        }
    }

    /// What follows is of the process with this number.
    pub fn set_space(&mut self, space: u32) {
        let space = Hierarchy::space(space);
        self.lenses = [INSTRUCTIONS, DATA].map(|side| self.near[side].lens(space));
    }

    /// What distinguishes the addresses of a process.
    pub(crate) fn space(number: u32) -> u64 {
        u64::from(number) << ADDRESS_BITS & u64::MAX >> 1
    }

    /// Bytes of instructions that are fetched at once: a line, or a page.
    pub(crate) fn piece_of_instructions(&self) -> u64 {
        1 << self.fetching
    }

    /// Instructions are fetched: those of one line.
    #[inline]
    pub fn fetch(&mut self, address: u64) -> Served {
        self.now += 1;
        if self.fetch_near(self.lenses[INSTRUCTIONS], address, self.now) {
            Served::default()
        } else {
            self.fetch_far(address)
        }
    }

    /// Fetches the instructions at an address if that is simple: the nearest structures have them. The time is what
    /// [`Hierarchy::now`] said, and one more each time.
    #[inline(always)]
    pub(crate) fn fetch_near(&mut self, lens: Lens, address: u64, now: u64) -> bool {
        self.near[INSTRUCTIONS].touch(lens, address, false, now)
    }

    /// How addresses of instructions, and of data, are looked at until another process goes on.
    pub(crate) fn lenses(&self) -> [Lens; 2] {
        self.lenses
    }

    /// The number of uses of structures so far, or more.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Sets the time, unless it is later already: what is written on takes time too.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Fetches instructions that the nearest structures do not have.
    #[inline]
    pub(crate) fn fetch_far(&mut self, address: u64) -> Served {
        self.go(INSTRUCTIONS, address, Request::Fetch)
    }

    /// Data are read.
    #[inline(always)]
    pub fn load(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, false)
    }

    /// Data are written.
    #[inline(always)]
    pub fn store(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, true)
    }

    #[inline(always)]
    pub(crate) fn data(&mut self, address: u64, size: u8, is_store: bool) -> Served {
        let last = address.wrapping_add(u64::from(size.saturating_sub(1)));
        match self.crosses(address, last) {
            false => self.part(address, is_store),
            true => self.parts(address, last, is_store),
        }
    }

    #[cold]
    #[inline(never)]
    fn parts(&mut self, first: u64, last: u64, is_store: bool) -> Served {
        self.part(first, is_store).and(self.part(last, is_store))
    }

    #[inline(always)]
    fn part(&mut self, address: u64, is_store: bool) -> Served {
        self.now += 1;
        let is_near = self.data_near(self.stores as u8, self.lenses[DATA], address, is_store, self.now);
        if is_near { Served::default() } else { self.data_far(address, is_store) }
    }

    /// Whether an access, from its first to its last byte, is two.
    #[inline(always)]
    pub(crate) fn crosses(&self, first: u64, last: u64) -> bool {
        (first ^ last) >> self.crossing != 0
    }

    /// What stores to the nearest cache of data do.
    pub(crate) fn stores(&self) -> Write {
        self.stores
    }

    /// Data of one line are read or written if that is simple: the nearest structures have them. The time is as in
    /// [`Hierarchy::fetch_near`], `stores` is what [`Hierarchy::stores`] says, as a number.
    #[inline(always)]
    pub(crate) fn data_near(
        &mut self,
        stores: u8,
        lens: Lens,
        address: u64,
        is_store: bool,
        now: u64,
    ) -> bool {
        let is_change = is_store & (stores == Write::Back as u8);
        let is_near = self.near[DATA].touch(lens, address, is_change, now);
        if stores == Write::Through as u8 && is_near & is_store {
            self.write_on_from_nearest(address ^ lens.space);
        }
        is_near
    }

    /// Data of one line are read or written that the nearest structures do not have.
    #[inline]
    pub(crate) fn data_far(&mut self, address: u64, is_store: bool) -> Served {
        self.go(DATA, address, if is_store { Request::Store } else { Request::Load })
    }

    /// An access to what the nearest structures do not have, or need more than a note of.
    #[inline(always)]
    fn go(&mut self, side: usize, address: u64, request: Request) -> Served {
        let place = address ^ self.lenses[side].space;
        match self.go_simply(side, place, request) {
            Some(served) => served,
            None => self.go_anyhow(side, place, request),
        }
    }

    #[cold]
    #[inline(never)]
    fn go_anyhow(&mut self, side: usize, place: u64, request: Request) -> Served {
        let untranslated = self.translate(side, place, request);
        Served { untranslated, ..self.ask(side, place, request) }
    }

    /// Whether fetches that the nearest structures serve, and accesses to data, change nothing for each other.
    pub(crate) fn is_order_free(&self) -> bool {
        self.has_near && !self.can_expel_instructions
    }

    /// The caches that accesses of a side ask, from the nearest on: indices of the machine's.
    pub(crate) fn caches_of(&self, request: Request) -> &[usize] {
        &self.paths[side_of(request)].caches
    }

    /// The translation buffers that accesses of a side ask, from the nearest on: indices of the machine's.
    pub(crate) fn buffers_of(&self, request: Request) -> &[usize] {
        &self.paths[side_of(request)].buffers
    }

    /// Why the cache at a depth of the path missed, when it did last.
    pub(crate) fn cache_class(&self, depth: usize) -> Class {
        self.cache_class[depth]
    }

    /// Why the translation buffer at a depth of the path missed, when it did last.
    pub(crate) fn buffer_class(&self, depth: usize) -> Class {
        self.buffer_class[depth]
    }

    /// Forgets what was counted.
    pub(crate) fn forget_counts(&mut self) {
        self.caches.iter_mut().for_each(|cache| cache.counts = Counts::default());
        self.buffers.iter_mut().for_each(|buffer| buffer.misses = Default::default());
    }

    /// Misses of each translation buffer by the kind of request, in the order of the machine's.
    pub fn buffer_misses(&self) -> impl Iterator<Item = [u64; Request::OF_PROCESSOR]> {
        self.buffers.iter().map(|buffer| buffer.misses)
    }

    /// What happened at each cache, in the order of the machine's.
    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.caches.iter().map(|cache| &cache.counts)
    }
}

/// Whether a cache loses lines because others do.
fn is_included(machine: &Machine, name: &String) -> bool {
    machine.caches.iter().any(|cache| cache.includes.contains(name))
}

fn side_of(request: Request) -> usize {
    if request == Request::Fetch { INSTRUCTIONS } else { DATA }
}

fn positions<T>(list: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..list.len()).filter(|&index| is_wanted(&list[index])).collect()
}
