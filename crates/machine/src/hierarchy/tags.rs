//! What a cache or a translation buffer holds: keys (numbers of lines or pages) in sets of ways.

use crate::description::Replacement;

/// The key of an entry that holds nothing; numbers of lines and pages are smaller.
pub const NOTHING: u64 = u64::MAX;

/// Entries of sets, by their slots: the number of the set times the ways, plus the way.
#[derive(Debug)]
pub struct Tags {
    replacement: Replacement,
    ways: usize,
    last_set: u64,
    /// From a key to what tells it from others in its set.
    set_bits: u32,
    keys: Box<[u64]>,
    /// A byte of each key, eight ways in a word, so that most ways need not be looked at.
    hints: Box<[u64]>,
    /// Words of hints that a set has.
    words: usize,
    /// Of each set, the way that is next in turn, or that the pointer shows.
    next: Box<[u32]>,
    random: u64,
    /// When anything was used last.
    last: u64,
}

/// What is marked at each slot.
#[derive(Debug)]
pub struct Marks<'a> {
    /// When it was used last.
    pub used: &'a mut [u64],
    /// Whether it was changed.
    pub changed: &'a mut [bool],
}

/// A key that left its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: u64,
    /// Whether it was changed.
    pub is_changed: bool,
}

impl Tags {
    /// Holding nothing.
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Tags {
        Tags {
            replacement,
            ways: ways as usize,
            last_set: sets - 1,
            set_bits: sets.ilog2(),
            words: ways.div_ceil(8) as usize,
            keys: vec![NOTHING; sets as usize * ways as usize].into(),
            hints: vec![0; sets as usize * ways.div_ceil(8) as usize].into(),
            next: vec![0; sets as usize].into(),
            random: 0x9e37_79b9_7f4a_7c15,
            last: 0,
        }
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.keys.len()
    }

    pub fn replacement(&self) -> Replacement {
        self.replacement
    }

    /// Whether a key can be in one slot only.
    pub fn is_direct(&self) -> bool {
        self.ways == 1
    }

    /// The key at a slot.
    pub fn key(&self, slot: usize) -> u64 {
        self.keys[slot]
    }

    fn first_slot(&self, key: u64) -> usize {
        (key & self.last_set) as usize * self.ways
    }

    /// A byte of what tells a key from others in its set.
    #[inline(always)]
    fn hint(&self, key: u64) -> u64 {
        key >> self.set_bits & 0xff
    }

    /// Where a key is.
    #[inline]
    pub fn find(&self, key: u64) -> Option<usize> {
        let set = (key & self.last_set) as usize;
        let (first, words) = (set * self.ways, self.words);
        if self.ways == 1 {
            return (self.keys[first] == key).then_some(first);
        }
        let keys = &self.keys[first..first + self.ways];
        if self.ways <= 4 {
            // All ways, as nobody could predict where to stop.
            let place = |(way, &held): (usize, &u64)| usize::from(held == key) * (way + 1);
            let found: usize = match *keys {
                [a, b, c] => [a, b, c].iter().enumerate().map(place).sum(),
                _ => keys.iter().enumerate().map(place).sum(),
            };
            return (found > 0).then(|| first + found - 1);
        }
        let wanted = self.hint(key) * ONES;
        for (word, &hints) in self.hints[set * words..(set + 1) * words].iter().enumerate() {
            // Bytes that are 0 get their highest bit, and seldom others.
            let differences = hints ^ wanted;
            let mut zeros = differences.wrapping_sub(ONES) & !differences & ONES << 7;
            while zeros != 0 {
                let way = 8 * word + zeros.trailing_zeros() as usize / 8;
                if keys.get(way) == Some(&key) {
                    return Some(first + way);
                }
                zeros &= zeros - 1;
            }
        }
        None
    }

    /// What is in a slot is used, and changed or not. Returns the slot that a pointer shows from now on, if it
    /// has moved.
    #[inline]
    pub fn touch(&mut self, slot: usize, now: u64, is_change: bool, marks: &mut Marks) -> Option<usize> {
        // What is used at the same time is used one after the other.
        self.last = now.max(self.last + 1);
        marks.used[slot] = self.last;
        marks.changed[slot] |= is_change;
        if self.replacement != Replacement::NotLastUsed {
            return None;
        }
        let set = (self.keys[slot] & self.last_set) as usize;
        let way = slot - set * self.ways;
        if self.next[set] as usize != way {
            return None;
        }
        let next = if way + 1 == self.ways { 0 } else { way + 1 };
        self.next[set] = next as u32;
        Some(set * self.ways + next)
    }

    /// The slot that a new key takes.
    #[inline]
    pub fn choose(&mut self, key: u64, used: &[u64]) -> usize {
        let first = self.first_slot(key);
        if self.ways == 1 {
            return first;
        }
        if self.replacement == Replacement::Lru {
            // What is empty was used at 0.
            return first + oldest(&used[first..first + self.ways]);
        }
        if let Some(empty) = self.keys[first..first + self.ways].iter().position(|&key| key == NOTHING) {
            return first + empty;
        }
        let next = &mut self.next[first / self.ways];
        first
            + match self.replacement {
                Replacement::NotLastUsed => *next as usize,
                Replacement::Fifo => std::mem::replace(next, (*next + 1) % self.ways as u32) as usize,
                Replacement::Random | Replacement::Lru => {
                    (draw(&mut self.random) % self.ways as u64) as usize
                }
            }
    }

    /// Puts a key, which is not there, into a slot, to be used at once. Returns what was there.
    #[inline]
    pub fn replace(&mut self, slot: usize, key: u64, marks: &mut Marks) -> Left {
        let is_changed = std::mem::take(&mut marks.changed[slot]);
        let set = (key & self.last_set) as usize;
        let way = slot - set * self.ways;
        let (hint, shift) = (self.hint(key), 8 * (way % 8));
        let hints = &mut self.hints[set * self.words + way / 8];
        *hints = *hints & !(0xff << shift) | hint << shift;
        Left { key: std::mem::replace(&mut self.keys[slot], key), is_changed }
    }

    /// Takes a key out. Returns whether it was changed, if it was there.
    pub fn remove(&mut self, key: u64, marks: &mut Marks) -> Option<bool> {
        let slot = self.find(key)?;
        self.keys[slot] = NOTHING;
        marks.used[slot] = 0;
        Some(std::mem::take(&mut marks.changed[slot]))
    }
}

/// Each byte is 1.
const ONES: u64 = u64::MAX / 0xff;

/// The first of those that were used longest ago.
#[inline]
fn oldest(used: &[u64]) -> usize {
    // Times are far smaller than words, so that the way fits behind them, and nothing has to be guessed.
    let shift = usize::BITS - used.len().leading_zeros();
    let timed = |way: usize, time: u64| time << shift | way as u64;
    let (eights, rest) = used.as_chunks::<8>();
    let mut oldest = u64::MAX;
    for (eight, &[a, b, c, d, e, f, g, h]) in eights.iter().enumerate() {
        let way = 8 * eight;
        let first = timed(way, a).min(timed(way + 1, b)).min(timed(way + 2, c).min(timed(way + 3, d)));
        let second = timed(way + 4, e).min(timed(way + 5, f)).min(timed(way + 6, g).min(timed(way + 7, h)));
        oldest = oldest.min(first.min(second));
    }
    for (way, &time) in rest.iter().enumerate() {
        oldest = oldest.min(timed(8 * eights.len() + way, time));
    }
    (oldest & ((1 << shift) - 1)) as usize
}

/// The next of a sequence of numbers that look random (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 32
}
