//! What was used lately, found without a search.

use super::tags::NOTHING;

const SIZE: usize = 1024;

/// Some of what a cache or translation buffer holds, found by the low bits of its key: what is found here is
/// held, and using it changes nothing but when it was used last, and whether it was changed.
#[derive(Debug)]
pub struct Front {
    recent: [Recent; SIZE],
    /// From an address to a key.
    shift: u32,
}

/// A key, and twice the time at which it was used last, plus 1 if it was changed.
#[derive(Clone, Copy, Debug)]
struct Recent {
    key: u64,
    state: u64,
}

impl Front {
    /// Knowing nothing.
    pub fn new(shift: u32) -> Front {
        Front { recent: [Recent { key: NOTHING, state: 0 }; SIZE], shift }
    }

    /// Of something that has everything.
    pub fn of_everything() -> Front {
        Front { recent: [Recent { key: 0, state: 0 }; SIZE], shift: 63 }
    }

    /// Uses what is at an address, and changes it or not, if it is known.
    #[inline(always)]
    pub fn touch(&mut self, address: u64, now: u64, is_change: bool) -> bool {
        let key = address >> self.shift;
        let recent = &mut self.recent[key as usize % SIZE];
        let is_known = recent.key == key;
        if is_known {
            recent.state = recent.state & 1 | now << 1 | u64::from(is_change);
        }
        is_known
    }

    /// When a key was used last, and whether it was changed.
    pub fn state(&self, key: u64) -> Option<(u64, bool)> {
        let recent = &self.recent[key as usize % SIZE];
        (recent.key == key).then_some((recent.state >> 1, recent.state & 1 != 0))
    }

    /// The key that has to go so that this one can be known.
    pub fn in_the_way_of(&self, key: u64) -> Option<u64> {
        let held = self.recent[key as usize % SIZE].key;
        (held != key && held != NOTHING).then_some(held)
    }

    /// Knows a key from now on, in the place of another.
    pub fn learn(&mut self, key: u64, now: u64, is_changed: bool) {
        self.recent[key as usize % SIZE] = Recent { key, state: now << 1 | u64::from(is_changed) };
    }

    /// A key is held no longer, or its use does change something.
    pub fn forget(&mut self, key: u64) {
        let recent = &mut self.recent[key as usize % SIZE];
        if recent.key == key {
            recent.key = NOTHING;
        }
    }
}
