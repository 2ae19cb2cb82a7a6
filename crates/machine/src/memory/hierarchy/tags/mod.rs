//! The tags of a cache or a TLB: keys (numbers of lines or pages) in sets of ways. A key's slot is the number
//! of its set times the number of ways, plus its way; it does not move.
//!
//! Using a key twice in a row is the same as using it once, whatever the replacement policy.

mod matching;
pub mod replacement;

use events::Words;

pub use matching::matches;
use replacement::lru::least_recent;
pub use replacement::lru::{INITIAL_ORDER, MAX_ORDERED_WAYS, least_recent_way, move_to_front};
use replacement::{Replacement, ReplacementPolicy, ReplacementState};

/// The contents of a slot: a key of at most 62 bits, and the dirty bit in bit 0.
type Entry = u64;

/// The entry of a free slot.
const EMPTY: Entry = u64::MAX;

/// The tag of a free slot, and of keys that are too long for a tag.
const LONG: u32 = u32::MAX;

/// Up to this number of ways, all tags of a set are compared at once.
const FEW: usize = 4;

/// The contents of a cache or TLB.
#[derive(Debug)]
pub struct Tags {
    ways: usize,
    last_set: u64,
    set_bits: u32,
    /// The bits of each key that do not select its set: a search looks at these only. Direct-mapped
    /// structures have none, and sets of at most [`FEW`] ways have [`FEW`].
    tags: Box<[u32]>,
    /// Tags per set.
    stride: usize,
    entries: Words,
    order: ReplacementState,
    /// The time at which each slot was last used, 0 if it is free; empty if replacement needs no times.
    times: Words,
    /// The key of the last [`Tags::touch`], unless another was filled since: using it again changes nothing.
    last: u64,
}

/// A key that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    pub key: u64,
    /// Whether it was dirty.
    pub is_dirty: bool,
}

impl Evicted {
    /// The key of an entry.
    #[inline(always)]
    fn of(entry: Entry) -> Option<Evicted> {
        (entry != EMPTY).then_some(Evicted { key: entry >> 1, is_dirty: entry & 1 != 0 })
    }
}

/// A use of a key that was filled if it was not there.
pub struct SetAccess {
    /// Its slot.
    pub slot: usize,
    /// If it was filled: the last use of the slot before, and the key that was evicted, if there was one.
    pub replaced: Option<(u64, Option<Evicted>)>,
}

