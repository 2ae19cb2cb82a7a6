//! A few keys, of which the one used longest ago makes way for a new one.

use super::tags::{IN_ORDER, MOST_IN_ORDER, last_way, matches, put_first};

/// The keys used last, at most [`MOST`](Recent::MOST).
#[derive(Debug)]
pub struct Recent {
    /// In their places, [`NONE`](Recent::NONE) where none is.
    keys: [[u32; 8]; 2],
    /// Places, four bits each, from that of the key used last.
    order: u64,
    used: usize,
    most: usize,
}

impl Recent {
    /// What no key is.
    pub const NONE: u32 = u32::MAX;
    /// How many there can be.
    pub const MOST: usize = MOST_IN_ORDER;

    /// At most so many, and no more than [`MOST`](Recent::MOST).
    pub fn new(most: usize) -> Recent {
        Recent { keys: [[Recent::NONE; 8]; 2], order: IN_ORDER, used: 0, most: most.min(Recent::MOST) }
    }

    /// How many they may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Those that are there.
    pub fn keys_mut(&mut self) -> &mut [u32] {
        &mut self.keys.as_flattened_mut()[..self.used]
    }

    /// Uses a key if it is there.
    #[inline(always)]
    pub fn touch(&mut self, key: u32) -> bool {
        let [low, high] = [0, 1].map(|half| matches(&self.keys[half], key));
        let places = low | high << 8;
        let is_there = places != 0;
        if is_there {
            put_first(&mut self.order, places.trailing_zeros().into());
        }
        is_there
    }

    /// Uses a key that is not there. Returns what makes way for it; nothing if nothing has to.
    #[inline(always)]
    pub fn enter(&mut self, key: u32) -> Option<u32> {
        if self.most == 0 {
            return Some(key);
        }
        let is_full = self.used == self.most;
        let place = if is_full { last_way(self.order, self.most) } else { self.used };
        self.used += usize::from(!is_full);
        let left = std::mem::replace(&mut self.keys[place / 8][place % 8], key);
        put_first(&mut self.order, place as u64);
        is_full.then_some(left)
    }
}
