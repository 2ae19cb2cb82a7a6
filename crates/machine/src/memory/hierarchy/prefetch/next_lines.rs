//! Next-line prefetching.

use std::ops::Range;

use super::prefetcher::Prefetcher;

/// Prefetches this number of lines after one that missed.
#[derive(Debug)]
pub struct NextLines(u64);

impl NextLines {
    pub fn new(lines: u32) -> NextLines {
        NextLines(lines.into())
    }
}

impl Prefetcher for NextLines {
    const FILLS_CACHE: bool = true;

    #[inline(always)]
    fn miss(&mut self, line: u64) -> Range<u64> {
        line + 1..line + 1 + self.0
    }
}
