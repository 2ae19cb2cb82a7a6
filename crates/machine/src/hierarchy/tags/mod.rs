//! What a cache or a translation buffer holds: keys (numbers of lines or pages) in sets of ways. A key stays in its
//! slot: the number of its set times the ways, plus its way.
//!
//! Using twice in a row what is there is using it once, whatever the replacement.

mod matching;
mod order;

use trace::Words;

use crate::description::Replacement;
pub use matching::matches;
pub use order::{IN_ORDER, MOST_IN_ORDER, last_way, put_first};
use order::{Order, oldest};

/// What is in a slot: a key, which has less than 63 bits, and whether it was changed in the lowest bit.
type Entry = u64;

/// The entry that holds nothing.
const EMPTY: Entry = u64::MAX;

/// The tag of keys that have none, being too long, and of nothing.
const LONG: u32 = u32::MAX;

/// Tags that are compared at once where sets have no more ways.
const FEW: usize = 4;

/// What a structure holds.
#[derive(Debug)]
pub struct Tags {
    ways: usize,
    last_set: u64,
    set_bits: u32,
    /// What distinguishes each entry's key from others of the set: a search looks at these only. There are none where sets
    /// have one entry, and [`FEW`] of each set that has no more.
    tags: Box<[u32]>,
    /// Tags of a set.
    stride: usize,
    entries: Words,
    order: Order,
    /// When each slot was used, 0 if it is empty. There are no times if nobody needs them.
    times: Words,
    /// The key that [`Tags::touch`] used last, if no other was brought in since: using it again changes nothing.
    last: u64,
}

/// A key that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: u64,
    /// Whether it was changed.
    pub is_changed: bool,
}

impl Left {
    /// What an entry holds.
    #[inline(always)]
    fn of(entry: Entry) -> Option<Left> {
        (entry != EMPTY).then_some(Left { key: entry >> 1, is_changed: entry & 1 != 0 })
    }
}

/// A use of a key that is there in any case afterwards.
pub struct Use {
    /// Where it is.
    pub slot: usize,
    /// If it was not there: when what was in its place was used last, and that, if anything was.
    pub replaced: Option<(u64, Option<Left>)>,
}

impl Tags {
    /// Holding nothing. `has_times`: when keys are used can be noted ([`Tags::note`]).
    pub fn new(sets: u64, ways: u32, replacement: Replacement, has_times: bool) -> Tags {
        let (sets_of_keys, ways) = (sets as usize, ways as usize);
        let slots = sets_of_keys * ways;
        let order = Order::new(sets_of_keys, ways, replacement, has_times);
        let has_times = has_times || matches!(order, Order::Times);
        let times = Words::new(if has_times { slots } else { 0 });
        let stride = match ways {
            1 => 0,
            2..=FEW => FEW,
            _ => ways,
        };
        Tags {
            ways,
            last_set: sets - 1,
            set_bits: sets.ilog2(),
            tags: vec![LONG; sets_of_keys * stride].into(),
            stride,
            entries: entries(Words::new(slots)),
            order,
            times,
            last: u64::MAX,
        }
    }

    /// The same, before anything is used, with its entries and times in these words: one for each slot.
    pub fn at(self, in_words: Words, times: Words) -> Tags {
        Tags { entries: entries(in_words), times, ..self }
    }

    /// The entries, and the times.
    pub fn words(&self) -> (&Words, &Words) {
        (&self.entries, &self.times)
    }

    /// Those of nothing.
    pub fn none() -> Tags {
        Tags::new(1, 1, Replacement::Lru, true)
    }

    /// How many keys there may be.
    pub fn slots(&self) -> usize {
        self.entries.len()
    }

    /// Uses a key, and changes it or not, if it is there. Returns whether it is. Times grow from use to use.
    #[inline(always)]
    pub fn touch(&mut self, key: u64, is_change: bool, now: u64) -> bool {
        if key == self.last && !is_change {
            return true;
        }
        let (tag, set) = (self.tag(key), self.set(key));
        if let Order::Ways(orders) = &mut self.order
            && self.ways == MOST_IN_ORDER
            && let Some(tag) = tag
        {
            // Mostly so of large caches.
            let ways = ways_with(&self.tags.as_chunks::<MOST_IN_ORDER>().0[set], tag);
            if ways == 0 {
                return false;
            }
            let way = ways.trailing_zeros();
            put_first(&mut orders[set], way.into());
            self.entries[set * MOST_IN_ORDER + way as usize] |= u64::from(is_change);
            self.last = key;
            return true;
        }
        let slot = self.find(key);
        if let Some(slot) = slot {
            self.last = key;
            self.touch_slot(slot, key, is_change, now);
        }
        slot.is_some()
    }

    /// Uses the key that is in a slot. Returns whether a pointer shows elsewhere now ([`Tags::in_turn`]).
    #[inline(always)]
    pub fn touch_slot(&mut self, slot: usize, key: u64, is_change: bool, now: u64) -> bool {
        self.note(slot, is_change, now);
        self.order.touch(self.set(key), self.ways, slot)
    }

