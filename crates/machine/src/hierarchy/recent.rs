//! A few keys, of which the one used longest ago makes way for a new one.

use super::tags::{IN_ORDER, MOST_IN_ORDER, last_way, matches, put_first};

/// The keys used last, at most [`MOST`](Recent::MOST), and what belongs to each.
#[derive(Debug)]
pub struct Recent {
    /// The low halves of the keys, where they are compared at once.
    low: [[u32; 8]; 2],
    keys: [u64; Recent::MOST],
    values: [u32; Recent::MOST],
    /// Places, four bits each, from that of the key used last.
    order: u64,
    used: usize,
    most: usize,
}

impl Recent {
    /// How many there can be.
    pub const MOST: usize = MOST_IN_ORDER;

    /// At most so many, and no more than [`MOST`](Recent::MOST).
    pub fn new(most: usize) -> Recent {
        let (low, keys, values) = ([[0; 8]; 2], [0; Recent::MOST], [0; Recent::MOST]);
        Recent { low, keys, values, order: IN_ORDER, used: 0, most: most.min(Recent::MOST) }
    }

    /// How many they may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Uses a key if it is there.
    #[inline(always)]
    pub fn touch(&mut self, key: u64) -> bool {
        let [low, high] = [0, 1].map(|half| matches(&self.low[half], key as u32));
        let mut places = (low | high << 8) & ((1 << self.used) - 1);
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            if self.keys[place] == key {
                put_first(&mut self.order, place as u64);
                return true;
            }
            places &= places - 1;
        }
        false
    }

    /// Uses a key that is not there. Returns the value of what makes way for it; nothing if nothing has to.
    #[inline(always)]
    pub fn enter(&mut self, key: u64, value: u32) -> Option<u32> {
        if self.most == 0 {
            return Some(value);
        }
        let is_full = self.used == self.most;
        let place = if is_full { last_way(self.order, self.most) } else { self.used };
        self.used += usize::from(!is_full);
        self.low[place / 8][place % 8] = key as u32;
        self.keys[place] = key;
        put_first(&mut self.order, place as u64);
        let left = std::mem::replace(&mut self.values[place], value);
        is_full.then_some(left)
    }
}
