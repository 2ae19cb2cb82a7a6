//! The bytes of memory that were touched: in a window of time, and in total.

use std::collections::HashMap;

/// Bytes of a granule, the unit in which touched memory is recorded.
pub const GRANULE: u64 = 4096;
/// The greatest number of granules: 4 GiB of memory.
const MAX_GRANULES: usize = 1 << 20;
/// Words of 64 bits with a bit for each byte of a granule.
const WORDS: usize = (GRANULE / 64) as usize;
/// Granules that are found without a search.
const RECENT: usize = 256;

/// A bit for each byte of a granule.
type GranuleBits = [u64; WORDS];

struct Granule {
    number: u64,
    window: GranuleBits,
    whole: GranuleBits,
    is_in_window: bool,
}

/// The bytes that were touched.
pub struct TouchedBytes {
    granules: Vec<Granule>,
    numbers: HashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
    window: Vec<u32>,
    is_full: bool,
}

impl Default for TouchedBytes {
    fn default() -> TouchedBytes {
        TouchedBytes {
            granules: Vec::new(),
            numbers: HashMap::new(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            window: Vec::new(),
            is_full: false,
        }
    }
}

impl TouchedBytes {
    /// Marks bytes as touched.
    #[inline]
    pub fn touch(&mut self, address: u64, size: u64) {
        let (first, offset) = (address / GRANULE, address % GRANULE);
        let bit = offset % 64;
        if bit + size <= 64 {
            let Some(granule) = self.granule(first) else { return };
            granule.window[(offset / 64) as usize] |= (u64::MAX >> (64 - size)) << bit;
        } else {
            let head = 64 - bit;
            self.touch(address, head);
            if let Some(next) = address.checked_add(head) {
                self.touch(next, size - head);
            }
        }
    }

    #[inline]
    fn granule(&mut self, number: u64) -> Option<&mut Granule> {
        let slot = number as usize % RECENT;
        let (known, index) = self.recent[slot];
        let index = if known == number { index } else { self.find(number)? };
        self.recent[slot] = (number, index);
        let granule = &mut self.granules[index as usize];
        if !granule.is_in_window {
            granule.is_in_window = true;
            self.window.push(index);
        }
        Some(granule)
    }

    #[cold]
    fn find(&mut self, number: u64) -> Option<u32> {
        if let Some(&index) = self.numbers.get(&number) {
            return Some(index);
        }
        if self.granules.len() == MAX_GRANULES {
            self.is_full = true;
            return None;
        }
        let index = self.granules.len() as u32;
        self.granules.push(Granule { number, window: [0; WORDS], whole: [0; WORDS], is_in_window: false });
        self.numbers.insert(number, index);
        Some(index)
    }

    /// Whether more granules were touched than are kept.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The granules touched in the window, ascending.
    pub fn pieces_in_window(&self) -> Vec<u64> {
        sorted(self.window.iter().map(|&index| self.granules[index as usize].number))
    }

    /// All granules touched in the windows that have ended, ascending.
    pub fn granules(&self) -> Vec<u64> {
        sorted(self.granules.iter().map(|granule| granule.number))
    }

    /// Ends the window: adds the use of its lines to `uses`.
    pub fn end_window(&mut self, uses: &mut [LineUse]) {
        for index in self.window.drain(..) {
            let granule = &mut self.granules[index as usize];
            uses.iter_mut().for_each(|one| one.add(&granule.window));
            granule.whole.iter_mut().zip(&granule.window).for_each(|(whole, window)| *whole |= window);
            granule.window = [0; WORDS];
            granule.is_in_window = false;
        }
    }

    /// Adds the use of the lines of all windows together.
    pub fn whole(&self, uses: &mut [LineUse]) {
        for granule in &self.granules {
            uses.iter_mut().for_each(|one| one.add(&granule.whole));
        }
    }
}

fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// The number of pages of a size that contain these granules, which ascend.
pub fn pages(granules: &[u64], page_size: u64) -> u64 {
    let page = |granule: &u64| granule / (page_size / GRANULE);
    let changes = granules.windows(2).filter(|pair| page(&pair[0]) != page(&pair[1])).count();
    changes as u64 + u64::from(!granules.is_empty())
}

/// How much of the lines of a cache is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// Bytes of a line: a power of two, from 8 to 4096.
    pub line: u64,
    /// Lines touched.
    pub lines: u64,
    /// Bytes of them that were touched.
    pub bytes: u64,
    /// Lines by how much of them was touched: up to an eighth, up to two, and so on.
    pub eighths: [u64; 8],
}

impl LineUse {
    /// Nothing touched.
    pub fn new(line: u64) -> LineUse {
        LineUse { line, lines: 0, bytes: 0, eighths: [0; 8] }
    }

    fn add(&mut self, bits: &GranuleBits) {
        if self.line >= 64 {
            let lines = bits.chunks_exact((self.line / 64) as usize);
            lines.for_each(|line| self.add_line(line.iter().map(|word| u64::from(word.count_ones())).sum()));
        } else {
            let mask = (1 << self.line) - 1;
            for word in bits.iter().filter(|&&word| word != 0) {
                let lines = (0..64).step_by(self.line as usize).map(|start| word >> start & mask);
                lines.for_each(|line| self.add_line(line.count_ones().into()));
            }
        }
    }

    fn add_line(&mut self, bytes: u64) {
        if bytes > 0 {
            self.lines += 1;
            self.bytes += bytes;
            self.eighths[((bytes * 8).div_ceil(self.line) - 1) as usize] += 1;
        }
    }
}
