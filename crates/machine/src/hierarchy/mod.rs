//! Caches and translation buffers at work: where each fetch, load and store finds what it asks for.

mod cache;
mod classes;
mod flow;
mod front;
mod lru;
mod near;
mod tags;

use crate::description::{Crossing, Machine, Replacement, Write};
pub use cache::Counts;
use cache::{BufferState, CacheState};
pub use classes::Class;
use classes::Classes;
use front::{Front, MOST_SLOTS};
pub(crate) use lru::Stack;
use near::Near;

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
    fronts: [Front; 2],
    has_fronts: [bool; 2],
    /// Of each side, what is simple enough.
    near: [Option<Near>; 2],
    /// The nearest translation buffer of each side, if it has to know when pages were used last.
    lru_buffers: [Option<usize>; 2],
    caches: Vec<CacheState>,
    buffers: Vec<BufferState>,
    /// Of instructions, and of data.
    paths: [Path; 2],
    /// What stores to the nearest cache of data do.
    stores: Write,
    /// Whether an access to data can take away instructions from the nearest cache.
    can_expel_instructions: bool,
    /// From an address to the number of what an access asks for at once: lines, or pages.
    crossing: u32,
    /// The same of instructions.
    fetching: u32,
    /// Distinguishes the addresses of processes.
    space: u64,
    now: u64,
    /// Where the nearest cache has what was asked for last, if it does.
    near_slot: Option<usize>,
    classes: Option<Classes>,
    /// Why each cache of a path, and each translation buffer, missed when one did last.
    cache_class: Vec<Class>,
    buffer_class: Vec<Class>,
}

/// Bits of a virtual address on the 21064 and 21164; those above hold the process's number.
const ADDRESS_BITS: u32 = 43;

/// How much later each access of the processor is than the one before; it may use as many lines of a cache.
pub(crate) const STEP: u64 = 128;

const INSTRUCTIONS: usize = 0;
const DATA: usize = 1;

impl Hierarchy {
    /// The caches and translation buffers of a machine, empty.
    pub fn new(machine: &Machine) -> Hierarchy {
        let mut hierarchy = Hierarchy::without_fronts(machine);
        for side in [INSTRUCTIONS, DATA] {
            let (own, other) = (&hierarchy.paths[side], &hierarchy.paths[1 - side]);
            let Some(&cache) = own.caches.first() else { continue };
            let buffer = own.buffers.first();
            let is_shared =
                other.caches.contains(&cache) || buffer.is_some_and(|one| other.buffers.contains(one));
            let line_shift = hierarchy.caches[cache].shift;
            let page_shift = buffer.map_or(line_shift, |&buffer| hierarchy.buffers[buffer].shift);
            if !is_shared && page_shift >= line_shift && hierarchy.caches[cache].tags.slots() <= MOST_SLOTS {
                hierarchy.fronts[side] = Front::new(line_shift, page_shift);
                hierarchy.caches[cache].front = Some(side);
                hierarchy.has_fronts[side] = true;
                hierarchy.near[side] = hierarchy.simple(side);
            }
        }
        hierarchy
    }

    /// The same, which tells why accesses miss. That takes several times as long.
    pub fn classified(machine: &Machine) -> Hierarchy {
        Hierarchy { classes: Some(Classes::new(machine)), ..Hierarchy::without_fronts(machine) }
    }

    /// Where nothing is known at once, so that all is asked of the caches themselves.
    fn without_fronts(machine: &Machine) -> Hierarchy {
        let [instructions, data] = [true, false].map(|side| Path {
            caches: positions(&machine.caches, |cache| cache.holds.has(side)),
            buffers: positions(&machine.translation_buffers, |buffer| buffer.holds.has(side)),
        });
        let piece = |path: &Path| {
            let line = path.caches.first().map(|&index| machine.caches[index].line);
            let page = path.buffers.first().map(|&index| machine.translation_buffers[index].page);
            line.into_iter().chain(page).min().map_or(63, u64::ilog2)
        };
        let write = data.caches.first().map(|&first| machine.caches[first].write);
        Hierarchy {
            fronts: [(); 2].map(|()| Front::new(0, 0)),
            has_fronts: [false; 2],
            near: [None; 2],
            lru_buffers: [&instructions, &data].map(|path| {
                let nearest = path.buffers.first().copied();
                nearest.filter(|&index| machine.translation_buffers[index].replacement == Replacement::Lru)
            }),
            stores: write.unwrap_or_default(),
            can_expel_instructions: instructions.caches.first().is_some_and(|&first| {
                machine.caches.iter().any(|cache| cache.includes.contains(&machine.caches[first].name))
            }),
            fetching: piece(&instructions),
            crossing: match machine.processor.crossing {
                Crossing::First => 63,
                Crossing::Both => piece(&data),
            },
            caches: machine.caches.iter().map(|cache| CacheState::new(cache, machine)).collect(),
            buffers: machine.translation_buffers.iter().map(BufferState::new).collect(),
            cache_class: vec![Class::Unknown; instructions.caches.len().max(data.caches.len())],
            buffer_class: vec![Class::Unknown; instructions.buffers.len().max(data.buffers.len())],
            paths: [instructions, data],
            space: 0,
            now: 0,
            near_slot: None,
            classes: None,
        }
    }

    /// What follows is of the process with this number.
    pub fn set_space(&mut self, space: u32) {
        let space = Hierarchy::space(space);
        if space == self.space {
            return;
        }
        self.space = space;
        for side in [INSTRUCTIONS, DATA] {
            if let Some(buffer) = self.lru_buffers[side] {
                self.fronts[side].uses().for_each(|one| self.buffers[buffer].note(one));
            }
            self.fronts[side].set_space(space);
        }
    }

