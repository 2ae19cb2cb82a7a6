//! Caches and translation buffers at work: where each fetch, load and store finds what it asks for.

mod cache;
mod classes;
mod flow;
mod lru;
mod tags;

use crate::description::{Crossing, Machine, Write};
pub use cache::Counts;
use cache::{BufferState, CacheState};
pub use classes::Class;
use classes::Classes;
pub(crate) use lru::Stack;
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

/// The nearest cache and translation buffer of a side, if the other side has others: all that most accesses look
/// at, in one place.
#[derive(Debug)]
struct Near {
    line_shift: u32,
    page_shift: u32,
    /// The page that was used last: using it again changes nothing.
    last_page: u64,
    lines: Tags,
    pages: Option<Tags>,
}

/// The structures that accesses of one side, of instructions or of data, ask: from the nearest on.
#[derive(Debug)]
struct Path {
    caches: Vec<usize>,
    buffers: Vec<usize>,
}

impl Path {
    fn nearest_is_apart(&self, other: &Path) -> bool {
        let is_apart =
            |own: &[usize], other: &[usize]| own.first().is_none_or(|nearest| !other.contains(nearest));
        let has_cache = !self.caches.is_empty();
        has_cache && is_apart(&self.caches, &other.caches) && is_apart(&self.buffers, &other.buffers)
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
    /// Whether an access to data can take away instructions from the nearest cache.
    can_expel_instructions: bool,
    /// From an address to the number of what an access asks for at once.
    crossing: u32,
    /// The same of instructions.
    fetching: u32,
    /// Distinguishes the addresses of processes.
    space: u64,
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
        if instructions.nearest_is_apart(data) && data.nearest_is_apart(instructions) {
            hierarchy.has_near = true;
            for (side, path) in hierarchy.paths.iter().enumerate() {
                let near = &mut hierarchy.near[side];
                if let Some(&index) = path.caches.first() {
                    let cache = &mut hierarchy.caches[index];
                    cache.near = Some(side);
                    near.line_shift = cache.shift;
                    std::mem::swap(&mut near.lines, &mut cache.tags);
                }
                if let Some(&index) = path.buffers.first() {
                    let buffer = &mut hierarchy.buffers[index];
                    buffer.near = Some(side);
                    near.page_shift = buffer.shift;
                    near.pages = Some(std::mem::replace(&mut buffer.tags, Tags::none()));
                }
            }
        }
        hierarchy
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
        let write = data.caches.first().map(|&first| machine.caches[first].write);
        Hierarchy {
            near: [Near::new(), Near::new()],
            fetching: piece(&instructions),
            has_near: false,
            stores: write.unwrap_or_default(),
            can_expel_instructions: instructions.caches.first().is_some_and(|&first| {
                machine.caches.iter().any(|cache| cache.includes.contains(&machine.caches[first].name))
            }),
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
            classes: None,
        }
    }

    /// What follows is of the process with this number.
    pub fn set_space(&mut self, space: u32) {
        self.space = Hierarchy::space(space);
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
        if self.fetch_near(address) { Served::default() } else { self.fetch_far(address) }
    }

    /// Fetches the instructions at an address if the nearest structures have them.
    #[inline(always)]
    pub(crate) fn fetch_near(&mut self, address: u64) -> bool {
        self.near[INSTRUCTIONS].touch(address ^ self.space, false)
    }

    /// Fetches instructions that the nearest structures do not have.
    #[inline]
    pub(crate) fn fetch_far(&mut self, address: u64) -> Served {
        self.go(INSTRUCTIONS, address, Request::Fetch)
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
        let is_near = match self.stores {
            Write::Back => self.data_near::<{ Write::Back as u8 }>(address, is_store),
            Write::Through => self.data_near::<{ Write::Through as u8 }>(address, is_store),
            Write::Ignored => self.data_near::<{ Write::Ignored as u8 }>(address, is_store),
        };
        if is_near { Served::default() } else { self.data_far(address, is_store) }
    }

    /// Whether an access, from its first to its last byte, is two.
    #[inline]
    pub(crate) fn crosses(&self, first: u64, last: u64) -> bool {
        (first ^ last) >> self.crossing != 0
    }

    /// What stores to the nearest cache of data do.
    pub(crate) fn stores(&self) -> Write {
        self.stores
    }

    /// Data of one line are read or written if the nearest structures have them. `STORES` is what
    /// [`Hierarchy::stores`] says, as a number.
    #[inline(always)]
    pub(crate) fn data_near<const STORES: u8>(&mut self, address: u64, is_store: bool) -> bool {
        let place = address ^ self.space;
        let is_change = is_store & (STORES == Write::Back as u8);
        let is_near = self.near[DATA].touch(place, is_change);
        if is_near & is_store & (STORES == Write::Through as u8) {
            self.write_on(DATA, 0, place);
        }
        is_near
    }

    /// Data of one line are read or written that the nearest structures do not have.
    #[inline]
    pub(crate) fn data_far(&mut self, address: u64, is_store: bool) -> Served {
        self.go(DATA, address, if is_store { Request::Store } else { Request::Load })
    }

    /// An access to what the nearest structures do not have.
    #[cold]
    #[inline(never)]
    fn go(&mut self, side: usize, address: u64, request: Request) -> Served {
        let place = address ^ self.space;
        let untranslated = self.translate(side, place, request);
        // If the translation was there it is the line that was not.
        let served = match self.has_near && untranslated == 0 {
            true => self.ask_behind(side, place, request),
            false => self.ask(side, place, request),
        };
        Served { untranslated, ..served }
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

    /// Misses of each translation buffer by the kind of request, in the order of the machine's.
    pub fn buffer_misses(&self) -> impl Iterator<Item = [u64; Request::OF_PROCESSOR]> {
        self.buffers.iter().map(|buffer| buffer.misses)
    }

    /// What happened at each cache, in the order of the machine's.
    pub fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.caches.iter().map(|cache| &cache.counts)
    }
}

impl Near {
    fn new() -> Near {
        Near { line_shift: 0, page_shift: 63, last_page: u64::MAX, lines: Tags::none(), pages: None }
    }

    /// Uses what is at a place, an address of a process, if all of it is there.
    #[inline(always)]
    fn touch(&mut self, place: u64, is_change: bool) -> bool {
        let page = place >> self.page_shift;
        if page != self.last_page {
            if !self.pages.as_mut().is_none_or(|pages| pages.touch(page, false)) {
                return false;
            }
            self.last_page = page;
        }
        self.lines.touch(place >> self.line_shift, is_change)
    }
}

fn side_of(request: Request) -> usize {
    if request == Request::Fetch { INSTRUCTIONS } else { DATA }
}

fn positions<T>(list: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..list.len()).filter(|&index| is_wanted(&list[index])).collect()
}
