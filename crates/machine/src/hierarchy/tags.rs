//! What a cache or a translation buffer holds: keys (numbers of lines or pages) in sets of ways.

use super::front::Front;
use crate::description::Replacement;

/// The key of an entry that holds nothing; numbers of lines and pages are smaller.
pub const NOTHING: u64 = u64::MAX;

/// The entries. A front, if there is one, knows some of them better: when they were used last, and whether
/// they were changed.
#[derive(Debug)]
pub struct Tags {
    replacement: Replacement,
    ways: usize,
    last_set: u64,
    keys: Box<[u64]>,
    /// When each entry was used last.
    used: Box<[u64]>,
    /// Whether each was changed.
    changed: Box<[bool]>,
    /// Of each set, the way that is next in turn, or that the pointer shows.
    next: Box<[u32]>,
    random: u64,
    /// When anything was used last.
    last: u64,
}

/// What was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its key.
    pub key: u64,
    /// Whether it was changed.
    pub is_changed: bool,
}

impl Tags {
    /// Holding nothing.
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Tags {
        let entries = sets as usize * ways as usize;
        Tags {
            replacement,
            ways: ways as usize,
            last_set: sets - 1,
            keys: vec![NOTHING; entries].into(),
            used: vec![0; entries].into(),
            changed: vec![false; entries].into(),
            next: vec![0; sets as usize].into(),
            random: 0x9e37_79b9_7f4a_7c15,
            last: 0,
        }
    }

    fn first_slot(&self, key: u64) -> usize {
        (key & self.last_set) as usize * self.ways
    }

    fn find(&self, key: u64) -> Option<usize> {
        let first = self.first_slot(key);
        let way = self.keys[first..first + self.ways].iter().position(|&held| held == key)?;
        Some(first + way)
    }

    /// Whether a key is there.
    pub fn holds(&self, key: u64) -> bool {
        self.find(key).is_some()
    }

    /// Uses a key, if it is there, and marks it as changed if it is.
    pub fn touch(&mut self, key: u64, now: u64, is_change: bool, front: Option<&mut Front>) -> bool {
        let Some(slot) = self.find(key) else { return false };
        self.changed[slot] |= is_change;
        self.touch_slot(slot, now, front);
        true
    }

    fn touch_slot(&mut self, slot: usize, now: u64, mut front: Option<&mut Front>) {
        // What is used at the same time is used one after the other.
        let now = now.max(self.last + 1);
        self.last = now;
        self.used[slot] = now;
        if self.replacement == Replacement::NotLastUsed {
            self.move_pointer(slot, front.as_deref_mut());
        }
        let Some(front) = front else { return };
        let key = self.keys[slot];
        if let Some(other) = front.in_the_way_of(key) {
            self.note(other, front);
        }
        front.learn(key, now, self.changed[slot]);
    }

    /// Moves the pointer on if it shows this entry. The front forgets what it shows then, whose use does
    /// more than the front.
    fn move_pointer(&mut self, slot: usize, front: Option<&mut Front>) {
        let (set, way) = (slot / self.ways, slot % self.ways);
        if self.next[set] as usize != way {
            return;
        }
        let next = (way + 1) % self.ways;
        self.next[set] = next as u32;
        let shown = self.keys[set * self.ways + next];
        if let Some(front) = front {
            self.note(shown, front);
            front.forget(shown);
        }
    }

    /// Learns what the front knows of a key.
    fn note(&mut self, key: u64, front: &Front) {
        if let Some((used, is_changed)) = front.state(key)
            && let Some(slot) = self.find(key)
        {
            self.used[slot] = used;
            self.changed[slot] |= is_changed;
        }
    }

    /// Puts a key, which is not there, into the place of another, or of nothing. Returns what was there.
    pub fn fill(
        &mut self,
        key: u64,
        now: u64,
        is_change: bool,
        mut front: Option<&mut Front>,
    ) -> Option<Left> {
        let first = self.first_slot(key);
        if let Some(front) = front.as_deref() {
            for slot in first..first + self.ways {
                if let Some((used, is_changed)) = front.state(self.keys[slot]) {
                    self.used[slot] = used;
                    self.changed[slot] |= is_changed;
                }
            }
        }
        let slot = self.choose(first);
        let left = Left { key: self.keys[slot], is_changed: self.changed[slot] };
        if let Some(front) = front.as_deref_mut() {
            front.forget(left.key);
        }
        self.keys[slot] = key;
        self.changed[slot] = is_change;
        self.touch_slot(slot, now, front);
        (left.key != NOTHING).then_some(left)
    }

    fn choose(&mut self, first: usize) -> usize {
        let ways = first..first + self.ways;
        if let Some(empty) = self.keys[ways.clone()].iter().position(|&held| held == NOTHING) {
            return first + empty;
        }
        let next = &mut self.next[first / self.ways];
        first
            + match self.replacement {
                _ if self.ways == 1 => 0,
                Replacement::Lru => oldest(&self.used[ways]),
                Replacement::NotLastUsed => *next as usize,
                Replacement::Fifo => std::mem::replace(next, (*next + 1) % self.ways as u32) as usize,
                Replacement::Random => (draw(&mut self.random) % self.ways as u64) as usize,
            }
    }

    /// Takes a key out. Returns whether it was changed, if it was there.
    pub fn remove(&mut self, key: u64, front: Option<&mut Front>) -> Option<bool> {
        let slot = self.find(key)?;
        if let Some(front) = front {
            self.note(key, front);
            front.forget(key);
        }
        self.keys[slot] = NOTHING;
        Some(std::mem::take(&mut self.changed[slot]))
    }
}

fn oldest(used: &[u64]) -> usize {
    let (way, _) = used.iter().enumerate().min_by_key(|&(_, time)| time).expect("a set has ways");
    way
}

/// The next of a sequence of numbers that look random (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 32
}
