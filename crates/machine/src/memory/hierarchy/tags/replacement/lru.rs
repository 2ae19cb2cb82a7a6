//! Least recently used, by the times of uses or by the order of a set's ways.

use super::policy::ReplacementPolicy;

/// The victim is the slot with the smallest time, which [`Tags`](crate::memory::hierarchy::Tags) keep.
#[derive(Debug)]
pub struct LruTimes;

impl ReplacementPolicy for LruTimes {
    #[inline(always)]
    fn choose_victim(&mut self, _set: usize, _ways: usize) -> usize {
        0
    }
}

/// LRU for at most [`MAX_ORDERED_WAYS`] ways of many sets: per set a word of ways, four bits each, from the most recently used in
/// the lowest bits to the victim.
#[derive(Debug)]
pub struct LruOrder(pub Box<[u64]>);

/// Ways that fit into a word.
pub const MAX_ORDERED_WAYS: usize = 16;
/// Up to this number of entries, their times stay in the host's caches, and a use costs only the recording of a time.
pub const FEW_ENTRIES: usize = 1024;

/// A one in each group of four bits.
const ONES: u64 = 0x1111_1111_1111_1111;
/// Each way at its own position.
pub const INITIAL_ORDER: u64 = 0xfedc_ba98_7654_3210;

impl LruOrder {
    pub fn new(sets: usize) -> LruOrder {
        LruOrder(vec![INITIAL_ORDER; sets].into())
    }
}

impl ReplacementPolicy for LruOrder {
    #[inline(always)]
    fn touch(&mut self, set: usize, ways: usize, slot: usize) -> bool {
        move_to_front(&mut self.0[set], (slot - set * ways) as u64);
        false
    }

    #[inline(always)]
    fn choose_victim(&mut self, set: usize, ways: usize) -> usize {
        least_recent_way(self.0[set], ways)
    }

    fn remove(&mut self, set: usize, ways: usize, slot: usize) {
        // Moves the way to the end: all others are used once more, from the last to the first.
        let (way, before) = ((slot - set * ways) as u64, self.0[set]);
        let others = (0..ways).rev().map(|position| before >> (4 * position) & 15);
        others.filter(|&other| other != way).for_each(|other| move_to_front(&mut self.0[set], other));
    }
}

/// Moves a way to the front of its set's order, branch-free.
#[inline(always)]
pub fn move_to_front(order: &mut u64, way: u64) {
    let differences = *order ^ (way * ONES);
    // The top bit of the lowest group that is zero, and of none below.
    let zero = differences.wrapping_sub(ONES) & !differences & ONES << 3;
    let before = (1 << (zero.trailing_zeros() & !3)) - 1u64;
    *order = *order & !(before << 4 | 15) | (*order & before) << 4 | way;
}

/// The least recently used way of a set.
#[inline(always)]
pub fn least_recent_way(order: u64, ways: usize) -> usize {
    (order >> (4 * (ways - 1)) & 15) as usize
}

/// The first of the least recently used slots.
#[inline(always)]
pub fn least_recent(times: &[u64]) -> usize {
    // Times are much smaller than a word: with the way in the low bits the minimum is branch-free.
    if let &[a, b, c, d, e, f, g, h] = times {
        let [b, c, d] = [b << 3 | 1, c << 3 | 2, d << 3 | 3];
        let [e, f, g, h] = [e << 3 | 4, f << 3 | 5, g << 3 | 6, h << 3 | 7];
        return ((a << 3).min(b).min(c.min(d)).min(e.min(f).min(g.min(h))) & 7) as usize;
    }
    let shift = usize::BITS - times.len().leading_zeros();
    let timed = times.iter().enumerate().map(|(way, &time)| time << shift | way as u64);
    (timed.min().unwrap_or(0) & ((1 << shift) - 1)) as usize
}
