//! Prefetchers, a file each: which lines a cache prefetches when it misses, and where they wait.

mod next_lines;
mod prefetcher;
mod stream_buffer;

use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::description::choice::{self, Choice};
use next_lines::NextLines;
use prefetcher::Prefetcher;
use stream_buffer::StreamBuffer;

/// Prefetching, as a machine's file describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// On a miss, the next lines are prefetched into the cache.
    NextLines(u32),
    /// On a miss, the next lines are prefetched into a stream buffer of this many lines (Jouppi, 1990). A miss that
    /// hits there moves its line into the cache, and one more line is prefetched; any other miss starts a new stream.
    Stream(u32),
}

/// A prefetcher of a number of lines.
impl Choice for fn(u32) -> Prefetch {
    const KIND: &'static str = "prefetcher";
    const NAMES: &'static [(&'static str, fn(u32) -> Prefetch)] =
        &[("stream", Prefetch::Stream), ("next-lines", Prefetch::NextLines)];
}

/// As `{ stream = 4 }` or `{ next-lines = 2 }`.
impl<'de> Deserialize<'de> for Prefetch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Prefetch, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        let lines = |value: &toml::Value| value.as_integer().and_then(|lines| u32::try_from(lines).ok());
        let only = value.as_table().filter(|table| table.len() == 1).and_then(|table| table.iter().next());
        let prefetch = only.and_then(|(name, value)| {
            let prefetcher = choice::find::<fn(u32) -> Prefetch>(name)?;
            lines(value).map(prefetcher)
        });
        prefetch.ok_or_else(|| {
            let names = <fn(u32) -> Prefetch>::NAMES.iter().map(|(name, _)| format!("{{ {name} = LINES }}"));
            let names = names.collect::<Vec<_>>().join(" or ");
            D::Error::custom(format!("{value} is no prefetching: give {names}"))
        })
    }
}

/// The prefetcher of a cache.
#[derive(Debug)]
pub enum PrefetcherState {
    None,
    NextLines(NextLines),
    Stream(StreamBuffer),
}

/// Evaluates an expression with the prefetcher of a cache, statically dispatched; otherwise another one.
macro_rules! with_prefetcher {
    ($state:expr, $prefetcher:ident => $result:expr, $otherwise:expr) => {
        match $state {
            PrefetcherState::None => $otherwise,
            PrefetcherState::NextLines($prefetcher) => $result,
            PrefetcherState::Stream($prefetcher) => $result,
        }
    };
}

impl PrefetcherState {
    pub fn new(prefetch: Option<Prefetch>) -> PrefetcherState {
        match prefetch {
            None => PrefetcherState::None,
            Some(Prefetch::NextLines(lines)) => PrefetcherState::NextLines(NextLines::new(lines)),
            Some(Prefetch::Stream(lines)) => PrefetcherState::Stream(StreamBuffer::new(lines)),
        }
    }

    /// [`Prefetcher::miss`], and [`Prefetcher::FILLS_CACHE`].
    #[inline(always)]
    pub fn miss(&mut self, line: u64) -> (Range<u64>, bool) {
        fn of<P: Prefetcher>(prefetcher: &mut P, line: u64) -> (Range<u64>, bool) {
            (prefetcher.miss(line), P::FILLS_CACHE)
        }
        with_prefetcher!(self, prefetcher => of(prefetcher, line), (0..0, false))
    }

    /// [`Prefetcher::is_empty`].
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        with_prefetcher!(self, prefetcher => prefetcher.is_empty(), true)
    }

    /// [`Prefetcher::holds`].
    pub fn holds(&self, line: u64) -> bool {
        with_prefetcher!(self, prefetcher => prefetcher.holds(line), false)
    }

    /// [`Prefetcher::take`].
    #[inline(always)]
    pub fn take(&mut self, line: u64) -> Option<Range<u64>> {
        with_prefetcher!(self, prefetcher => prefetcher.take(line), None)
    }
}
