//! Which bytes of memory were touched: in a window of time, and at all.

use std::collections::HashMap;

/// Memory is looked at in pieces of so many bytes.
pub const PIECE: u64 = 4096;
/// More pieces than these are not kept: 4 GiB of memory touched.
const MOST: usize = 1 << 20;
/// Words of 64 bits with a bit for each byte of a piece.
const WORDS: usize = (PIECE / 64) as usize;
/// Pieces found without a search.
const RECENT: usize = 256;

/// A bit for each byte of a piece.
type Bits = [u64; WORDS];

struct Piece {
    number: u64,
    window: Bits,
    whole: Bits,
    is_in_window: bool,
}

/// The bytes that were touched.
pub struct Touched {
    pieces: Vec<Piece>,
    numbers: HashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
    window: Vec<u32>,
    is_full: bool,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched {
            pieces: Vec::new(),
            numbers: HashMap::new(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            window: Vec::new(),
            is_full: false,
        }
    }
}

impl Touched {
    /// Touches bytes.
    #[inline]
    pub fn touch(&mut self, address: u64, size: u64) {
        let (first, offset) = (address / PIECE, address % PIECE);
        let bit = offset % 64;
        if bit + size <= 64 {
            let Some(piece) = self.piece(first) else { return };
            piece.window[(offset / 64) as usize] |= (u64::MAX >> (64 - size)) << bit;
        } else {
            let head = 64 - bit;
            self.touch(address, head);
            if let Some(next) = address.checked_add(head) {
                self.touch(next, size - head);
            }
        }
    }

    #[inline]
    fn piece(&mut self, number: u64) -> Option<&mut Piece> {
        let slot = number as usize % RECENT;
        let (known, index) = self.recent[slot];
        let index = if known == number { index } else { self.find(number)? };
        self.recent[slot] = (number, index);
        let piece = &mut self.pieces[index as usize];
        if !piece.is_in_window {
            piece.is_in_window = true;
            self.window.push(index);
        }
        Some(piece)
    }

    #[cold]
    fn find(&mut self, number: u64) -> Option<u32> {
        if let Some(&index) = self.numbers.get(&number) {
            return Some(index);
        }
        if self.pieces.len() == MOST {
            self.is_full = true;
            return None;
        }
        let index = self.pieces.len() as u32;
        self.pieces.push(Piece { number, window: [0; WORDS], whole: [0; WORDS], is_in_window: false });
        self.numbers.insert(number, index);
        Some(index)
    }

    /// Whether more was touched than is kept.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The pieces touched in the window, ascending.
    pub fn pieces_in_window(&self) -> Vec<u64> {
        sorted(self.window.iter().map(|&index| self.pieces[index as usize].number))
    }

    /// All pieces touched in a window that has ended, ascending.
    pub fn pieces(&self) -> Vec<u64> {
        sorted(self.pieces.iter().map(|piece| piece.number))
    }

    /// Ends the window: adds the use of its lines to `uses`.
    pub fn end_window(&mut self, uses: &mut [LineUse]) {
        for index in self.window.drain(..) {
            let piece = &mut self.pieces[index as usize];
            uses.iter_mut().for_each(|one| one.add(&piece.window));
            piece.whole.iter_mut().zip(&piece.window).for_each(|(whole, window)| *whole |= window);
            piece.window = [0; WORDS];
            piece.is_in_window = false;
        }
    }

    /// Adds the use of the lines of all windows together.
    pub fn whole(&self, uses: &mut [LineUse]) {
        for piece in &self.pieces {
            uses.iter_mut().for_each(|one| one.add(&piece.whole));
        }
    }
}

fn sorted(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// How many pages of a size these pieces, ascending, lie in.
pub fn pages(pieces: &[u64], page_size: u64) -> u64 {
    let page = |piece: &u64| piece / (page_size / PIECE);
    let changes = pieces.windows(2).filter(|pair| page(&pair[0]) != page(&pair[1])).count();
    changes as u64 + u64::from(!pieces.is_empty())
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

    fn add(&mut self, bits: &Bits) {
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
