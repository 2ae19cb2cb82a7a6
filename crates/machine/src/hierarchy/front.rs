//! What was used lately, found without a search.

use super::tags::{Marks, NOTHING};

const SIZE: usize = 1024;
/// Slots of the largest cache that can have a front.
pub const MOST_SLOTS: usize = 4096;

/// Some lines of the nearest cache of instructions or of data whose pages are also in the nearest translation
/// buffer. Using what is known here changes nothing but when it was used last, and whether it was changed.
///
/// All in one piece, so that the address of each word is known but for its index.
#[derive(Debug)]
pub struct Front {
    recent: [Recent; SIZE],
    used: [u64; MOST_SLOTS],
    changed: [bool; MOST_SLOTS],
    /// From an address to a line's number.
    shift: u32,
    /// From a line's number to a page's; those of one page have the same.
    page_shift: u32,
}

/// A line's number, and its slot.
#[derive(Clone, Copy, Debug)]
struct Recent {
    key: u64,
    slot: usize,
}

impl Front {
    /// Knowing nothing, of lines and pages of so many bits.
    pub fn new(line_shift: u32, page_shift: u32) -> Front {
        Front {
            recent: [Recent { key: NOTHING, slot: 0 }; SIZE],
            used: [0; MOST_SLOTS],
            changed: [false; MOST_SLOTS],
            shift: line_shift,
            page_shift: page_shift - line_shift,
        }
    }

    /// Uses the line of an address, and changes it or not, if it is known.
    #[inline(always)]
    pub fn touch(&mut self, address: u64, now: u64, is_change: bool) -> bool {
        let key = address >> self.shift;
        let recent = self.recent[key as usize % SIZE];
        if recent.key != key {
            return false;
        }
        self.used[recent.slot % MOST_SLOTS] = now;
        self.changed[recent.slot % MOST_SLOTS] |= is_change;
        true
    }

    /// Whether the line of an address is known.
    #[inline(always)]
    pub fn knows(&self, address: u64) -> bool {
        let key = address >> self.shift;
        self.recent[key as usize % SIZE].key == key
    }

    /// The marks of the cache's slots.
    pub fn marks(&mut self) -> Marks<'_> {
        Marks { used: &mut self.used, changed: &mut self.changed }
    }

    /// A line is in a slot. Returns the page of another that is known no longer, and when that was used last.
    pub fn learn(&mut self, key: u64, slot: usize) -> Option<(u64, u64)> {
        let before = std::mem::replace(&mut self.recent[key as usize % SIZE], Recent { key, slot });
        (before.key != NOTHING).then(|| self.use_of(before))
    }

    /// A line is held no longer, or using it does change something. Returns its page and when it was used last,
    /// if it was known.
    pub fn forget(&mut self, key: u64) -> Option<(u64, u64)> {
        let recent = &mut self.recent[key as usize % SIZE];
        if recent.key != key || key == NOTHING {
            return None;
        }
        let before = std::mem::replace(recent, Recent { key: NOTHING, slot: 0 });
        Some(self.use_of(before))
    }

    fn use_of(&self, recent: Recent) -> (u64, u64) {
        (recent.key >> self.page_shift, self.used[recent.slot])
    }

    /// No line of a page is known any longer.
    pub fn forget_page(&mut self, page: u64) {
        for place in self.places(page) {
            let recent = &mut self.recent[place];
            if recent.key >> self.page_shift == page {
                recent.key = NOTHING;
            }
        }
    }

    /// When any known line of a page was used last, if there is one.
    pub fn last_use(&self, page: u64) -> u64 {
        let of_page =
            self.recent[self.places(page)].iter().filter(|recent| recent.key >> self.page_shift == page);
        of_page.map(|recent| self.used[recent.slot]).max().unwrap_or(0)
    }

    /// Where lines of a page are.
    fn places(&self, page: u64) -> std::ops::Range<usize> {
        let lines = 1usize << self.page_shift.min(SIZE.ilog2());
        let first = (page << self.page_shift) as usize % SIZE;
        first..first + lines
    }
}
