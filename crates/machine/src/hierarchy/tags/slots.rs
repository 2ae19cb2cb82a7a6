//! Sets whose entries stay in their slots: the number of the set times the ways, plus the way.

use super::{EMPTY, Entry, entry, is_of};
use crate::description::Replacement;

#[derive(Debug)]
pub struct Slots {
    replacement: Replacement,
    ways: usize,
    last_set: u64,
    slots: Box<[Slot]>,
    /// Where a key is, perhaps, by the low bits of the key.
    guesses: Box<[u32; GUESSES]>,
    /// Of each set, the way that is next in turn, or that the pointer shows.
    next: Box<[u32]>,
    random: u64,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Entry,
    /// When it was used last.
    used: u64,
}

const NEVER: Slot = Slot { entry: EMPTY, used: 0 };
/// Entries of a structure whose keys are mostly where they are guessed to be.
pub const GUESSES: usize = 1024;

impl Slots {
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Slots {
        let count = sets as usize * ways as usize;
        Slots {
            replacement,
            ways: ways as usize,
            last_set: sets - 1,
            slots: vec![NEVER; count].into(),
            guesses: Box::new([0; GUESSES]),
            next: vec![0; sets as usize].into(),
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
        }
    }

    fn first_slot(&self, key: u64) -> usize {
        (key & self.last_set) as usize * self.ways
    }

    #[inline(always)]
    fn guess(&mut self, key: u64) -> &mut u32 {
        &mut self.guesses[key as usize % GUESSES]
    }

    #[inline(always)]
    pub fn touch(&mut self, key: u64, is_change: bool) -> bool {
        let guess = *self.guess(key) as usize;
        if !is_of(self.slots[guess].entry, key) {
            return self.touch_elsewhere(key, is_change);
        }
        self.touch_slot(guess, key, is_change);
        true
    }

    #[inline(never)]
    fn touch_elsewhere(&mut self, key: u64, is_change: bool) -> bool {
        let Some(slot) = self.find(key) else { return false };
        *self.guess(key) = slot as u32;
        self.touch_slot(slot, key, is_change);
        true
    }

    #[inline(always)]
    fn touch_slot(&mut self, slot: usize, key: u64, is_change: bool) {
        self.now += 1;
        let Slot { entry, used } = &mut self.slots[slot];
        *used = self.now;
        *entry |= u64::from(is_change);
        if self.replacement == Replacement::NotLastUsed {
            let way = (slot - self.first_slot(key)) as u32;
            let next = &mut self.next[(key & self.last_set) as usize];
            if *next == way {
                *next = if way as usize + 1 == self.ways { 0 } else { way + 1 };
            }
        }
    }

    /// Where a key is.
    #[inline]
    pub fn find(&self, key: u64) -> Option<usize> {
        let first = self.first_slot(key);
        let set = &self.slots[first..first + self.ways];
        set.iter().position(|slot| is_of(slot.entry, key)).map(|way| first + way)
    }

    pub fn fill(&mut self, key: u64, is_changed: bool) -> Entry {
        let slot = self.choose(key);
        *self.guess(key) = slot as u32;
        let left = std::mem::replace(&mut self.slots[slot].entry, entry(key, is_changed));
        self.touch_slot(slot, key, false);
        left
    }

    /// The slot that a new key takes: an empty one if there is one.
    fn choose(&mut self, key: u64) -> usize {
        let first = self.first_slot(key);
        let set = &self.slots[first..first + self.ways];
        if self.replacement == Replacement::Lru {
            // What is empty was used at 0. Times are far smaller than words, so that the way fits behind them,
            // and nothing has to be guessed.
            let way_bits = usize::BITS - self.ways.leading_zeros();
            let timed = set.iter().enumerate().map(|(way, slot)| slot.used << way_bits | way as u64);
            return first + (timed.min().unwrap_or(0) & ((1 << way_bits) - 1)) as usize;
        }
        if let Some(empty) = set.iter().position(|slot| slot.entry == EMPTY) {
            return first + empty;
        }
        let next = &mut self.next[(key & self.last_set) as usize];
        let way = match self.replacement {
            Replacement::NotLastUsed | Replacement::Lru => *next,
            Replacement::Fifo => std::mem::replace(next, (*next + 1) % self.ways as u32),
            Replacement::Random => (draw(&mut self.random) % self.ways as u64) as u32,
        };
        first + way as usize
    }

    pub fn remove(&mut self, key: u64) -> Option<Entry> {
        let slot = self.find(key)?;
        Some(std::mem::replace(&mut self.slots[slot], NEVER).entry)
    }
}

/// The next of a sequence of numbers that look random (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 32
}
