//! The nearest cache and translation buffer of a side, if the other side has others: most accesses end there.

use trace::{Array, Lookaside, Side, Words};

use super::tags::{Left, Tags, Use, matches};

/// A nearest cache with its translation buffer.
///
/// Most lines that are asked for are **known**: both they and their pages are there, and using them changes nothing
/// but when they were used last. That is noted of the line alone; when the page was used last follows. While a program
/// runs, its compiled code does so itself: see [`Lookaside`].
#[derive(Debug)]
pub struct Near {
    lens: Lens,
    page_shift: u32,
    lines: Tags,
    pages: Tags,
    /// What is known: by the low bits of a line's number the others, and its slot above them.
    known: Array<KNOWN>,
    /// Of each slot of lines, that of the page that was asked for when it was used last but as a known line.
    page_of: Box<[u32]>,
    /// The page that was asked for last beside those of known lines, and its slot.
    page: u64,
    page_slot: usize,
    /// Slots where pages were, by the low bits of their numbers.
    page_slots: Box<[u32; KNOWN]>,
    /// Whether sets have one line, and accesses can be quick.
    is_direct: bool,
}

/// How addresses are looked at: what a loop over accesses should have at hand.
#[derive(Clone, Copy, Debug)]
pub struct Lens {
    /// What distinguishes the addresses of a process.
    pub space: u64,
    line_shift: u32,
}

/// What became of an access.
pub enum Outcome {
    /// The page is not there; nothing was done.
    Untranslated,
    /// All was there.
    Hit,
    /// The line was not there, but is now, in the place of another.
    Missed(Option<Left>),
}

/// From any address to page 0, which is always there if nothing is translated.
const ALL: u32 = 63;
/// How many lines may be known.
const KNOWN: usize = Lookaside::KNOWN;
/// The bits of a line's number that stand in what is known: places are smaller than 2^63.
const OTHERS: u64 = (1 << Lookaside::SLOT_SHIFT) - 1;
/// What stands where none is: no line's number.
const NOTHING: u64 = u64::MAX;

impl Near {
    /// Of a cache with lines of 2^`line_shift` bytes, at least 2^[`Near::LEAST_SHIFT`], and perhaps of a translation
    /// buffer, whose pages have no fewer. What is known is in these words, of which there are [`KNOWN`].
    pub fn new(line_shift: u32, lines: Tags, pages: Option<(u32, Tags)>, mut known: Array<KNOWN>) -> Near {
        let page = pages.as_ref().map_or(0, |_| u64::MAX);
        let (page_shift, pages) = pages.unwrap_or_else(|| {
            let mut one = Tags::none();
            one.fill(0, false, 0);
            (ALL, one)
        });
        known.fill(NOTHING);
        Near {
            lens: Lens { space: 0, line_shift },
            page_shift,
            page_of: vec![0; lines.slots()].into(),
            is_direct: is_quick(&lines, 1),
            lines,
            pages,
            known,
            page,
            page_slot: 0,
            page_slots: Box::new([0; KNOWN]),
        }
    }

    /// That of nothing.
    pub fn none() -> Near {
        Near::new(Near::LEAST_SHIFT, Tags::none(), None, Words::new(KNOWN).into())
    }

    /// Of the shortest lines that can be known: the numbers of shorter ones are too long.
    pub const LEAST_SHIFT: u32 = 4;

    /// Where compiled code finds what is known.
    pub fn side(&self) -> Side {
        Side {
            line_shift: self.lens.line_shift,
            known: self.known.address(),
            times: self.lines.words().1.address(),
        }
    }

    /// Where compiled code finds whether lines were changed.
    pub fn entries(&self) -> *mut u64 {
        self.lines.words().0.address()
    }

    /// How addresses of a process are looked at.
    pub fn lens(&self, space: u64) -> Lens {
        Lens { space, ..self.lens }
    }

    /// Uses what is at an address if it is known.
    #[inline(always)]
    pub fn touch(&mut self, lens: Lens, address: u64, is_change: bool, now: u64) -> bool {
        let place = address ^ lens.space;
        let line = place >> lens.line_shift;
        let known = self.known[line as usize % KNOWN];
        let is_known = known & OTHERS == others(line);
        if is_known {
            self.lines.note((known >> Lookaside::SLOT_SHIFT) as usize, is_change, now);
        }
        is_known
    }

