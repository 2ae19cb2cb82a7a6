//! What of an address space is mapped, as a list: no memory of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::layout::{ADDRESS_SPACE, MAP_BASE, PAGE, Protection};

/// What backs a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Zeros to begin with.
    Anonymous,
    /// A file, from an offset on.
    File {
        /// The file's path on the host.
        path: Arc<PathBuf>,
        /// Where in the file the region begins, in bytes.
        offset: u64,
    },
    /// A name that `/proc/self/maps` shows: `[stack]`, `[heap]`.
    Named(&'static str),
}

/// A run of pages mapped alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address behind it.
    pub end: u64,
    /// `PROT_*` bits.
    pub protection: Protection,
    /// True for MAP_SHARED.
    pub shared: bool,
    /// What is in it.
    pub backing: Backing,
}

impl Region {
    fn executable(&self) -> bool {
        self.protection & libc::PROT_EXEC != 0
    }
}

/// Every region by its first address. They do not overlap.
#[derive(Debug)]
pub struct Regions {
    regions: BTreeMap<u64, Region>,
    /// Where the last search for a free range ended.
    next: u64,
}

impl Regions {
    /// Nothing is mapped.
    pub fn new() -> Regions {
        Regions { regions: BTreeMap::new(), next: MAP_BASE }
    }

    /// The regions in ascending order: start and region.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Region)> {
        self.regions.iter().map(|(&start, region)| (start, region))
    }

    /// The region that holds `address`: start and region.
    pub fn at(&self, address: u64) -> Option<(u64, &Region)> {
        self.regions.range(..=address).next_back().map(|(&s, r)| (s, r)).filter(|(_, r)| address < r.end)
    }

    /// True if something is mapped throughout.
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

    /// A free range of `bytes` (a multiple of [`PAGE`]): at `hint` if it is free there and not 0,
    /// else the first at or above the place where the last search ended.
    pub fn find_free(&mut self, hint: u64, bytes: u64) -> Option<u64> {
        if hint != 0 && hint.is_multiple_of(PAGE) && self.is_free(hint, bytes) {
            if hint == self.next {
                self.next = hint + bytes;
            }
            return Some(hint);
        }
        let found = self.search(self.next, bytes).or_else(|| self.search(MAP_BASE, bytes))?;
        self.next = found + bytes;
        Some(found)
    }

    fn search(&self, from: u64, bytes: u64) -> Option<u64> {
        let mut at = from;
        while let Some(end) = at.checked_add(bytes).filter(|&end| end <= ADDRESS_SPACE) {
            match self.regions.range(..end).next_back() {
                Some((_, region)) if region.end > at => at = region.end.next_multiple_of(PAGE),
                _ => return Some(at),
            }
        }
        None
    }

    /// True if nothing is mapped in the range and it lies in the address space, above page 0.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        start >= PAGE
            && end <= ADDRESS_SPACE
            && self.regions.range(..end).next_back().is_none_or(|(_, region)| region.end <= start)
    }

    /// Puts a region in the place of what was there; true if code came or went.
    pub fn insert(&mut self, start: u64, region: Region) -> bool {
        let code = self.remove(start, region.end) | region.executable();
        self.regions.insert(start, region);
        code
    }

    /// Forgets every region, and part of a region, between `start` and `end`; true if code went.
    pub fn remove(&mut self, start: u64, end: u64) -> bool {
        self.split(start);
        self.split(end);
        let gone: Vec<u64> = self.regions.range(start..end).map(|(&start, _)| start).collect();
        let gone = gone.iter().filter_map(|start| self.regions.remove(start));
        gone.fold(false, |code, region| code | region.executable())
    }

    /// Changes the protection between `start` and `end`; true if code came or went.
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

    /// The region that would begin at `start` if what is mapped there were split.
    pub fn rest_at(&self, start: u64) -> Option<Region> {
        let (first, region) = self.at(start)?;
        let mut region = region.clone();
        if let Backing::File { offset, .. } = &mut region.backing {
            *offset += start - first;
        }
        Some(region)
    }

    /// Makes `at` a border between regions, if it lies inside one.
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