    /// The same, where a use changes nothing but the time.
    #[inline(always)]
    pub fn note(&mut self, slot: usize, is_change: bool, now: u64) {
        if is_change && let Some(entry) = self.entries.get_mut(slot) {
            *entry |= 1;
        }
        if let Some(time) = self.times.get_mut(slot) {
            *time = now;
        }
    }

    /// The key in a slot was used at a time, but perhaps later again.
    #[inline(always)]
    pub fn note_if_later(&mut self, slot: usize, time: u64) {
        self.times[slot] = self.times[slot].max(time);
    }

    /// Whether it matters when a key was used.
    pub fn is_by_time(&self) -> bool {
        matches!(self.order, Order::Times)
    }

    /// When each slot was used last.
    #[inline(always)]
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// The key in the slot to which the pointer of a key's set shows, if there is one: using it moves the pointer.
    #[inline(always)]
    pub fn in_turn(&self, key: u64) -> Option<u64> {
        let set = self.set(key);
        let entry = self.entries[set * self.ways + self.order.pointer(set)?];
        (entry != EMPTY).then_some(entry >> 1)
    }

    /// The slot that a key takes, which is not there: an empty one if there is one.
    #[inline(always)]
    pub fn choose(&mut self, key: u64) -> usize {
        let set = self.set(key);
        let first = set * self.ways;
        match &self.order {
            Order::Only => first,
            Order::Times => first + oldest(&self.times[first..first + self.ways]),
            Order::Ways(orders) => first + last_way(orders[set], self.ways),
            _ => self.choose_other(set),
        }
    }

    fn choose_other(&mut self, set: usize) -> usize {
        let slots = set * self.ways..(set + 1) * self.ways;
        let empty = self.entries[slots.clone()].iter().position(|&entry| entry == EMPTY);
        slots.start + empty.unwrap_or_else(|| self.order.choose(set, self.ways))
    }

    /// Puts a key into the slot that it takes, and uses it. Returns what has to leave.
    #[inline(always)]
    pub fn put(&mut self, slot: usize, key: u64, is_changed: bool, now: u64) -> Option<Left> {
        let left = std::mem::replace(&mut self.entries[slot], key << 1 | u64::from(is_changed));
        self.set_tag(slot, key, self.tag(key).unwrap_or(LONG));
        self.last = key;
        self.touch_slot(slot, key, false, now);
        Left::of(left)
    }

    /// Brings in and uses a key, which is not there. Returns what has to leave.
    #[inline(always)]
    pub fn fill(&mut self, key: u64, is_changed: bool, now: u64) -> Option<Left> {
        let slot = self.choose(key);
        self.put(slot, key, is_changed, now)
    }

    /// Whether [`Tags::use_or_bring_in`] can be used with so many ways.
    pub fn can_use_or_bring_in(&self, ways: usize) -> bool {
        self.ways == ways && (self.is_by_time() || ways == 1)
    }

    /// Uses a key, or brings it in, where sets have `WAYS` ways of which the one used longest ago goes. None if it is
    /// too long.
    #[inline(always)]
    pub fn use_or_bring_in<const WAYS: usize>(&mut self, key: u64, is_change: bool, now: u64) -> Option<Use> {
        const { assert!(WAYS == 1 || WAYS > FEW, "sets have so many tags") };
        let (tag, set) = (self.tag(key)?, self.set(key));
        self.last = key;
        let mut tags = (WAYS > 1).then(|| &mut self.tags.as_chunks_mut::<WAYS>().0[set]);
        let entries = &mut self.entries.as_chunks_mut::<WAYS>().0[set];
        let times = &mut self.times.as_chunks_mut::<WAYS>().0[set];
        let ways = match &tags {
            Some(tags) => ways_with(tags, tag),
            None => u32::from(entries[0] >> 1 == key),
        };
        if ways != 0 {
            let way = ways.trailing_zeros() as usize % WAYS;
            entries[way] |= u64::from(is_change);
            times[way] = now;
            return Some(Use { slot: set * WAYS + way, replaced: None });
        }
        let way = if WAYS == 1 { 0 } else { oldest(times) % WAYS };
        if let Some(tags) = &mut tags {
            tags[way] = tag;
        }
        let left = std::mem::replace(&mut entries[way], key << 1 | u64::from(is_change));
        let time = std::mem::replace(&mut times[way], now);
        Some(Use { slot: set * WAYS + way, replaced: Some((time, Left::of(left))) })
    }

    #[inline(always)]
    fn set(&self, key: u64) -> usize {
        (key & self.last_set) as usize
    }

