//! What was used lately, found without a search.

use std::ops::Range;

use super::tags::Marks;

const SIZE: usize = 1024;
/// Slots of the largest cache that can have a front.
pub const MOST_SLOTS: usize = 1024;

/// Some lines of the nearest cache of instructions or of data whose pages are also in the nearest translation
/// buffer. Using what is known here changes nothing but when it was used last, and whether it was changed.
///
/// All in one piece, and small, so that it stays in the host's nearest cache.
#[derive(Debug)]
pub struct Front {
    recent: [u64; SIZE],
    used: [u64; MOST_SLOTS],
    changed: [bool; MOST_SLOTS],
    /// From an address to a line's number.
    shift: u32,
    /// From a line's number to a page's; those of one page have the same.
    page_shift: u32,
    /// What all addresses have that the front does not see: the process's number.
    space: u64,
}

/// A line is known by the low bits of its number, which say where, and 32 others, which are the high half of
/// what is there. Its slot is the low half.
const SIZE_BITS: u32 = SIZE.ilog2();
/// What is where no line is known. Lines with these high bits are never known, as are those with more.
const EMPTY: u64 = u64::MAX;

impl Front {
    /// Knowing nothing, of lines and pages of so many bits.
    pub fn new(line_shift: u32, page_shift: u32) -> Front {
        Front {
            recent: [EMPTY; SIZE],
            used: [0; MOST_SLOTS],
            changed: [false; MOST_SLOTS],
            shift: line_shift,
            page_shift: page_shift - line_shift,
            space: 0,
        }
    }

    /// Where the line of an address is, if it is known.
    #[inline(always)]
    fn slot(&self, address: u64) -> Option<usize> {
        let line = address >> self.shift;
        let recent = self.recent[line as usize % SIZE];
        (recent >> 32 == line >> SIZE_BITS).then_some(recent as usize % MOST_SLOTS)
    }

    /// Uses the line of an address, and changes it or not, if it is known.
    #[inline(always)]
    pub fn touch(&mut self, address: u64, now: u64, is_change: bool) -> bool {
        let Some(slot) = self.slot(address) else { return false };
        self.used[slot] = now;
        self.changed[slot] |= is_change;
        true
    }

    /// The marks of the cache's slots.
    pub fn marks(&mut self) -> Marks<'_> {
        Marks { used: &mut self.used, changed: &mut self.changed }
    }

    /// From here on all addresses are of another process.
    pub fn set_space(&mut self, space: u64) {
        self.recent = [EMPTY; SIZE];
        self.space = space;
    }

    /// A line's number without the process's, as the two halves of it.
    fn halves(&self, key: u64) -> (usize, u64) {
        let line = key ^ self.space >> self.shift;
        (line as usize % SIZE, line >> SIZE_BITS)
    }

    /// The number of the line at a place, if one is known.
    fn key(&self, place: usize) -> Option<u64> {
        let recent = self.recent[place];
        let line = recent >> 32 << SIZE_BITS | place as u64;
        (recent != EMPTY).then_some(line ^ self.space >> self.shift)
    }

    /// A line is in a slot. Returns the page of another that is known no longer, and when that was used last.
    pub fn learn(&mut self, key: u64, slot: usize) -> Option<(u64, u64)> {
        let (place, high) = self.halves(key);
        if high >= u64::from(u32::MAX) {
            return None;
        }
        let before = self.use_at(place);
        self.recent[place] = high << 32 | slot as u64;
        before
    }

    /// A line is held no longer, or using it does change something. Returns its page and when it was used last,
    /// if it was known.
    pub fn forget(&mut self, key: u64) -> Option<(u64, u64)> {
        let (place, high) = self.halves(key);
        if self.recent[place] >> 32 != high {
            return None;
        }
        let before = self.use_at(place);
        self.recent[place] = EMPTY;
        before
    }

    /// The page of the line at a place, and when it was used last.
    fn use_at(&self, place: usize) -> Option<(u64, u64)> {
        Some((self.key(place)? >> self.page_shift, self.used[self.recent[place] as usize % MOST_SLOTS]))
    }

    /// All that is known: pages, and when a line of theirs was used last.
    pub fn uses(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..SIZE).filter_map(|place| self.use_at(place))
    }

    /// No line of a page is known any longer.
    pub fn forget_page(&mut self, page: u64) {
        for place in self.places(page) {
            if self.key(place).is_some_and(|key| key >> self.page_shift == page) {
                self.recent[place] = EMPTY;
            }
        }
    }

    /// When any known line of a page was used last, or 0.
    pub fn last_use(&self, page: u64) -> u64 {
        let uses = self.places(page).filter_map(|place| self.use_at(place));
        uses.filter(|one| one.0 == page).map(|one| one.1).max().unwrap_or(0)
    }

    /// Where lines of a page are.
    fn places(&self, page: u64) -> Range<usize> {
        let lines = 1usize << self.page_shift.min(SIZE_BITS);
        let (first, _) = self.halves(page << self.page_shift);
        let first = first & !(lines - 1);
        first..first + lines
    }
}
