//! MOESI (P. Sweazey and A. J. Smith, ISCA 1986): a dirty line that others read stays dirty in the cache of its owner.

use super::snooping::SnoopingProtocol;
use crate::memory::coherence::CoherenceState;

/// MOESI: the owner supplies a dirty line to its readers, and memory stays stale.
pub struct Moesi;

impl SnoopingProtocol for Moesi {
    const LOADED_ALONE: CoherenceState = CoherenceState::Exclusive;
    const DIRTY_AFTER_READ: CoherenceState = CoherenceState::Owned;
}
