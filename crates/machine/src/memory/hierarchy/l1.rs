//! L1: the first cache of a side with its TLB, where the other side has its own. Most accesses end here.

use events::{FilterSide, HitFilter, WordArray, Words};

use super::page_map::PageMap;
use super::tags::{Evicted, SetAccess, Tags, matches};

/// An L1 cache with its TLB.
///
/// Most accesses are served by the **hit filter**, a direct-mapped table of lines which hit in cache and TLB,
/// and whose use changes nothing but the line's time. Only the line's time is recorded then; when its page
/// was last used follows from its lines. Compiled code of a running program looks into the filter itself: see
/// [`HitFilter`].
#[derive(Debug)]
pub struct L1 {
    address_map: AddressMap,
    page_map: PageMap,
    lines: Tags,
    pages: Tags,
    /// The hit filter: by the low bits of a line's number, its high bits (the tag), and above them the line's
    /// slot in `lines`.
    filter: WordArray<FILTER_ENTRIES>,
    /// For each slot of lines, the TLB slot of its page at its last use outside the hit filter.
    page_of: Box<[u32]>,
    /// The page last used outside the hit filter, and its slot.
    page: u64,
    page_slot: usize,
    /// TLB slots of pages, by the low bits of their numbers: a hint that is checked.
    likely_page_slots: Box<[u32; FILTER_ENTRIES]>,
    /// Whether sets have one way, so that [`L1::access_fast`] applies.
    is_direct_mapped: bool,
}

/// Maps addresses of a process to lines: what a loop over accesses keeps in registers.
#[derive(Clone, Copy, Debug)]
pub struct AddressMap {
    /// The bits that identify the process's addresses.
    pub asid: u64,
    line_shift: u32,
}

/// The result of an access to L1.
pub enum L1Outcome {
    /// The TLB does not have the page; nothing was changed.
    TlbMiss,
    /// Cache and TLB hit.
    Hit,
    /// The cache missed and has filled the line, evicting another one.
    Miss(Option<Evicted>),
}

/// Lines that the hit filter has room for.
const FILTER_ENTRIES: usize = HitFilter::LINES;
/// The bits of a line's number kept in a filter entry: addresses with their ASID are smaller than 2^63.
const FILTER_TAG_BITS: u64 = (1 << HitFilter::SLOT_SHIFT) - 1;
/// An empty filter entry: the number of no line.
const EMPTY_ENTRY: u64 = u64::MAX;

impl L1 {
    /// A cache with lines of 2^`line_shift` bytes, at least 2^[`L1::MIN_LINE_SHIFT`], and perhaps a TLB,
    /// whose pages are no smaller. The hit filter is in these words.
    pub fn new(
        line_shift: u32,
        lines: Tags,
        pages: Option<(PageMap, Tags)>,
        mut filter: WordArray<FILTER_ENTRIES>,
    ) -> L1 {
        let page = pages.as_ref().map_or(0, |_| u64::MAX);
        let (page_map, pages) = pages.unwrap_or_else(|| {
            let mut one = Tags::none();
            one.fill(0, false, 0);
            (PageMap::untranslated(), one)
        });
        filter.fill(EMPTY_ENTRY);
        L1 {
            address_map: AddressMap { asid: 0, line_shift },
            page_map,
            page_of: vec![0; lines.slots()].into(),
            is_direct_mapped: has_fast_path(&lines, 1),
            lines,
            pages,
            filter,
            page,
            page_slot: 0,
            likely_page_slots: Box::new([0; FILTER_ENTRIES]),
        }
    }

    /// For a side without L1.
    pub fn none() -> L1 {
        L1::new(L1::MIN_LINE_SHIFT, Tags::none(), None, Words::new(FILTER_ENTRIES).into())
    }

    /// The shortest lines that fit the hit filter: the numbers of shorter ones have too many bits.
    pub const MIN_LINE_SHIFT: u32 = 4;

    /// Where compiled code finds the hit filter and the lines' times.
    pub fn side(&self) -> FilterSide {
        FilterSide {
            line_shift: self.address_map.line_shift,
            entries: self.filter.address(),
            times: self.lines.words().1.address(),
        }
    }

    /// Where compiled code finds the lines' dirty bits.
    pub fn entries(&self) -> *mut u64 {
        self.lines.words().0.address()
    }

    /// The map of a process's addresses.
    pub fn address_map(&self, asid: u64) -> AddressMap {
        AddressMap { asid, ..self.address_map }
    }

    /// Uses the line at an address if the hit filter has it.
    #[inline(always)]
    pub fn touch(&mut self, address_map: AddressMap, address: u64, makes_dirty: bool, now: u64) -> bool {
        let tagged_address = address ^ address_map.asid;
        let line = tagged_address >> address_map.line_shift;
        let entry = self.filter[line as usize % FILTER_ENTRIES];
        let is_filtered = entry & FILTER_TAG_BITS == filter_tag(line);
        if is_filtered {
            self.lines.mark_used((entry >> HitFilter::SLOT_SHIFT) as usize, makes_dirty, now);
        }
        is_filtered
    }

