//! MESI (M. Papamarcos and J. Patel, ISCA 1984): the only copy of a line is Exclusive when it was loaded.

use super::snooping::SnoopingProtocol;
use crate::memory::coherence::CoherenceState;

/// MESI: a store to an Exclusive line needs no bus operation.
pub struct Mesi;

impl SnoopingProtocol for Mesi {
    const LOADED_ALONE: CoherenceState = CoherenceState::Exclusive;
    const DIRTY_AFTER_READ: CoherenceState = CoherenceState::Shared;
}
