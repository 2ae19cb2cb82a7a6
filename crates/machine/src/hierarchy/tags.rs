//! What a cache or a translation buffer holds: keys (numbers of lines or pages) in sets of ways.
//!
//! Using twice in a row what is there is using it once, whatever the replacement.

mod recency;
mod slots;

use crate::description::Replacement;
use recency::Recency;
use slots::{KNOWN, Slots};

/// An entry: a key, which has less than 63 bits, and whether it was changed in the lowest bit.
type Entry = u64;

/// The entry that holds nothing.
const EMPTY: Entry = u64::MAX;

/// Larger sets take longer to put in order than to compare the times of their use.
const MOST_IN_ORDER: u32 = 16;

/// What a structure holds.
#[derive(Debug)]
pub enum Tags {
    /// Sets in the order of their use.
    Recency(Recency),
    /// Sets whose entries stay where they are.
    Slots(Slots),
}

/// A key that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: u64,
    /// Whether it was changed.
    pub is_changed: bool,
}

impl Tags {
    /// Holding nothing.
    pub fn new(sets: u64, ways: u32, replacement: Replacement) -> Tags {
        let is_large = sets * u64::from(ways) > KNOWN as u64;
        let is_ordered = ways == 1 || replacement == Replacement::Lru && ways <= MOST_IN_ORDER;
        if is_large && is_ordered {
            Tags::Recency(Recency::new(sets, ways))
        } else {
            Tags::Slots(Slots::new(sets, ways, replacement))
        }
    }

    /// Those of nothing.
    pub fn none() -> Tags {
        Tags::new(1, 1, Replacement::Lru)
    }

    /// Uses a key, and changes it or not, if it is there. Returns whether it is.
    #[inline(always)]
    pub fn touch(&mut self, key: u64, is_change: bool) -> bool {
        match self {
            Tags::Recency(sets) => sets.touch(key, is_change),
            Tags::Slots(slots) => slots.touch(key, is_change),
        }
    }

    /// Brings in and uses a key, which is not there. Returns what has to leave.
    #[inline(always)]
    pub fn fill(&mut self, key: u64, is_changed: bool) -> Option<Left> {
        let left = match self {
            Tags::Recency(sets) => sets.fill(key, is_changed),
            Tags::Slots(slots) => slots.fill(key, is_changed),
        };
        (left != EMPTY).then_some(Left { key: left >> 1, is_changed: is_changed_in(left) })
    }

    /// Whether a key is there.
    pub fn holds(&self, key: u64) -> bool {
        match self {
            Tags::Recency(sets) => sets.holds(key),
            Tags::Slots(slots) => slots.find(key).is_some(),
        }
    }

    /// Takes a key out. Returns whether it was changed, if it was there.
    pub fn remove(&mut self, key: u64) -> Option<bool> {
        match self {
            Tags::Recency(sets) => sets.remove(key),
            Tags::Slots(slots) => slots.remove(key),
        }
        .map(is_changed_in)
    }
}

#[inline(always)]
fn entry(key: u64, is_changed: bool) -> Entry {
    key << 1 | u64::from(is_changed)
}

#[inline(always)]
fn is_of(entry: Entry, key: u64) -> bool {
    entry >> 1 == key
}

fn is_changed_in(entry: Entry) -> bool {
    entry & 1 != 0
}
