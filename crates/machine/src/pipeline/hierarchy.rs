//! The caches and translation buffers of a machine, as a pipeline sees them.

use super::memory::{MemorySystem, Served};
use crate::hierarchy::{self, Hierarchy};
use crate::{Machine, TranslationBuffer};

/// A machine's caches and translation buffers.
#[derive(Debug)]
pub struct Attached {
    /// The caches, with what they counted.
    pub hierarchy: Hierarchy,
    /// Cycles that misses in the nearest so many translation buffers cost: of instructions, and of data.
    translation: [Vec<u32>; 2],
}

impl Attached {
    /// Those of a machine, empty.
    pub fn new(machine: &Machine) -> Attached {
        let costs = |instructions| {
            let buffers = machine.translation_buffers.iter().filter(|buffer| buffer.holds.has(instructions));
            let mut sum = 0.0;
            let cost = |buffer: &TranslationBuffer| {
                sum += buffer.miss_cycles;
                sum as u32
            };
            std::iter::once(0).chain(buffers.map(cost)).collect()
        };
        Attached { hierarchy: Hierarchy::new(machine), translation: [costs(true), costs(false)] }
    }

    fn translation(&self, side: usize, untranslated: u8) -> u32 {
        self.translation[side].get(untranslated as usize).copied().unwrap_or_default()
    }

    #[cold]
    fn far(&self, side: usize, served: hierarchy::Served) -> Served {
        let hierarchy::Served { cache_misses, level, tlb_misses } = served;
        let is_ahead = side == 0 && cache_misses > level;
        Served { level, is_ahead, translation: self.translation(side, tlb_misses) }
    }
}

impl MemorySystem for Attached {
    fn enter(&mut self, space: u32) {
        self.hierarchy.set_process(space);
    }

    fn forget_counts(&mut self) {
        self.hierarchy.forget_counts();
    }

    #[inline(always)]
    fn fetch(&mut self, address: u64) -> Option<Served> {
        let served = self.hierarchy.fetch(address);
        (!served.is_l1_hit()).then(|| self.far(0, served))
    }

    #[inline(always)]
    fn access(&mut self, address: u64, bytes: u8, is_store: bool) -> Option<Served> {
        let served = self.hierarchy.data(address, bytes, is_store);
        (!served.is_l1_hit()).then(|| self.far(1, served))
    }
}
