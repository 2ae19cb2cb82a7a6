//! Which entry of a set is replaced.

use crate::description::Replacement;

/// What is known of the uses of entries.
#[derive(Debug)]
pub enum Order {
    /// Sets have one entry.
    Only,
    /// The one goes whose time of use is the smallest.
    Times,
    /// The same, of at most [`MOST_IN_ORDER`] ways of many sets: the ways of each, four bits each, from the one
    /// used last in the lowest ones to the one that goes.
    Ways(Box<[u64]>),
    /// Of each set the way that goes next.
    InTurn(Box<[u32]>),
    /// Of each set the way to which a pointer shows that leaves those that are used.
    NotLastUsed(Box<[u32]>),
    /// Any goes: what the next number follows from.
    Random(u64),
}

/// Ways that have room in a word.
pub const MOST_IN_ORDER: usize = 16;
/// Entries that are so few that their times do not fill the host's caches: noting one is all that a use takes.
const FEW: usize = 1024;

/// One in each four bits.
const ONES: u64 = 0x1111_1111_1111_1111;
/// Each way in its own place.
pub const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;

impl Order {
    pub fn new(sets: usize, ways: usize, replacement: Replacement, has_times: bool) -> Order {
        match replacement {
            _ if ways == 1 => Order::Only,
            Replacement::Lru if has_times || sets * ways <= FEW || ways > MOST_IN_ORDER => Order::Times,
            Replacement::Lru => Order::Ways(vec![IN_ORDER; sets].into()),
            Replacement::Fifo => Order::InTurn(vec![0; sets].into()),
            Replacement::NotLastUsed => Order::NotLastUsed(vec![0; sets].into()),
            Replacement::Random => Order::Random(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// A slot of a set is used. Returns whether a pointer shows elsewhere now.
    #[inline(always)]
    pub fn touch(&mut self, set: usize, ways: usize, slot: usize) -> bool {
        match self {
            Order::Only | Order::Times | Order::InTurn(_) | Order::Random(_) => false,
            Order::Ways(orders) => {
                put_first(&mut orders[set], (slot - set * ways) as u64);
                false
            }
            Order::NotLastUsed(next) => {
                let next = &mut next[set];
                let is_shown = *next as usize == slot - set * ways;
                if is_shown {
                    *next = following(*next, ways);
                }
                is_shown
            }
        }
    }

    /// The way of a set to which a pointer shows that uses move.
    #[inline(always)]
    pub fn pointer(&self, set: usize) -> Option<usize> {
        if let Order::NotLastUsed(next) = self { Some(next[set] as usize) } else { None }
    }

    /// The way of a full set that a new key takes, where times and the order of ways do not say it.
    pub fn choose(&mut self, set: usize, ways: usize) -> usize {
        match self {
            Order::InTurn(next) => {
                let following = following(next[set], ways);
                std::mem::replace(&mut next[set], following) as usize
            }
            Order::NotLastUsed(next) => next[set] as usize,
            Order::Random(state) => (draw(state) % ways as u32) as usize,
            Order::Only | Order::Times | Order::Ways(_) => 0,
        }
    }

    /// A slot of a set is empty now.
    pub fn remove(&mut self, set: usize, ways: usize, slot: usize) {
        match self {
            Order::Ways(orders) => {
                // To the end: all others before it are used once more, from the last to the first.
                let (way, before) = ((slot - set * ways) as u64, orders[set]);
                let others = (0..ways).rev().map(|place| before >> (4 * place) & 15);
                others.filter(|&other| other != way).for_each(|other| put_first(&mut orders[set], other));
            }
            Order::Only | Order::Times | Order::InTurn(_) | Order::NotLastUsed(_) | Order::Random(_) => {}
        }
    }
}

#[inline(always)]
fn following(way: u32, ways: usize) -> u32 {
    if way as usize + 1 == ways { 0 } else { way + 1 }
}

/// Puts a way before the others of its set. Nothing of it has to be guessed.
#[inline(always)]
pub fn put_first(order: &mut u64, way: u64) {
    let differences = *order ^ (way * ONES);
    // The highest bit of the lowest four that are zero, and of none below.
    let zero = differences.wrapping_sub(ONES) & !differences & ONES << 3;
    let before = (1 << (zero.trailing_zeros() & !3)) - 1u64;
    *order = *order & !(before << 4 | 15) | (*order & before) << 4 | way;
}

/// The way of a set that was used longest ago.
#[inline(always)]
pub fn last_way(order: u64, ways: usize) -> usize {
    (order >> (4 * (ways - 1)) & 15) as usize
}

/// The first of those that were used longest ago.
#[inline(always)]
pub fn oldest(times: &[u64]) -> usize {
    // Times are far smaller than words, so that the way fits behind them, and nothing has to be guessed.
    if let &[a, b, c, d, e, f, g, h] = times {
        let [b, c, d] = [b << 3 | 1, c << 3 | 2, d << 3 | 3];
        let [e, f, g, h] = [e << 3 | 4, f << 3 | 5, g << 3 | 6, h << 3 | 7];
        return ((a << 3).min(b).min(c.min(d)).min(e.min(f).min(g.min(h))) & 7) as usize;
    }
    let shift = usize::BITS - times.len().leading_zeros();
    let timed = times.iter().enumerate().map(|(way, &time)| time << shift | way as u64);
    (timed.min().unwrap_or(0) & ((1 << shift) - 1)) as usize
}

/// The next of a sequence of numbers that look random (Marsaglia's xorshift), the same in each run.
fn draw(state: &mut u64) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 32) as u32
}