    /// Where a key is.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<usize> {
        let set = self.set(key);
        let first = set * self.ways;
        if self.ways == 1 {
            return self.is_in(first, key).then_some(first);
        }
        let Some(tag) = self.tag(key) else { return self.search_long(first, key) };
        if self.ways > FEW {
            return self.search(first, tag);
        }
        let ways = ways_with(&self.tags.as_chunks::<FEW>().0[set], tag);
        (ways != 0).then(|| first + ways.trailing_zeros() as usize)
    }

    /// Which slot of a set, from its first on, has a tag. Many are looked at at once: where it is cannot be guessed.
    #[inline(always)]
    fn search(&self, first: usize, wanted: u32) -> Option<usize> {
        let way_of = |ways: u32| (ways != 0).then(|| ways.trailing_zeros() as usize);
        let (eights, others) = self.tags[first..first + self.ways].as_chunks();
        let mut next = first;
        let (pairs, last) = eights.as_chunks();
        for [eight, other] in pairs {
            if let Some(way) = way_of(matches(eight, wanted) | matches(other, wanted) << 8) {
                return Some(next + way);
            }
            next += 16;
        }
        for eight in last {
            if let Some(way) = way_of(matches(eight, wanted)) {
                return Some(next + way);
            }
            next += 8;
        }
        others.iter().position(|&tag| tag == wanted).map(|way| next + way)
    }

    #[cold]
    fn search_long(&self, first: usize, key: u64) -> Option<usize> {
        (first..first + self.ways).find(|&slot| self.is_in(slot, key))
    }

    /// What distinguishes a key from others of its set, unless it is too long.
    #[inline(always)]
    fn tag(&self, key: u64) -> Option<u32> {
        let tag = key >> self.set_bits;
        (tag < u64::from(LONG)).then_some(tag as u32)
    }

    /// A slot has this tag now, in the set of a key.
    #[inline(always)]
    fn set_tag(&mut self, slot: usize, key: u64, tag: u32) {
        if self.stride != 0 {
            let set = self.set(key);
            self.tags[set * self.stride + slot - set * self.ways] = tag;
        }
    }

    /// Whether a key is in a slot.
    #[inline(always)]
    pub fn is_in(&self, slot: usize, key: u64) -> bool {
        self.entries[slot] >> 1 == key
    }

    /// Takes a key out. Returns whether it was changed, if it was there.
    pub fn remove(&mut self, key: u64) -> Option<bool> {
        let slot = self.find(key)?;
        self.last = u64::MAX;
        self.set_tag(slot, key, LONG);
        self.order.remove(self.set(key), self.ways, slot);
        self.note(slot, false, 0);
        Some(std::mem::replace(&mut self.entries[slot], EMPTY) & 1 != 0)
    }
}

/// Which ways of a set have a tag: a bit each.
#[inline(always)]
fn ways_with<const WAYS: usize>(tags: &[u32; WAYS], wanted: u32) -> u32 {
    let (eights, others) = tags.as_chunks();
    let others = others.iter().rev().fold(0, |ways, &tag| ways << 1 | u32::from(tag == wanted));
    eights.iter().rev().fold(others, |ways, eight| ways << 8 | matches(eight, wanted))
}

/// Those of nothing.
fn entries(mut words: Words) -> Words {
    words.fill(EMPTY);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ways_are_a_bit_each() {
        assert_eq!([7, 3, 2].map(|wanted| ways_with(&[7, 1, 7, 3], wanted)), [0b101, 0b1000, 0]);
    }

    proptest! {
        /// In the order of their use the same keys leave as by times; and as where all is done at once.
        #[test]
        fn the_least_recently_used_leaves(
            ways in prop::sample::select(&[2u32, 3, 4, 5, 8, 11, 16]),
            uses in prop::collection::vec((0..10u8, 0..48u64, any::<bool>()), 1..400),
        ) {
            let [mut by_time, mut in_order, mut at_once] =
                [true, false, true].map(|has_times| Tags::new(1024, ways, Replacement::Lru, has_times));
            prop_assert!(by_time.is_by_time() && !in_order.is_by_time());
            for ((what, key, is_change), now) in uses.into_iter().zip(1..) {
                // Of two sets.
                let key = ((key / 2) << 10) + key % 2;
                if what == 0 {
                    let removed = by_time.remove(key);
                    prop_assert_eq!(in_order.remove(key), removed);
                    prop_assert_eq!(at_once.remove(key), removed);
                    continue;
                }
                let is_there = by_time.touch(key, is_change, now);
                prop_assert_eq!(is_there, in_order.touch(key, is_change, now));
                let left = if is_there { None } else { by_time.fill(key, is_change, now) };
                if !is_there {
                    prop_assert_eq!(in_order.fill(key, is_change, now), left);
                }
                if what > 1 && at_once.can_use_or_bring_in(8) {
                    let found = at_once.use_or_bring_in::<8>(key, is_change, now).expect("a short key");
                    prop_assert!(at_once.is_in(found.slot, key));
                    prop_assert_eq!(found.replaced.is_none(), is_there);
                    prop_assert_eq!(found.replaced.and_then(|(_, left)| left), left);
                } else if !at_once.touch(key, is_change, now) {
                    prop_assert_eq!(at_once.fill(key, is_change, now), left);
                }
            }
        }
    }
}
