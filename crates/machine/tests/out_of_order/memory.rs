//! A memory system in which the address says which level serves it.

use pathlength_machine::pipeline::{MemorySystem, ServedBy};

/// Bytes of a line.
pub const LINE: u64 = 32;
/// Cycles of a TLB miss.
const TRANSLATION: u32 = 9;
/// A bit of the addresses of data.
pub const DATA: u64 = 1 << 32;

/// A few lines come from each level. Of data, those of one line may come from different levels, but all or none are in L1: a line that
/// an older instruction brings is no hit before.
pub fn serve(address: u64) -> ServedBy {
    let unit = if address & DATA != 0 { address / 16 } else { address / LINE };
    let number = (unit.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 16;
    let line_number = ((address / LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 16;
    let level = match (line_number, number) {
        (0..10, _) => 0,
        (_, 0..8) => 1,
        (_, 8..13) => 2,
        _ => 3,
    };
    let translation = if unit % 13 == 5 { TRANSLATION } else { 0 };
    ServedBy { level, is_ahead: false, translation, traps: false }
}

/// Memory that serves by [`serve`].
pub struct ByAddress {
    /// Whether a TLB miss traps.
    pub software_refill: bool,
}

impl ByAddress {
    fn served(&self, address: u64) -> ServedBy {
        let served = serve(address);
        ServedBy { traps: self.software_refill && served.translation > 0, ..served }
    }
}

impl MemorySystem for ByAddress {
    fn enter(&mut self, _process: u32) {}
    fn fetch(&mut self, address: u64) -> Option<ServedBy> {
        Some(self.served(address)).filter(|served| *served != ServedBy::default())
    }
    fn access(&mut self, address: u64, _bytes: u8, _is_store: bool) -> Option<ServedBy> {
        Some(self.served(address)).filter(|served| *served != ServedBy::default())
    }
    fn probe(&self, address: u64, _is_fetch: bool) -> ServedBy {
        self.served(address)
    }
}
