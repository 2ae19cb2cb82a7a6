//! The memory of a machine: caches and TLBs of one processor, coherent caches of several, and miss-ratio curves of all sizes.

pub(crate) mod block_template;
pub(crate) mod caches;
pub(crate) mod coherence;
mod growing_lists;
pub(crate) mod hierarchy;
mod line_numbering;
pub(crate) mod mrc;