    /// What distinguishes the addresses of a process.
    pub(crate) fn space(number: u32) -> u64 {
        u64::from(number) << ADDRESS_BITS
    }

    /// Bytes of instructions that are fetched at once: a line, or a page.
    pub(crate) fn piece_of_instructions(&self) -> u64 {
        1 << self.fetching
    }

    /// Instructions are fetched: those of one line.
    #[inline]
    pub fn fetch(&mut self, address: u64) -> Served {
        self.now += STEP;
        self.fetch_at(self.now, address)
    }

    /// Data are read.
    #[inline]
    pub fn load(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, false)
    }

    /// Data are written.
    #[inline]
    pub fn store(&mut self, address: u64, size: u8) -> Served {
        self.data(address, size, true)
    }

    #[inline]
    fn data(&mut self, address: u64, size: u8, is_store: bool) -> Served {
        let last = address.wrapping_add(u64::from(size.saturating_sub(1)));
        let served = self.part(address, is_store);
        if self.crosses(address, last) { served.and(self.part(last, is_store)) } else { served }
    }

    #[inline]
    fn part(&mut self, address: u64, is_store: bool) -> Served {
        self.now += STEP;
        match self.stores {
            Write::Back => self.data_at::<{ Write::Back as u8 }>(self.now, address, is_store),
            Write::Through => self.data_at::<{ Write::Through as u8 }>(self.now, address, is_store),
            Write::Ignored => self.data_at::<{ Write::Ignored as u8 }>(self.now, address, is_store),
        }
    }

    /// Whether an access, from its first to its last byte, is two.
    #[inline]
    pub(crate) fn crosses(&self, first: u64, last: u64) -> bool {
        (first ^ last) >> self.crossing != 0
    }

    /// Instructions of one line are fetched at a time that is later than those before.
    #[inline(always)]
    pub(crate) fn fetch_at(&mut self, now: u64, address: u64) -> Served {
        if self.fronts[INSTRUCTIONS].touch(address, now, false) {
            return Served::default();
        }
        self.go_far(now, INSTRUCTIONS, address, Request::Fetch)
    }

    /// Fetches the instructions at an address if they are found at once, or else does nothing.
    #[inline(always)]
    pub(crate) fn fetches_known(&mut self, now: u64, address: u64) -> bool {
        self.fronts[INSTRUCTIONS].touch(address, now, false)
    }

    /// What stores to the nearest cache of data do.
    pub(crate) fn stores(&self) -> Write {
        self.stores
    }

    /// Data of one line are read or written at a time that is later than those before. `STORES` is what
    /// [`Hierarchy::stores`] says, as a number.
    #[inline(always)]
    pub(crate) fn data_at<const STORES: u8>(&mut self, now: u64, address: u64, is_store: bool) -> Served {
        let is_change = is_store & (STORES == Write::Back as u8);
        if !self.fronts[DATA].touch(address, now, is_change) {
            return self.go_far(now, DATA, address, if is_store { Request::Store } else { Request::Load });
        }
        if is_store & (STORES == Write::Through as u8) {
            self.now = now;
            self.write_on(DATA, 0, address ^ self.space);
        }
        Served::default()
    }

    /// An access to what the front does not know.
    #[cold]
    #[inline(never)]
    fn go_far(&mut self, now: u64, side: usize, address: u64, request: Request) -> Served {
        if let Some(served) = self.go_near(now, side, address ^ self.space, request) {
            return served;
        }
        self.now = now;
        self.near_slot = None;
        let address = address ^ self.space;
        let untranslated = self.translate(side, address, request);
        let served = self.ask(side, address, request);
        if self.has_fronts[side] {
            self.learn(side, address);
        }
        Served { untranslated, ..served }
    }

    /// Lets the front know what was asked for, if using it again does nothing else.
    fn learn(&mut self, side: usize, address: u64) {
        let cache = &self.caches[self.paths[side].caches[0]];
        let key = address >> cache.shift;
        if let Some(slot) = self.near_slot
            && cache.tags.key(slot) == key
        {
            let before = self.fronts[side].learn(key, slot);
            self.note_page(side, before);
        }
    }

    /// Lets the front forget a line.
    fn forget(&mut self, side: usize, key: u64) {
        let before = self.fronts[side].forget(key);
        self.note_page(side, before);
    }

    /// What the front knows no longer was a use of a page.
    fn note_page(&mut self, side: usize, page_and_time: Option<(u64, u64)>) {
        if let (Some(buffer), Some(page_and_time)) = (self.lru_buffers[side], page_and_time) {
            self.buffers[buffer].note(page_and_time);
        }
    }

    /// Whether an access to data can take away instructions from the nearest cache.
    pub(crate) fn can_expel_instructions(&self) -> bool {
        self.can_expel_instructions
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

    /// Misses of each translation buffer by the kind of request, in the order of the machine's.
    pub fn buffer_misses(&self) -> impl Iterator<Item = [u64; Request::OF_PROCESSOR]> {
        self.buffers.iter().map(|buffer| buffer.misses)
    }

    /// What happened at each cache, in the order of the machine's.
    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.caches.iter().map(|cache| &cache.counts)
    }
}

fn side_of(request: Request) -> usize {
    if request == Request::Fetch { INSTRUCTIONS } else { DATA }
}

fn positions<T>(list: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..list.len()).filter(|&index| is_wanted(&list[index])).collect()
}