    /// Uses the page of a place if it is there.
    #[inline(always)]
    pub fn touch_page(&mut self, place: u64, now: u64) -> bool {
        let page = place >> self.page_shift;
        if self.page != page {
            let likely = self.page_slots[page as usize % KNOWN] as usize;
            let slot = if self.pages.is_in(likely, page) { Some(likely) } else { self.pages.find(page) };
            let Some(slot) = slot else { return false };
            self.enter_page(page, slot);
        }
        if self.pages.touch_slot(self.page_slot, page, false, now) {
            self.forget_page_in_turn(page);
        }
        true
    }

    /// An access to what is not known, where what misses comes in at once.
    #[inline(always)]
    pub fn access(&mut self, place: u64, is_change: bool, now: u64) -> Outcome {
        if self.is_direct {
            match self.access_quickly::<1>(place, is_change, now) {
                Outcome::Untranslated => {}
                outcome => return outcome,
            }
        }
        let line = place >> self.lens.line_shift;
        if !self.touch_page(place, now) {
            Outcome::Untranslated
        } else if self.touch_line(line, is_change, now) {
            Outcome::Hit
        } else {
            Outcome::Missed(self.fill_line(line, is_change, now))
        }
    }

    /// The same, where sets have `WAYS` ways ([`Near::is_quick`]). Nothing was done if the page is not at hand, or using it
    /// changes more than a time, or the line's number is too long.
    #[inline(always)]
    pub fn access_quickly<const WAYS: usize>(&mut self, place: u64, is_change: bool, now: u64) -> Outcome {
        let (line, page) = (place >> self.lens.line_shift, place >> self.page_shift);
        // Whether it is the same page again cannot be guessed.
        let page_slot = self.page_slots[page as usize % KNOWN];
        if !self.pages.is_in(page_slot as usize, page) || self.pages.in_turn(page) == Some(page) {
            return Outcome::Untranslated;
        }
        let Some(Use { slot, replaced }) = self.lines.use_or_bring_in::<WAYS>(line, is_change, now) else {
            return Outcome::Untranslated;
        };
        (self.page, self.page_slot) = (page, page_slot as usize);
        let outcome = match replaced {
            None => Outcome::Hit,
            Some((time, left)) => {
                if self.pages.is_by_time() {
                    // The page of what left was used when that was.
                    self.pages.note_if_later(self.page_of[slot] as usize, time);
                }
                if let Some(left) = left {
                    self.forget(left.key);
                }
                Outcome::Missed(left)
            }
        };
        self.know(line, slot);
        outcome
    }

    /// Whether [`Near::access_quickly`] does what [`Near::access`] does, where sets have so many ways.
    pub fn is_quick(&self, ways: usize) -> bool {
        is_quick(&self.lines, ways)
    }

    /// Brings in a page.
    pub fn fill_page(&mut self, page: u64, now: u64) {
        let mut slot = self.pages.choose(page);
        if self.pages.is_by_time() {
            // That which would go may have been used later, as known lines of its were.
            while self.note_lines_of(slot) {
                slot = self.pages.choose(page);
            }
        }
        if let Some(left) = self.pages.put(slot, page, false, now) {
            self.forget_page(left.key);
        }
        self.enter_page(page, slot);
        self.forget_page_in_turn(page);
    }

    /// The page in a slot was used when its lines were. Returns whether that is news.
    fn note_lines_of(&mut self, page_slot: usize) -> bool {
        let before = self.pages.times()[page_slot];
        let (eights, others) = self.page_of.as_chunks();
        for (eight, first) in eights.iter().zip((0..).step_by(8)) {
            let mut lines = matches(eight, page_slot as u32);
            while lines != 0 {
                let slot = first + lines.trailing_zeros() as usize;
                self.pages.note_if_later(page_slot, self.lines.times()[slot]);
                lines &= lines - 1;
            }
        }
        for (page_of, &time) in others.iter().rev().zip(self.lines.times().iter().rev()) {
            if *page_of as usize == page_slot {
                self.pages.note_if_later(page_slot, time);
            }
        }
        self.pages.times()[page_slot] != before
    }