    /// Whether the TLB has the page of an address.
    pub fn has_page(&self, tagged_address: u64) -> bool {
        let page = self.page_map.key(tagged_address);
        self.page == page || self.pages.find(page).is_some()
    }

    /// Uses the page of an address if the TLB has it.
    #[inline(always)]
    pub fn access_page(&mut self, tagged_address: u64, now: u64) -> bool {
        let page = self.page_map.key(tagged_address);
        if self.page != page {
            let likely = self.likely_page_slots[page as usize % FILTER_ENTRIES] as usize;
            let slot = if self.pages.slot_holds(likely, page) { Some(likely) } else { self.pages.find(page) };
            let Some(slot) = slot else { return false };
            self.set_current_page(page, slot);
        }
        if self.pages.use_slot(self.page_slot, page, false, now) {
            self.remove_victim_page(page);
        }
        true
    }

    /// An access that the hit filter did not serve. A line that misses is filled at once.
    #[inline(always)]
    pub fn access(&mut self, tagged_address: u64, makes_dirty: bool, now: u64) -> L1Outcome {
        if self.is_direct_mapped {
            match self.access_fast::<1>(tagged_address, makes_dirty, now) {
                L1Outcome::TlbMiss => {}
                outcome => return outcome,
            }
        }
        let line = tagged_address >> self.address_map.line_shift;
        if !self.access_page(tagged_address, now) {
            L1Outcome::TlbMiss
        } else if self.access_cached_line(line, makes_dirty, now) {
            L1Outcome::Hit
        } else {
            L1Outcome::Miss(self.fill_line(line, makes_dirty, now))
        }
    }

    /// The same for sets of `WAYS` ways ([`L1::has_fast_path`]). Returns [`L1Outcome::TlbMiss`], having
    /// changed nothing, also if the page is not where it was last seen, if its use moves a victim pointer, or
    /// if the line's number is too long for a tag.
    #[inline(always)]
    pub fn access_fast<const WAYS: usize>(
        &mut self,
        tagged_address: u64,
        makes_dirty: bool,
        now: u64,
    ) -> L1Outcome {
        let (line, page) = (tagged_address >> self.address_map.line_shift, self.page_map.key(tagged_address));
        // Branch-free: whether it is the current page again is unpredictable.
        let page_slot = self.likely_page_slots[page as usize % FILTER_ENTRIES];
        if !self.pages.slot_holds(page_slot as usize, page)
            || self.pages.at_victim_pointer(page) == Some(page)
        {
            return L1Outcome::TlbMiss;
        }
        let Some(SetAccess { slot, replaced }) = self.lines.access_or_fill::<WAYS>(line, makes_dirty, now)
        else {
            return L1Outcome::TlbMiss;
        };
        (self.page, self.page_slot) = (page, page_slot as usize);
        let outcome = match replaced {
            None => L1Outcome::Hit,
            Some((time, evicted)) => {
                if self.pages.is_lru_by_time() {
                    // The page of the evicted line was in use when the line last was.
                    self.pages.raise_time(self.page_of[slot] as usize, time);
                }
                if let Some(evicted) = evicted {
                    self.remove_from_filter(evicted.key);
                }
                L1Outcome::Miss(evicted)
            }
        };
        self.add_to_filter(line, slot);
        outcome
    }

    /// Whether [`L1::access_fast`] is correct for sets with this number of ways.
    pub fn has_fast_path(&self, ways: usize) -> bool {
        has_fast_path(&self.lines, ways)
    }

    /// Fills a page into the TLB.
    pub fn fill_page(&mut self, page: u64, now: u64) {
        let mut slot = self.pages.choose_victim(page);
        if self.pages.is_lru_by_time() {
            // The victim may have been used later than its time says, through lines served by the hit filter.
            while self.update_page_time(slot) {
                slot = self.pages.choose_victim(page);
            }
        }
        if let Some(evicted) = self.pages.fill_slot(slot, page, false, now) {
            self.remove_page_from_filter(evicted.key);
        }
        self.set_current_page(page, slot);
        self.remove_victim_page(page);
    }

    /// Raises a page's time to that of its most recently used line. Returns whether that changed it.
    fn update_page_time(&mut self, page_slot: usize) -> bool {
        let before = self.pages.times()[page_slot];
        let (eights, others) = self.page_of.as_chunks();
        for (eight, first) in eights.iter().zip((0..).step_by(8)) {
            let mut lines = matches(eight, page_slot as u32);
            while lines != 0 {
                let slot = first + lines.trailing_zeros() as usize;
                self.pages.raise_time(page_slot, self.lines.times()[slot]);
                lines &= lines - 1;
            }
        }
        for (page_of, &time) in others.iter().rev().zip(self.lines.times().iter().rev()) {
            if *page_of as usize == page_slot {
                self.pages.raise_time(page_slot, time);
            }
        }
        self.pages.times()[page_slot] != before
    }

