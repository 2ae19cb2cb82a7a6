//! Sets in the order of their use, so that the least recently used is the last. Mostly a key is the first of its
//! set, and then nothing moves.

use super::{EMPTY, Entry, entry, is_of};

#[derive(Debug)]
pub struct Recency {
    ways: usize,
    last_set: u64,
    /// The sets, one behind the other. Empty entries are the last of a set.
    entries: Box<[Entry]>,
}

impl Recency {
    pub fn new(sets: u64, ways: u32) -> Recency {
        let entries = vec![EMPTY; sets as usize * ways as usize].into();
        Recency { ways: ways as usize, last_set: sets - 1, entries }
    }

    #[inline(always)]
    fn set(&mut self, key: u64) -> &mut [Entry] {
        let first = (key & self.last_set) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    #[inline(always)]
    pub fn touch(&mut self, key: u64, is_change: bool) -> bool {
        let first = &mut self.entries[(key & self.last_set) as usize * self.ways];
        if is_of(*first, key) {
            *first |= u64::from(is_change);
            return true;
        }
        self.ways > 1 && self.touch_other(key, is_change)
    }

    /// Uses what is not the first of its set.
    #[inline(never)]
    fn touch_other(&mut self, key: u64, is_change: bool) -> bool {
        let set = self.set(key);
        let Some(place) = set.iter().position(|&entry| is_of(entry, key)) else { return false };
        let mut moved = set[place] | u64::from(is_change);
        for place in &mut set[..=place] {
            moved = std::mem::replace(place, moved);
        }
        true
    }

    #[inline]
    pub fn fill(&mut self, key: u64, is_changed: bool) -> Entry {
        let mut moved = entry(key, is_changed);
        for place in self.set(key) {
            moved = std::mem::replace(place, moved);
        }
        moved
    }

    pub fn holds(&self, key: u64) -> bool {
        let first = (key & self.last_set) as usize * self.ways;
        self.entries[first..first + self.ways].iter().any(|&entry| is_of(entry, key))
    }

    pub fn remove(&mut self, key: u64) -> Option<Entry> {
        let set = self.set(key);
        let place = set.iter().position(|&entry| is_of(entry, key))?;
        set[place..].rotate_left(1);
        set.last_mut().map(|last| std::mem::replace(last, EMPTY))
    }
}
