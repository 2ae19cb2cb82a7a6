//! Snooping protocols, a file each: the states that a line can have in a private cache.

mod mesi;
mod moesi;
mod msi;
mod snooping;

use serde::{Deserialize, Deserializer};

use super::CoherenceState;
use crate::description::choice::{Choice, by_name};
use snooping::SnoopingProtocol;

/// A snooping protocol: the states that a line can have in a private cache, beside Invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Modified and Shared.
    Msi,
    /// Also Exclusive: clean, and in no other cache, so that a store needs no bus operation.
    Mesi,
    /// Also Owned: shared, and dirty with respect to memory; the owner supplies the line.
    Moesi,
}

impl Choice for Protocol {
    const KIND: &'static str = "coherence protocol";
    const NAMES: &'static [(&'static str, Protocol)] =
        &[("msi", Protocol::Msi), ("mesi", Protocol::Mesi), ("moesi", Protocol::Moesi)];
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Protocol, D::Error> {
        by_name(from)
    }
}

impl Protocol {
    /// [`SnoopingProtocol::LOADED_ALONE`].
    pub(super) fn loaded_alone(self) -> CoherenceState {
        match self {
            Protocol::Msi => msi::Msi::LOADED_ALONE,
            Protocol::Mesi => mesi::Mesi::LOADED_ALONE,
            Protocol::Moesi => moesi::Moesi::LOADED_ALONE,
        }
    }

    /// [`SnoopingProtocol::DIRTY_AFTER_READ`].
    pub(super) fn dirty_after_read(self) -> CoherenceState {
        match self {
            Protocol::Msi => msi::Msi::DIRTY_AFTER_READ,
            Protocol::Mesi => mesi::Mesi::DIRTY_AFTER_READ,
            Protocol::Moesi => moesi::Moesi::DIRTY_AFTER_READ,
        }
    }
}
