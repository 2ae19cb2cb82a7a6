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

    #[inline(never)]
    fn fetch_far(&mut self, address: u64) -> Served {
        let hierarchy::Served { missed, level, untranslated } = self.hierarchy.fetch_far(address);
        Served { level, is_ahead: missed > level, translation: self.translation(0, untranslated) }
    }

    #[inline(never)]
    fn access_far(&mut self, address: u64, is_store: bool) -> Served {
        let served = self.hierarchy.data_far(address, is_store);
        self.of_data(served)
    }

    #[cold]
    #[inline(never)]
    fn access_both(&mut self, address: u64, last: u64, is_store: bool) -> Served {
        let served = self.hierarchy.parts(address, last, is_store);
        self.of_data(served)
    }

    fn of_data(&self, served: hierarchy::Served) -> Served {
        let translation = self.translation(1, served.untranslated);
        Served { level: served.level, is_ahead: false, translation }
    }
}

impl MemorySystem for Attached {
    fn enter(&mut self, space: u32) {
        self.hierarchy.set_space(space);
    }

    fn forget_counts(&mut self) {
        self.hierarchy.forget_counts();
    }

    #[inline(always)]
    fn fetch(&mut self, address: u64) -> Option<Served> {
        if self.hierarchy.fetches_near(address) { None } else { Some(self.fetch_far(address)) }
    }

    #[inline(always)]
    fn access(&mut self, address: u64, bytes: u8, is_store: bool) -> Option<Served> {
        let last = address.wrapping_add(u64::from(bytes) - 1);
        if self.hierarchy.crosses(address, last) {
            Some(self.access_both(address, last, is_store))
        } else if self.hierarchy.accesses_near(address, is_store) {
            None
        } else {
            Some(self.access_far(address, is_store))
        }
    }
}