impl Tags {
    /// Empty. `has_times` says that times of uses can be recorded ([`Tags::mark_used`]).
    pub fn new(sets: u64, ways: u32, replacement: Replacement, has_times: bool) -> Tags {
        let (sets_of_keys, ways) = (sets as usize, ways as usize);
        let slots = sets_of_keys * ways;
        let order = ReplacementState::new(sets_of_keys, ways, replacement, has_times);
        let has_times = has_times || matches!(order, ReplacementState::LruTimes(_));
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

    /// The same, before the first use, with entries and times in these words: one for each slot.
    pub fn at(self, in_words: Words, times: Words) -> Tags {
        Tags { entries: entries(in_words), times, ..self }
    }

    /// The entries, and the times.
    pub fn words(&self) -> (&Words, &Words) {
        (&self.entries, &self.times)
    }

    /// For a structure that does not exist.
    pub fn none() -> Tags {
        Tags::new(1, 1, Replacement::Lru, true)
    }

    /// Room for keys.
    pub fn slots(&self) -> usize {
        self.entries.len()
    }

    /// Uses a key if it is there, and makes it dirty or not. Returns whether it is there. Times ascend from
    /// use to use.
    #[inline(always)]
    pub fn touch(&mut self, key: u64, makes_dirty: bool, now: u64) -> bool {
        if key == self.last && !makes_dirty {
            return true;
        }
        let (tag, set) = (self.tag(key), self.set(key));
        if let ReplacementState::LruOrder(orders) = &mut self.order
            && self.ways == MAX_ORDERED_WAYS
            && let Some(tag) = tag
        {
            // The path of large caches.
            let ways = ways_with(&self.tags.as_chunks::<MAX_ORDERED_WAYS>().0[set], tag);
            if ways == 0 {
                return false;
            }
            let way = ways.trailing_zeros();
            move_to_front(&mut orders.0[set], way.into());
            self.entries[set * MAX_ORDERED_WAYS + way as usize] |= u64::from(makes_dirty);
            self.last = key;
            return true;
        }
        let slot = self.find(key);
        if let Some(slot) = slot {
            self.last = key;
            self.use_slot(slot, key, makes_dirty, now);
        }
        slot.is_some()
    }

    /// Uses the key in a slot. Returns whether a victim pointer moved ([`Tags::at_victim_pointer`]).
    #[inline(always)]
    pub fn use_slot(&mut self, slot: usize, key: u64, makes_dirty: bool, now: u64) -> bool {
        self.mark_used(slot, makes_dirty, now);
        self.order.touch(self.set(key), self.ways, slot)
    }

    /// The same where a use changes nothing but the time.
    #[inline(always)]
    pub fn mark_used(&mut self, slot: usize, makes_dirty: bool, now: u64) {
        if makes_dirty && let Some(entry) = self.entries.get_mut(slot) {
            *entry |= 1;
        }
        if let Some(time) = self.times.get_mut(slot) {
            *time = now;
        }
    }

    /// The key in a slot was used at a time; it may have been used later too.
    #[inline(always)]
    pub fn raise_time(&mut self, slot: usize, time: u64) {
        self.times[slot] = self.times[slot].max(time);
    }

    /// Whether replacement goes by the times of uses.
    pub fn is_lru_by_time(&self) -> bool {
        matches!(self.order, ReplacementState::LruTimes(_))
    }

    /// When each slot was last used.
    #[inline(always)]
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// The key at the victim pointer of a key's set, where replacement has one that uses move.
    #[inline(always)]
    pub fn at_victim_pointer(&self, key: u64) -> Option<u64> {
        let set = self.set(key);
        let entry = self.entries[set * self.ways + self.order.pointer(set)?];
        (entry != EMPTY).then_some(entry >> 1)
    }

    /// The slot for a key that is not there: a free one if there is one.
    #[inline(always)]
    pub fn choose_victim(&mut self, key: u64) -> usize {
        let set = self.set(key);
        let first = set * self.ways;
        match &self.order {
            ReplacementState::DirectMapped(_) => first,
            ReplacementState::LruTimes(_) => first + least_recent(&self.times[first..first + self.ways]),
            ReplacementState::LruOrder(orders) => first + least_recent_way(orders.0[set], self.ways),
            _ => self.choose_victim_slow(set),
        }
    }

    fn choose_victim_slow(&mut self, set: usize) -> usize {
        let slots = set * self.ways..(set + 1) * self.ways;
        let empty = self.entries[slots.clone()].iter().position(|&entry| entry == EMPTY);
        slots.start + empty.unwrap_or_else(|| self.order.choose_victim(set, self.ways))
    }

    /// Fills a key into a slot, and uses it. Returns the evicted key.
    #[inline(always)]
    pub fn fill_slot(&mut self, slot: usize, key: u64, is_dirty: bool, now: u64) -> Option<Evicted> {
        let evicted = std::mem::replace(&mut self.entries[slot], key << 1 | u64::from(is_dirty));
        self.set_tag(slot, key, self.tag(key).unwrap_or(LONG));
        self.last = key;
        self.use_slot(slot, key, false, now);
        Evicted::of(evicted)
    }

    /// Fills and uses a key that is not there. Returns the evicted key.
    #[inline(always)]
    pub fn fill(&mut self, key: u64, is_dirty: bool, now: u64) -> Option<Evicted> {
        let slot = self.choose_victim(key);
        self.fill_slot(slot, key, is_dirty, now)
    }

    /// Whether [`Tags::access_or_fill`] applies to this number of ways.
    pub fn can_access_or_fill(&self, ways: usize) -> bool {
        self.ways == ways && (self.is_lru_by_time() || ways == 1)
    }

    /// Uses a key, and fills it if it is not there, where sets have `WAYS` ways with LRU replacement. None if
    /// the key is too long for a tag.
    #[inline(always)]
    pub fn access_or_fill<const WAYS: usize>(
        &mut self,
        key: u64,
        makes_dirty: bool,
        now: u64,
    ) -> Option<SetAccess> {
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
            entries[way] |= u64::from(makes_dirty);
            times[way] = now;
            return Some(SetAccess { slot: set * WAYS + way, replaced: None });
        }
        let way = if WAYS == 1 { 0 } else { least_recent(times) % WAYS };
        if let Some(tags) = &mut tags {
            tags[way] = tag;
        }
        let evicted = std::mem::replace(&mut entries[way], key << 1 | u64::from(makes_dirty));
        let time = std::mem::replace(&mut times[way], now);
        Some(SetAccess { slot: set * WAYS + way, replaced: Some((time, Evicted::of(evicted))) })
    }

    #[inline(always)]
    fn set(&self, key: u64) -> usize {
        (key & self.last_set) as usize
    }

