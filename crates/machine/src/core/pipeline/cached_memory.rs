//! The memory system of a machine with caches and TLBs.

use super::memory::{MemorySystem, ServedBy};
use crate::memory::hierarchy::{self, Hierarchy};
use crate::{Machine, TranslationBuffer};

/// The caches and TLBs of a machine.
#[derive(Debug)]
pub struct CachedMemory {
    /// The hierarchy, with its counts.
    pub hierarchy: Hierarchy,
    /// Cycles by the number of TLBs that missed: of instructions, and of data.
    translation: [Vec<u32>; 2],
    /// The number of TLBs that miss from which on software fills one of them: of instructions, and of data.
    first_trap: [u8; 2],
}

impl CachedMemory {
    /// Those of a machine, empty.
    pub fn new(machine: &Machine) -> CachedMemory {
        let costs = |instructions| {
            let buffers = machine.translation_buffers.iter().filter(|buffer| buffer.holds.has(instructions));
            let mut totals = 0.0;
            let cost = |buffer: &TranslationBuffer| {
                totals += buffer.miss_cycles;
                totals as u32
            };
            std::iter::once(0).chain(buffers.map(cost)).collect()
        };
        let first_trap = |instructions| {
            let mut buffers =
                machine.translation_buffers.iter().filter(|buffer| buffer.holds.has(instructions));
            buffers.position(|buffer| buffer.software_refill).map_or(u8::MAX, |index| index as u8 + 1)
        };
        CachedMemory {
            hierarchy: Hierarchy::new(machine),
            translation: [costs(true), costs(false)],
            first_trap: [first_trap(true), first_trap(false)],
        }
    }

    #[cold]
    fn misses(&self, side: usize, served: hierarchy::Served) -> ServedBy {
        let hierarchy::Served { cache_misses, level, tlb_misses } = served;
        let is_ahead = side == 0 && cache_misses > level;
        let translation = self.translation[side].get(tlb_misses as usize).copied().unwrap_or_default();
        ServedBy { level, is_ahead, translation, traps: tlb_misses >= self.first_trap[side] }
    }
}

impl MemorySystem for CachedMemory {
    fn enter(&mut self, process: u32) {
        self.hierarchy.set_process(process);
    }

    fn probe(&self, address: u64, is_fetch: bool) -> ServedBy {
        let served = self.hierarchy.peek(address, is_fetch);
        if served.is_l1_hit() { ServedBy::default() } else { self.misses(usize::from(!is_fetch), served) }
    }

    fn reset_counts(&mut self) {
        self.hierarchy.reset_counts();
    }

    #[inline(always)]
    fn fetch(&mut self, address: u64) -> Option<ServedBy> {
        let served = self.hierarchy.fetch(address);
        (!served.is_l1_hit()).then(|| self.misses(0, served))
    }

    #[inline(always)]
    fn access(&mut self, address: u64, bytes: u8, is_store: bool) -> Option<ServedBy> {
        let served = self.hierarchy.data(address, bytes, is_store);
        (!served.is_l1_hit()).then(|| self.misses(1, served))
    }
}
