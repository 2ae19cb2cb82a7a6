//! The trait of all prefetchers.

use std::ops::Range;

/// What a cache prefetches. Lines are numbered by their addresses.
pub trait Prefetcher {
    /// Whether prefetched lines are filled into the cache; if not, the prefetcher holds them.
    const FILLS_CACHE: bool;

    /// The cache missed a line that the prefetcher does not hold. Returns the lines to prefetch.
    fn miss(&mut self, line: u64) -> Range<u64>;

    /// Whether it holds no lines.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        true
    }

    /// Whether it holds a line.
    #[inline(always)]
    fn holds(&self, _line: u64) -> bool {
        false
    }

    /// The cache missed a line: takes it if the prefetcher holds it. Returns the lines to prefetch then.
    #[inline(always)]
    fn take(&mut self, _line: u64) -> Option<Range<u64>> {
        None
    }
}
