//! Requests to caches, and where they arrive.

/// A request to a cache or a TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Instructions, by the processor.
    Fetch,
    /// Data to read, by the processor.
    Load,
    /// Data to write, by the processor.
    Store,
    /// A line that a cache closer to the processor prefetches.
    Prefetch,
    /// Data to write, by a cache closer to the processor: stores written through, and dirty lines written
    /// back.
    Write,
}

impl Request {
    /// How many kinds there are.
    pub const COUNT: usize = 5;
    /// Kinds of requests that the processor itself makes: the first ones.
    pub const OF_PROCESSOR: usize = 3;
    /// All kinds, in order.
    pub const ALL: [Request; Request::COUNT] =
        [Request::Fetch, Request::Load, Request::Store, Request::Prefetch, Request::Write];

    pub(super) fn is_of_processor(self) -> bool {
        (self as usize) < Request::OF_PROCESSOR
    }
}

/// A cache as a level on the path of a side.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) side: usize,
    /// Its depth: the number of caches before it.
    pub(super) depth: usize,
    pub(super) index: usize,
}
