//! A small set of keys with LRU replacement.

use super::tags::{INITIAL_ORDER, MAX_ORDERED_WAYS, least_recent_way, matches, move_to_front};

/// The most recently used keys, at most [`MAX_KEYS`](Recent::MAX_KEYS).
#[derive(Debug)]
pub struct Recent {
    /// By slot; [`NONE`](Recent::NONE) where a slot is free.
    keys: [[u32; 8]; 2],
    /// Slots in order of use, four bits each, the most recently used in the lowest bits.
    order: u64,
    used: usize,
    most: usize,
}

impl Recent {
    /// The number of no key.
    pub const NONE: u32 = u32::MAX;
    /// The largest possible size.
    pub const MAX_KEYS: usize = MAX_ORDERED_WAYS;

    /// For at most this number of keys, and no more than [`MAX_KEYS`](Recent::MAX_KEYS).
    pub fn new(most: usize) -> Recent {
        Recent {
            keys: [[Recent::NONE; 8]; 2],
            order: INITIAL_ORDER,
            used: 0,
            most: most.min(Recent::MAX_KEYS),
        }
    }

    /// The size.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The keys present.
    pub fn keys_mut(&mut self) -> &mut [u32] {
        &mut self.keys.as_flattened_mut()[..self.used]
    }

    /// Uses a key if it is present.
    #[inline(always)]
    pub fn touch(&mut self, key: u32) -> bool {
        let [low, high] = [0, 1].map(|half| matches(&self.keys[half], key));
        let mask = low | high << 8;
        let is_there = mask != 0;
        if is_there {
            move_to_front(&mut self.order, mask.trailing_zeros().into());
        }
        is_there
    }

    /// Uses a key that is not present. Returns the evicted key, if one has to leave.
    #[inline(always)]
    pub fn enter(&mut self, key: u32) -> Option<u32> {
        if self.most == 0 {
            return Some(key);
        }
        let is_full = self.used == self.most;
        let way = if is_full { least_recent_way(self.order, self.most) } else { self.used };
        self.used += usize::from(!is_full);
        let evicted = std::mem::replace(&mut self.keys[way / 8][way % 8], key);
        move_to_front(&mut self.order, way as u64);
        is_full.then_some(evicted)
    }
}
