//! Replacement policies: which way of a set is the victim.

use crate::description::Replacement;

/// The state of a replacement policy.
#[derive(Debug)]
pub enum ReplacementState {
    /// Sets have one way.
    DirectMapped,
    /// LRU: the victim is the slot with the smallest time.
    LruTimes,
    /// LRU for at most [`MAX_ORDERED_WAYS`] ways of many sets: per set a word of ways, four bits each, from
    /// the most recently used in the lowest bits to the victim.
    LruOrder(Box<[u64]>),
    /// FIFO: per set the way that is replaced next.
    Fifo(Box<[u32]>),
    /// Not last used: per set a victim pointer, which moves on when the way that it points to is used.
    NotLastUsed(Box<[u32]>),
    /// Random: the state of the generator.
    Random(u64),
}

/// Ways that fit into a word.
pub const MAX_ORDERED_WAYS: usize = 16;
/// Up to this number of entries, their times stay in the host's caches, and a use costs only the recording of a time.
/// costs.
const FEW: usize = 1024;

/// A one in each group of four bits.
const ONES: u64 = 0x1111_1111_1111_1111;
/// Each way at its own position.
pub const INITIAL_ORDER: u64 = 0xfedc_ba98_7654_3210;

impl ReplacementState {
    pub fn new(sets: usize, ways: usize, replacement: Replacement, has_times: bool) -> ReplacementState {
        match replacement {
            _ if ways == 1 => ReplacementState::DirectMapped,
            Replacement::Lru if has_times || sets * ways <= FEW || ways > MAX_ORDERED_WAYS => {
                ReplacementState::LruTimes
            }
            Replacement::Lru => ReplacementState::LruOrder(vec![INITIAL_ORDER; sets].into()),
            Replacement::Fifo => ReplacementState::Fifo(vec![0; sets].into()),
            Replacement::NotLastUsed => ReplacementState::NotLastUsed(vec![0; sets].into()),
            Replacement::Random => ReplacementState::Random(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// A slot of a set is used. Returns whether the victim pointer moved.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, ways: usize, slot: usize) -> bool {
        match self {
            ReplacementState::DirectMapped
            | ReplacementState::LruTimes
            | ReplacementState::Fifo(_)
            | ReplacementState::Random(_) => false,
            ReplacementState::LruOrder(orders) => {
                move_to_front(&mut orders[set], (slot - set * ways) as u64);
                false
            }
            ReplacementState::NotLastUsed(next) => {
                let next = &mut next[set];
                let is_shown = *next as usize == slot - set * ways;
                if is_shown {
                    *next = following(*next, ways);
                }
                is_shown
            }
        }
    }

    /// The way at the victim pointer of a set, for the policy that has one.
    #[inline(always)]
    pub fn pointer(&self, set: usize) -> Option<usize> {
        if let ReplacementState::NotLastUsed(next) = self { Some(next[set] as usize) } else { None }
    }

    /// The victim of a full set, for policies without times or order.
    pub fn choose_victim(&mut self, set: usize, ways: usize) -> usize {
        match self {
            ReplacementState::Fifo(next) => {
                let following = following(next[set], ways);
                std::mem::replace(&mut next[set], following) as usize
            }
            ReplacementState::NotLastUsed(next) => next[set] as usize,
            ReplacementState::Random(state) => (draw(state) % ways as u32) as usize,
            ReplacementState::DirectMapped | ReplacementState::LruTimes | ReplacementState::LruOrder(_) => 0,
        }
    }

    /// A slot of a set is free now.
    pub fn remove(&mut self, set: usize, ways: usize, slot: usize) {
        match self {
            ReplacementState::LruOrder(orders) => {
                // Moves the way to the end: all others are used once more, from the last to the first.
                let (way, before) = ((slot - set * ways) as u64, orders[set]);
                let others = (0..ways).rev().map(|place| before >> (4 * place) & 15);
                others.filter(|&other| other != way).for_each(|other| move_to_front(&mut orders[set], other));
            }
            ReplacementState::DirectMapped
            | ReplacementState::LruTimes
            | ReplacementState::Fifo(_)
            | ReplacementState::NotLastUsed(_)
            | ReplacementState::Random(_) => {}
        }
    }
}

#[inline(always)]
fn following(way: u32, ways: usize) -> u32 {
    if way as usize + 1 == ways { 0 } else { way + 1 }
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

/// The next of a pseudo-random sequence (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u32
}