    #[inline(always)]
    fn set_current_page(&mut self, page: u64, slot: usize) {
        (self.page, self.page_slot) = (page, slot);
        self.likely_page_slots[page as usize % FILTER_ENTRIES] = slot as u32;
    }

    /// A page was in use when its line was.
    #[inline(always)]
    fn update_page_time_from_line(&mut self, slot: usize) {
        self.pages.raise_time(self.page_of[slot] as usize, self.lines.times()[slot]);
    }

    /// Uses a line of the current page if the cache has it.
    #[inline(always)]
    pub fn access_cached_line(&mut self, line: u64, makes_dirty: bool, now: u64) -> bool {
        let slot = self.lines.find(line);
        if let Some(slot) = slot {
            if self.lines.use_slot(slot, line, makes_dirty, now) {
                self.remove_victim_candidate(line);
            }
            self.add_to_filter(line, slot);
        }
        slot.is_some()
    }

    /// Fills a line. Returns the one that it evicts.
    #[inline(always)]
    pub fn fill_line(&mut self, line: u64, is_dirty: bool, now: u64) -> Option<Evicted> {
        let slot = self.lines.choose_victim(line);
        self.update_page_time_from_line(slot);
        let evicted = self.lines.fill_slot(slot, line, is_dirty, now);
        if let Some(evicted) = evicted {
            self.remove_from_filter(evicted.key);
        }
        self.remove_victim_candidate(line);
        self.add_to_filter(line, slot);
        evicted
    }

    /// Whether the cache has a line.
    pub fn holds_line(&self, line: u64) -> bool {
        self.lines.find(line).is_some()
    }

    /// Invalidates a line. Returns whether it was dirty, if it was there.
    pub fn remove_line(&mut self, line: u64) -> Option<bool> {
        let slot = self.lines.find(line)?;
        self.update_page_time_from_line(slot);
        self.remove_from_filter(line);
        self.lines.remove(line)
    }

    /// Enters a line that was just used into the hit filter, if it belongs to the current page.
    #[inline(always)]
    fn add_to_filter(&mut self, line: u64, slot: usize) {
        let line_page = line >> (self.page_map.shift() - self.address_map.line_shift);
        let is_of_page = self.page_map.key_of_page(line_page) == self.page;
        self.page_of[slot] = self.page_slot as u32;
        if is_of_page && slot < HitFilter::SLOTS {
            self.filter[line as usize % FILTER_ENTRIES] =
                filter_tag(line) | (slot as u64) << HitFilter::SLOT_SHIFT;
        }
    }

    #[inline(always)]
    fn remove_from_filter(&mut self, line: u64) {
        let entry = &mut self.filter[line as usize % FILTER_ENTRIES];
        if *entry & FILTER_TAG_BITS == filter_tag(line) {
            *entry = EMPTY_ENTRY;
        }
    }

    /// A line at a victim pointer leaves the hit filter, as its use would move the pointer.
    #[inline(always)]
    fn remove_victim_candidate(&mut self, line: u64) {
        if let Some(other) = self.lines.at_victim_pointer(line) {
            self.remove_from_filter(other);
        }
    }

    /// So do the lines of a page at a victim pointer.
    #[inline(always)]
    fn remove_victim_page(&mut self, page: u64) {
        if let Some(other) = self.pages.at_victim_pointer(page) {
            self.remove_page_from_filter(other);
        }
    }

    fn remove_page_from_filter(&mut self, page: u64) {
        let page_lines_shift = self.page_map.shift() - self.address_map.line_shift;
        let first = page << page_lines_shift;
        let tag = filter_tag(first);
        // Those of all pages of a block.
        let lines_shift = page_lines_shift + self.page_map.pages_shift(page);
        let lines = FILTER_ENTRIES.min(1 << lines_shift);
        let (first, different) = (
            first as usize % FILTER_ENTRIES,
            FILTER_TAG_BITS & u64::MAX << lines_shift.saturating_sub(FILTER_ENTRIES.ilog2()),
        );
        for entry in &mut self.filter[first..][..lines] {
            if (*entry ^ tag) & different == 0 {
                *entry = EMPTY_ENTRY;
            }
        }
    }
}

/// Whether [`L1::access_fast`] applies to sets of this number of ways, and every line fits the hit filter.
fn has_fast_path(lines: &Tags, ways: usize) -> bool {
    lines.can_access_or_fill(ways) && lines.slots() <= HitFilter::SLOTS
}

/// The bits of a line's number that do not select its filter entry.
#[inline(always)]
fn filter_tag(line: u64) -> u64 {
    line >> FILTER_ENTRIES.ilog2()
}
