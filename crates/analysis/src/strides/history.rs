//! The addresses that each series of references accessed last, thread by thread.

/// Series whose addresses are kept together.
const PAGE: usize = 64;

/// The last addresses of a thread, of as many series as it executed.
#[derive(Clone, Debug, Default)]
pub struct History {
    pages: Vec<Option<Box<[u64]>>>,
}

/// How many addresses are kept of a series.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// As many as strides are counted to.
    pub depth: u32,
    /// A ring of so many, less one: of a power of two.
    mask: u64,
}

/// The last addresses of a series.
pub struct Last<'a> {
    count: &'a mut u64,
    ring: &'a mut [u64],
    depth: Depth,
}

impl Depth {
    pub fn new(depth: u32) -> Depth {
        Depth { depth, mask: u64::from(depth).next_power_of_two() - 1 }
    }

    /// Words of a series: how many addresses there were, and the ring.
    fn words(self) -> usize {
        self.mask as usize + 2
    }
}

impl History {
    /// Those of a series.
    #[inline(always)]
    pub fn of(&mut self, series: u32, depth: Depth) -> Last<'_> {
        let (page, within) = (series as usize / PAGE, series as usize % PAGE);
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.add(page, depth);
        }
        let page = self.pages[page].as_mut().expect("was added");
        let start = within * depth.words();
        let (count, ring) = page[start..start + depth.words()].split_first_mut().expect("a count");
        Last { count, ring, depth }
    }

    #[cold]
    fn add(&mut self, page: usize, depth: Depth) {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page] = Some(vec![0; PAGE * depth.words()].into());
    }
}

impl Last<'_> {
    /// Adds an address; the ones before it, the last first, are told until `next` says that it is enough.
    #[inline(always)]
    pub fn push(self, address: u64, mut next: impl FnMut(u64) -> bool) {
        let Last { count, ring, depth } = self;
        let slot = |number: u64| (number & depth.mask) as usize;
        for back in 1..=(*count).min(depth.depth.into()) {
            if !next(ring[slot(*count - back)]) {
                break;
            }
        }
        ring[slot(*count)] = address;
        *count += 1;
    }
}