    /// The slot of a key.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<usize> {
        let set = self.set(key);
        let first = set * self.ways;
        if self.ways == 1 {
            return self.slot_holds(first, key).then_some(first);
        }
        let Some(tag) = self.tag(key) else { return self.search_long(first, key) };
        if self.ways > FEW {
            return self.search(first, tag);
        }
        let ways = ways_with(&self.tags.as_chunks::<FEW>().0[set], tag);
        (ways != 0).then(|| first + ways.trailing_zeros() as usize)
    }

    /// The slot with a tag, in the set that begins at a slot. Compares many tags at once: which one matches
    /// is unpredictable.
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
        (first..first + self.ways).find(|&slot| self.slot_holds(slot, key))
    }

    /// The tag of a key, unless it is too long.
    #[inline(always)]
    fn tag(&self, key: u64) -> Option<u32> {
        let tag = key >> self.set_bits;
        (tag < u64::from(LONG)).then_some(tag as u32)
    }

    /// Sets the tag of a slot in the set of a key.
    #[inline(always)]
    fn set_tag(&mut self, slot: usize, key: u64, tag: u32) {
        if self.stride != 0 {
            let set = self.set(key);
            self.tags[set * self.stride + slot - set * self.ways] = tag;
        }
    }

    /// Whether a slot has a key.
    #[inline(always)]
    pub fn slot_holds(&self, slot: usize, key: u64) -> bool {
        self.entries[slot] >> 1 == key
    }

    /// Invalidates a key. Returns whether it was dirty, if it was there.
    pub fn remove(&mut self, key: u64) -> Option<bool> {
        let slot = self.find(key)?;
        self.last = u64::MAX;
        self.set_tag(slot, key, LONG);
        self.order.remove(self.set(key), self.ways, slot);
        self.mark_used(slot, false, 0);
        Some(std::mem::replace(&mut self.entries[slot], EMPTY) & 1 != 0)
    }

    /// Invalidates all keys.
    pub fn clear(&mut self) {
        for slot in 0..self.entries.len() {
            let entry = self.entries[slot];
            if entry != EMPTY {
                self.remove(entry >> 1);
            }
        }
    }
}

/// The ways of a set with a tag, a bit each.
#[inline(always)]
fn ways_with<const WAYS: usize>(tags: &[u32; WAYS], wanted: u32) -> u32 {
    let (eights, others) = tags.as_chunks();
    let others = others.iter().rev().fold(0, |ways, &tag| ways << 1 | u32::from(tag == wanted));
    eights.iter().rev().fold(others, |ways, eight| ways << 8 | matches(eight, wanted))
}

/// Entries of free slots.
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
        /// LRU by order of use evicts the same keys as LRU by times, and as the combined path.
        #[test]
        fn the_least_recently_used_leaves(
            ways in prop::sample::select(&[2u32, 3, 4, 5, 8, 11, 16]),
            uses in prop::collection::vec((0..10u8, 0..48u64, any::<bool>()), 1..400),
        ) {
            let [mut by_time, mut in_order, mut at_once] =
                [true, false, true].map(|has_times| Tags::new(1024, ways, Replacement::Lru, has_times));
            prop_assert!(by_time.is_lru_by_time() && !in_order.is_lru_by_time());
            for ((what, key, makes_dirty), now) in uses.into_iter().zip(1..) {
                // Two sets.
                let key = ((key / 2) << 10) + key % 2;
                if what == 0 {
                    let removed = by_time.remove(key);
                    prop_assert_eq!(in_order.remove(key), removed);
                    prop_assert_eq!(at_once.remove(key), removed);
                    continue;
                }
                let is_there = by_time.touch(key, makes_dirty, now);
                prop_assert_eq!(is_there, in_order.touch(key, makes_dirty, now));
                let evicted = if is_there { None } else { by_time.fill(key, makes_dirty, now) };
                if !is_there {
                    prop_assert_eq!(in_order.fill(key, makes_dirty, now), evicted);
                }
                if what > 1 && at_once.can_access_or_fill(8) {
                    let found = at_once.access_or_fill::<8>(key, makes_dirty, now).expect("a short key");
                    prop_assert!(at_once.slot_holds(found.slot, key));
                    prop_assert_eq!(found.replaced.is_none(), is_there);
                    prop_assert_eq!(found.replaced.and_then(|(_, evicted)| evicted), evicted);
                } else if !at_once.touch(key, makes_dirty, now) {
                    prop_assert_eq!(at_once.fill(key, makes_dirty, now), evicted);
                }
            }
        }
    }
}
