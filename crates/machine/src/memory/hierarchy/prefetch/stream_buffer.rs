//! A stream buffer (N. Jouppi, "Improving Direct-Mapped Cache Performance by the Addition of a Small Fully-Associative Cache and
//! Prefetch Buffers", ISCA 1990).

use std::ops::Range;

use super::prefetcher::Prefetcher;

/// A buffer of successive lines.
#[derive(Debug)]
pub struct StreamBuffer {
    /// The lines that it holds.
    lines: Range<u64>,
    size: u64,
}

impl StreamBuffer {
    pub fn new(size: u32) -> StreamBuffer {
        StreamBuffer { lines: 0..0, size: size.into() }
    }
}

impl Prefetcher for StreamBuffer {
    const FILLS_CACHE: bool = false;

    /// Starts a new stream.
    #[inline(always)]
    fn miss(&mut self, line: u64) -> Range<u64> {
        self.lines = line + 1..line + 1 + self.size;
        self.lines.clone()
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    #[inline(always)]
    fn holds(&self, line: u64) -> bool {
        self.lines.contains(&line)
    }

    /// The lines before it leave the buffer, too, which is filled up again.
    #[inline(always)]
    fn take(&mut self, line: u64) -> Option<Range<u64>> {
        if !self.lines.contains(&line) {
            return None;
        }
        let end = self.lines.end;
        self.lines = line + 1..line + 1 + self.size;
        Some(end..self.lines.end)
    }
}
