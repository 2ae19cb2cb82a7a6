//! MSI: a copy is Modified or Shared.

use super::snooping::SnoopingProtocol;
use crate::memory::coherence::CoherenceState;

/// MSI: each first store to a line needs a bus operation.
pub struct Msi;

impl SnoopingProtocol for Msi {
    const LOADED_ALONE: CoherenceState = CoherenceState::Shared;
    const DIRTY_AFTER_READ: CoherenceState = CoherenceState::Shared;
}
