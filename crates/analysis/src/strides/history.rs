//! The addresses that each series of references accessed last, thread by thread. While they are equally far apart,
//! it is enough to know how often.

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
    depth: u64,
    /// A ring of so many, less one: of a power of two.
    mask: u64,
}

/// What is kept of a series: some words by name, then the ring.
#[derive(Clone, Copy)]
enum Word {
    /// References.
    Count,
    /// The last address.
    Last,
    /// From the last but one address to the last.
    Stride,
    /// What the last stride was counted in.
    Element,
    /// How many strides, the last one among them, were the same one after another.
    Equal,
    /// How many references came since, with the same stride each. They are not in the ring.
    Repeats,
    Ring,
}

/// A stride that was repeated so often, behind as many of the same as the depth is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The stride.
    pub stride: i64,
    /// What it is counted in.
    pub element: u64,
    /// References.
    pub times: u64,
}

/// What is known of a series.
pub struct Last<'a> {
    words: &'a mut [u64],
    depth: Depth,
}

impl Depth {
    #[inline(always)]
    pub fn new(depth: u32) -> Depth {
        Depth { depth: depth.into(), mask: u64::from(depth).next_power_of_two() - 1 }
    }

    /// Words of a series.
    #[inline(always)]
    fn words(self) -> usize {
        Word::Ring as usize + self.mask as usize + 1
    }
}

impl History {
    /// What is known of a series.
    #[inline(always)]
    pub fn of(&mut self, series: u32, depth: Depth) -> Last<'_> {
        let (page, within) = (series as usize / PAGE, series as usize % PAGE);
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.add(page, depth);
        }
        let page = self.pages[page].as_mut().expect("was added");
        let start = within * depth.words();
        Last { words: &mut page[start..start + depth.words()], depth }
    }

    #[cold]
    fn add(&mut self, page: usize, depth: Depth) {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page] = Some(vec![0; PAGE * depth.words()].into());
    }

    /// References of a series, and the run that it is in, if there is one.
    pub fn state(&self, series: u32, depth: Depth) -> (u64, Option<Run>) {
        let (page, within) = (series as usize / PAGE, series as usize % PAGE);
        let Some(Some(page)) = self.pages.get(page) else { return (0, None) };
        let words = &page[within * depth.words()..][..depth.words()];
        (words[Word::Count as usize], run(words))
    }
}

fn run(words: &[u64]) -> Option<Run> {
    let [stride, element, times] =
        [Word::Stride, Word::Element, Word::Repeats].map(|word| words[word as usize]);
    (times > 0).then_some(Run { stride: stride.cast_signed(), element, times })
}

impl Last<'_> {
    /// Adds an address if it goes on as those before: true if it does.
    #[inline(always)]
    pub fn repeat(&mut self, address: u64, element: u64) -> bool {
        let words = &mut self.words[..Word::Ring as usize];
        let stride = address.wrapping_sub(words[Word::Last as usize]);
        let repeats = stride == words[Word::Stride as usize]
            && element == words[Word::Element as usize]
            && words[Word::Equal as usize] >= self.depth.depth;
        if repeats {
            words[Word::Last as usize] = address;
            words[Word::Count as usize] += 1;
            words[Word::Repeats as usize] += 1;
        }
        repeats
    }

    /// Ends the run that there is: its references are in the ring from now on.
    #[inline]
    pub fn end_run(&mut self) -> Option<Run> {
        let run = run(self.words)?;
        let [count, last] = [Word::Count, Word::Last].map(|word| self.words[word as usize]);
        for back in 0..self.depth.depth {
            let address = last.wrapping_sub(run.stride.cast_unsigned().wrapping_mul(back));
            // There were more than the depth.
            *self.slot(count - 1 - back) = address;
        }
        self.words[Word::Repeats as usize] = 0;
        Some(run)
    }

    /// Adds an address when there is no run; the ones before it, the last first, are told until `next` says that it
    /// is enough.
    #[inline(always)]
    pub fn push(&mut self, address: u64, element: u64, mut next: impl FnMut(u64) -> bool) {
        let count = self.words[Word::Count as usize];
        let known = count.min(self.depth.depth);
        let mut back = 0;
        while back < known && next(*self.slot(count - 1 - back)) {
            back += 1;
        }
        *self.slot(count) = address;
        let words = &mut self.words[..Word::Ring as usize];
        let stride = address.wrapping_sub(words[Word::Last as usize]);
        let is_equal = stride == words[Word::Stride as usize] && element == words[Word::Element as usize];
        // The first address has no stride, and the second one none to compare with.
        words[Word::Equal as usize] = match count {
            0 => 0,
            _ if is_equal && words[Word::Equal as usize] > 0 => words[Word::Equal as usize] + 1,
            _ => 1,
        };
        words[Word::Stride as usize] = stride;
        words[Word::Element as usize] = element;
        words[Word::Last as usize] = address;
        words[Word::Count as usize] = count + 1;
    }

    #[inline(always)]
    fn slot(&mut self, number: u64) -> &mut u64 {
        &mut self.words[Word::Ring as usize + (number & self.depth.mask) as usize]
    }
}
