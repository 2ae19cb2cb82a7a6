//! Memory that is told by the address who serves it.

use pathlength_machine::pipeline::{MemorySystem, Served};

/// Bits 36 to 38 of an address are the level, bit 39 is set if its translation is missing.
pub struct ByAddress;

pub const LEVEL_1: u64 = 1 << 36;
pub const LEVEL_2: u64 = 2 << 36;
pub const LEVEL_3: u64 = 3 << 36;
pub const UNTRANSLATED: u64 = 1 << 39;

/// Cycles that a missing translation costs.
pub const TRANSLATION: u32 = 30;

pub fn serve(address: u64) -> Served {
    Served {
        level: (address >> 36) as u8 & 7,
        is_ahead: false,
        translation: if address & UNTRANSLATED != 0 { TRANSLATION } else { 0 },
    }
}

impl MemorySystem for ByAddress {
    fn enter(&mut self, _space: u32) {}
    fn fetch(&mut self, address: u64) -> Option<Served> {
        Some(serve(address))
    }
    fn access(&mut self, address: u64, _bytes: u8, _is_store: bool) -> Option<Served> {
        Some(serve(address))
    }
}