    #[inline(always)]
    fn enter_page(&mut self, page: u64, slot: usize) {
        (self.page, self.page_slot) = (page, slot);
        self.page_slots[page as usize % KNOWN] = slot as u32;
    }

    /// The page of a line was used when the line was.
    #[inline(always)]
    fn note_page_of(&mut self, slot: usize) {
        self.pages.note_if_later(self.page_of[slot] as usize, self.lines.times()[slot]);
    }

    /// Uses a line of the page that was asked for last, if it is there.
    #[inline(always)]
    pub fn touch_line(&mut self, line: u64, is_change: bool, now: u64) -> bool {
        let slot = self.lines.find(line);
        if let Some(slot) = slot {
            if self.lines.touch_slot(slot, line, is_change, now) {
                self.forget_in_turn(line);
            }
            self.know(line, slot);
        }
        slot.is_some()
    }

    /// Brings in a line. Returns what it replaces.
    #[inline(always)]
    pub fn fill_line(&mut self, line: u64, is_changed: bool, now: u64) -> Option<Left> {
        let slot = self.lines.choose(line);
        self.note_page_of(slot);
        let left = self.lines.put(slot, line, is_changed, now);
        if let Some(left) = left {
            self.forget(left.key);
        }
        self.forget_in_turn(line);
        self.know(line, slot);
        left
    }

    /// Whether a line is there.
    pub fn holds_line(&self, line: u64) -> bool {
        self.lines.find(line).is_some()
    }

    /// Takes a line out. Returns whether it was changed, if it was there.
    pub fn remove_line(&mut self, line: u64) -> Option<bool> {
        let slot = self.lines.find(line)?;
        self.note_page_of(slot);
        self.forget(line);
        self.lines.remove(line)
    }

    /// A line was used, and is known from now on if it is of the page that was asked for last.
    #[inline(always)]
    fn know(&mut self, line: u64, slot: usize) {
        let is_of_page = line >> (self.page_shift - self.lens.line_shift) == self.page;
        self.page_of[slot] = self.page_slot as u32;
        if is_of_page && slot < Lookaside::SLOTS {
            self.known[line as usize % KNOWN] = others(line) | (slot as u64) << Lookaside::SLOT_SHIFT;
        }
    }

    #[inline(always)]
    fn forget(&mut self, line: u64) {
        let known = &mut self.known[line as usize % KNOWN];
        if *known & OTHERS == others(line) {
            *known = NOTHING;
        }
    }

    /// The line to which the pointer of another's set shows is not known: using it moves the pointer.
    #[inline(always)]
    fn forget_in_turn(&mut self, line: u64) {
        if let Some(other) = self.lines.in_turn(line) {
            self.forget(other);
        }
    }

    /// Nor are the lines of such a page.
    #[inline(always)]
    fn forget_page_in_turn(&mut self, page: u64) {
        if let Some(other) = self.pages.in_turn(page) {
            self.forget_page(other);
        }
    }

    fn forget_page(&mut self, page: u64) {
        let lines_shift = self.page_shift - self.lens.line_shift;
        let first = page << lines_shift;
        let lines = KNOWN.min(1 << lines_shift);
        let (first, different) =
            (first as usize % KNOWN, OTHERS & u64::MAX << lines_shift.saturating_sub(KNOWN.ilog2()));
        let others = others(page << lines_shift);
        for known in &mut self.known[first..][..lines] {
            if (*known ^ others) & different == 0 {
                *known = NOTHING;
            }
        }
    }
}

/// Whether lines in sets of so many ways can be used or brought in at once, and all of them be known.
fn is_quick(lines: &Tags, ways: usize) -> bool {
    lines.can_use_or_bring_in(ways) && lines.slots() <= Lookaside::SLOTS
}

/// The bits of a line's number that do not select the word where it is known.
#[inline(always)]
fn others(line: u64) -> u64 {
    line >> KNOWN.ilog2()
}
