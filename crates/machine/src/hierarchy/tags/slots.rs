//! Sets whose entries stay in their slots: the number of the set times the ways, plus the way.

use super::{EMPTY, Entry, entry, is_of};
use crate::description::Replacement;

#[derive(Debug)]
pub struct Slots {
    replacement: Replacement,
    ways: usize,
    last_set: u64,
    slots: Box<[Slot]>,
    /// Where keys are that were used lately: by the low bits of a key the others, and the slot.
    known: Box<[u64; KNOWN]>,
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
/// Entries of a structure most of whose keys are known without a search.
pub const KNOWN: usize = 1024;
/// What stands where nothing is known: no place has so high an address.
const NOTHING: u64 = u64::MAX;
/// Bits of a slot that is known.
const SLOT_BITS: u32 = 16;

impl Slots {
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Slots {
        let count = sets as usize * ways as usize;
        Slots {
            replacement,
            ways: ways as usize,
            last_set: sets - 1,
            slots: vec![NEVER; count].into(),
            known: Box::new([NOTHING; KNOWN]),
            next: vec![0; sets as usize].into(),
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
        }
    }

    fn first_slot(&self, key: u64) -> usize {
        (key & self.last_set) as usize * self.ways
    }

    #[inline(always)]
    pub fn touch(&mut self, key: u64, is_change: bool) -> bool {
        let known = self.known[key as usize % KNOWN];
        if known >> SLOT_BITS == key >> KNOWN.ilog2() {
            self.touch_slot((known % (1 << SLOT_BITS)) as usize, key, is_change);
            return true;
        }
        self.touch_elsewhere(key, is_change)
    }

    /// Uses what is not known.
    #[inline(never)]
    fn touch_elsewhere(&mut self, key: u64, is_change: bool) -> bool {
        let slot = self.find(key);
        if let Some(slot) = slot {
            self.know(key, slot);
            self.touch_slot(slot, key, is_change);
        }
        slot.is_some()
    }

    /// From now on it is known where a key is, if there is room for that.
    #[inline(always)]
    fn know(&mut self, key: u64, slot: usize) {
        if slot < 1 << SLOT_BITS {
            self.known[key as usize % KNOWN] = key >> KNOWN.ilog2() << SLOT_BITS | slot as u64;
        }
    }

    /// From now on it is not.
    #[inline(always)]
    fn forget(&mut self, key: u64) {
        let known = &mut self.known[key as usize % KNOWN];
        if *known >> SLOT_BITS == key >> KNOWN.ilog2() {
            *known = NOTHING;
        }
    }

    #[inline(always)]
    fn touch_slot(&mut self, slot: usize, key: u64, is_change: bool) {
        self.now += 1;
        let Slot { entry, used } = &mut self.slots[slot];
        *used = self.now;
        *entry |= u64::from(is_change);
        self.turn(slot, key);
    }

    /// The pointer, if there is one, shows another slot than the one that is used.
    #[inline(always)]
    fn turn(&mut self, slot: usize, key: u64) {
        if self.replacement != Replacement::NotLastUsed {
            return;
        }
        let set = (key & self.last_set) as usize;
        if self.next[set] as usize == slot - set * self.ways {
            self.next[set] = (self.next[set] + 1) % self.ways as u32;
        }
    }

    /// Where a key is.
    #[inline]
    pub fn find(&self, key: u64) -> Option<usize> {
        let first = self.first_slot(key);
        let set = &self.slots[first..first + self.ways];
        set.iter().position(|slot| is_of(slot.entry, key)).map(|way| first + way)
    }

    #[inline(always)]
    pub fn fill(&mut self, key: u64, is_changed: bool) -> Entry {
        let slot = self.choose(key);
        self.now += 1;
        let new = Slot { entry: entry(key, is_changed), used: self.now };
        let left = std::mem::replace(&mut self.slots[slot], new);
        self.forget(left.entry >> 1);
        self.know(key, slot);
        self.turn(slot, key);
        left.entry
    }

    /// The slot that a new key takes: an empty one if there is one.
    #[inline(always)]
    fn choose(&mut self, key: u64) -> usize {
        let first = self.first_slot(key);
        let set = &self.slots[first..first + self.ways];
        if self.replacement == Replacement::Lru {
            return first + oldest(set);
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
        self.forget(key);
        Some(std::mem::replace(&mut self.slots[slot], NEVER).entry)
    }
}

/// The first of those that were used longest ago. What is empty was used at 0.
#[inline]
fn oldest(set: &[Slot]) -> usize {
    // Times are far smaller than words, so that the way fits behind them, and nothing has to be guessed.
    let shift = usize::BITS - set.len().leading_zeros();
    let timed = |(way, slot): (usize, &Slot)| slot.used << shift | way as u64;
    let oldest = match set {
        [a, b, c, d, e, f, g, h] => {
            let [a, b, c, d] = [a, b, c, d].map(|slot| slot.used << shift);
            let [e, f, g, h] = [e, f, g, h].map(|slot| slot.used << shift);
            (a.min(b | 1).min((c | 2).min(d | 3))).min((e | 4).min(f | 5).min((g | 6).min(h | 7)))
        }
        _ => set.iter().enumerate().map(timed).min().unwrap_or(0),
    };
    (oldest & ((1 << shift) - 1)) as usize
}

/// The next of a sequence of numbers that look random (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 32
}
