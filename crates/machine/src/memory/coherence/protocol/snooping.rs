//! The trait of all snooping protocols.

use crate::memory::coherence::CoherenceState;

/// The decisions in which write-invalidate protocols differ.
pub trait SnoopingProtocol {
    /// The state of a line that a load has missed and no other cache has.
    const LOADED_ALONE: CoherenceState;

    /// The state of a dirty line after another processor has read it: Owned, or Shared once it is written to memory.
    const DIRTY_AFTER_READ: CoherenceState;
}
