//! The list of mapped regions of an address space. It owns no memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::layout::{Layout, Protection};
use crate::objects::MappedObject;

/// The backing of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionBacking {
    /// Anonymous memory, initially zero.
    Anonymous,
    /// A file, from an offset on.
    File {
        /// The file's path on the host.
        path: Arc<PathBuf>,
        /// The file offset of the region's start in bytes.
        offset: u64,
    },
    /// The name shown by `/proc/self/maps`: `[stack]`, `[heap]`.
    Named(&'static str),
}

/// A range of pages with the same mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRegion {
    /// First address after it.
    pub end: u64,
    /// `PROT_*` bits.
    pub protection: Protection,
    /// True for MAP_SHARED.
    pub shared: bool,
    /// Its backing.
    pub backing: RegionBacking,
    /// The object that it shows, if it is not zeroed memory of its own.
    pub object: Option<MappedObject>,
}

impl MemoryRegion {
    fn executable(&self) -> bool {
        self.protection & libc::PROT_EXEC != 0
    }
}

/// All regions by their first addresses. They do not overlap.
#[derive(Debug)]
pub struct Regions {
    regions: BTreeMap<u64, MemoryRegion>,
    layout: Layout,
    /// The end of the last free range that was found.
    next: u64,
    /// Number of mapped bytes.
    bytes: u64,
    /// The highest number of mapped bytes so far.
    peak: u64,
}

impl Regions {
    /// An empty list.
    pub fn new(layout: Layout) -> Regions {
        Regions { regions: BTreeMap::new(), layout, next: layout.map_base, bytes: 0, peak: 0 }
    }

    /// Number of mapped bytes, and the highest number so far.
    pub fn mapped_bytes(&self) -> [u64; 2] {
        [self.bytes, self.peak]
    }

    /// The regions in ascending order: start and region.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &MemoryRegion)> {
        self.regions.iter().map(|(&start, region)| (start, region))
    }

    /// The region that contains `address`: start and region.
    pub fn at(&self, address: u64) -> Option<(u64, &MemoryRegion)> {
        self.regions.range(..=address).next_back().map(|(&s, r)| (s, r)).filter(|(_, r)| address < r.end)
    }

    /// True if the whole range is mapped.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.at(at) {
                Some((_, region)) => at = region.end,
                None => return false,
            }
        }
        true
    }

    /// True if part of the range is executable.
    pub fn hold_code(&self, start: u64, end: u64) -> bool {
        let mut regions = self.regions.range(..end).rev().take_while(|(_, region)| region.end > start);
        regions.any(|(_, region)| region.executable())
    }

    /// Finds a free range of `bytes` (whole pages): at `hint` if that is free and not 0, else the first
    /// one at or above the end of the last range found.
    pub fn find_free(&mut self, hint: u64, bytes: u64) -> Option<u64> {
        if hint != 0 && hint.is_multiple_of(self.layout.page) && self.is_free(hint, bytes) {
            if hint == self.next {
                self.next = hint + bytes;
            }
            return Some(hint);
        }
        let Layout { page, map_base, large_base, .. } = self.layout;
        let search = |from| self.search(from..large_base, bytes, page);
        let found = search(self.next).or_else(|| search(map_base))?;
        self.next = found + bytes;
        Some(found)
    }

    /// Finds a free range of `bytes` (whole large pages) for memory in large pages.
    pub fn find_free_large(&self, bytes: u64) -> Option<u64> {
        let Layout { bytes: end, large_page, large_base, .. } = self.layout;
        self.search(large_base..end, bytes, large_page)
    }

    fn search(&self, within: Range<u64>, bytes: u64, page: u64) -> Option<u64> {
        let mut at = within.start;
        while let Some(end) = at.checked_add(bytes).filter(|&end| end <= within.end) {
            match self.regions.range(..end).next_back() {
                Some((_, region)) if region.end > at => at = region.end.next_multiple_of(page),
                _ => return Some(at),
            }
        }
        None
    }

    /// True if nothing in the range is mapped and the range lies in the address space, above page 0.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        start >= self.layout.page
            && end <= self.layout.bytes
            && self.regions.range(..end).next_back().is_none_or(|(_, region)| region.end <= start)
    }

    /// Inserts a region and removes what it overlaps; true if executable memory was added or removed.
    pub fn insert(&mut self, start: u64, region: MemoryRegion) -> bool {
        let code = self.remove(start, region.end) | region.executable();
        self.bytes += region.end - start;
        self.peak = self.peak.max(self.bytes);
        self.regions.insert(start, region);
        code
    }

    /// Removes regions, and parts of regions, between `start` and `end`; true if executable memory was removed.
    pub fn remove(&mut self, start: u64, end: u64) -> bool {
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.regions.range(start..end).map(|(&start, _)| start).collect();
        let mut code = false;
        for start in gone {
            if let Some(region) = self.regions.remove(&start) {
                self.bytes -= region.end - start;
                code |= region.executable();
            }
        }
        code
    }

    /// Changes the protection between `start` and `end`; true if executable memory was added or removed.
    pub fn protect(&mut self, start: u64, end: u64, protection: Protection) -> bool {
        self.split(start);
        self.split(end);
        let mut code = protection & libc::PROT_EXEC != 0;
        for (_, region) in self.regions.range_mut(start..end) {
            code |= region.executable();
            region.protection = protection;
        }
        code
    }

    /// The region that would begin at `start` after a split there.
    pub fn rest_at(&self, start: u64) -> Option<MemoryRegion> {
        let (first, region) = self.at(start)?;
        let mut region = region.clone();
        if let RegionBacking::File { offset, .. } = &mut region.backing {
            *offset += start - first;
        }
        if let Some(object) = &mut region.object {
            object.offset += start - first;
        }
        Some(region)
    }

    /// Splits the region that contains `at`, if `at` is not its start.
    fn split(&mut self, at: u64) {
        if let Some(upper) = self.rest_at(at)
            && let Some((_, region)) = self.regions.range_mut(..at).next_back()
            && region.end > at
        {
            region.end = at;
            self.regions.insert(at, upper);
        }
    }
}
