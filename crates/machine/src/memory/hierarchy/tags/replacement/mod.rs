//! Replacement policies, a file each: which way of a set is the victim. Free ways are filled first.

mod direct_mapped;
mod fifo;
pub mod lru;
mod not_last_used;
mod policy;
mod random;

use serde::{Deserialize, Deserializer};

use crate::description::choice::{Choice, by_name};
use direct_mapped::DirectMapped;
use fifo::Fifo;
use lru::{FEW_ENTRIES, LruOrder, LruTimes, MAX_ORDERED_WAYS};
use not_last_used::NotLastUsed;
pub use policy::ReplacementPolicy;
use random::RandomReplacement;

/// The replacement policy. Free entries are filled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Least recently used.
    #[default]
    Lru,
    /// First in, first out (round robin).
    Fifo,
    /// Pseudo-random, with the same sequence in each run.
    Random,
    /// The entry at a victim pointer, which advances whenever that entry is used or filled.
    NotLastUsed,
}

impl Replacement {
    /// Whether a use moves a victim pointer, so that a set needs several ways, and uses of its lines must not be filtered.
    pub(crate) fn has_victim_pointer(self) -> bool {
        self == Replacement::NotLastUsed
    }

    /// The names of all policies, as descriptions have them.
    ///
    /// ```
    /// assert!(pathlength_machine::Replacement::names().contains(&"lru"));
    /// ```
    pub fn names() -> Vec<&'static str> {
        Replacement::NAMES.iter().map(|(name, _)| *name).collect()
    }
}

impl Choice for Replacement {
    const KIND: &'static str = "replacement policy";
    const NAMES: &'static [(&'static str, Replacement)] = &[
        ("lru", Replacement::Lru),
        ("fifo", Replacement::Fifo),
        ("round-robin", Replacement::Fifo),
        ("random", Replacement::Random),
        ("not-last-used", Replacement::NotLastUsed),
    ];
}

impl<'de> Deserialize<'de> for Replacement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Replacement, D::Error> {
        by_name(from)
    }
}

/// The state of one of the policies. [`Tags`](super::Tags) take shortcuts for those of direct-mapped and LRU caches.
#[derive(Debug)]
pub enum ReplacementState {
    DirectMapped(DirectMapped),
    LruTimes(LruTimes),
    LruOrder(LruOrder),
    Fifo(Fifo),
    NotLastUsed(NotLastUsed),
    Random(RandomReplacement),
}

/// Evaluates an expression with the policy of a state, statically dispatched.
macro_rules! with_policy {
    ($state:expr, $policy:ident => $result:expr) => {
        match $state {
            ReplacementState::DirectMapped($policy) => $result,
            ReplacementState::LruTimes($policy) => $result,
            ReplacementState::LruOrder($policy) => $result,
            ReplacementState::Fifo($policy) => $result,
            ReplacementState::NotLastUsed($policy) => $result,
            ReplacementState::Random($policy) => $result,
        }
    };
}

impl ReplacementState {
    pub fn new(sets: usize, ways: usize, replacement: Replacement, has_times: bool) -> ReplacementState {
        match replacement {
            _ if ways == 1 => ReplacementState::DirectMapped(DirectMapped),
            Replacement::Lru if has_times || sets * ways <= FEW_ENTRIES || ways > MAX_ORDERED_WAYS => {
                ReplacementState::LruTimes(LruTimes)
            }
            Replacement::Lru => ReplacementState::LruOrder(LruOrder::new(sets)),
            Replacement::Fifo => ReplacementState::Fifo(Fifo::new(sets)),
            Replacement::NotLastUsed => ReplacementState::NotLastUsed(NotLastUsed::new(sets)),
            Replacement::Random => ReplacementState::Random(RandomReplacement::new()),
        }
    }
}

impl ReplacementPolicy for ReplacementState {
    #[inline(always)]
    fn touch(&mut self, set: usize, ways: usize, slot: usize) -> bool {
        with_policy!(self, policy => policy.touch(set, ways, slot))
    }

    #[inline(always)]
    fn pointer(&self, set: usize) -> Option<usize> {
        with_policy!(self, policy => policy.pointer(set))
    }

    fn choose_victim(&mut self, set: usize, ways: usize) -> usize {
        with_policy!(self, policy => policy.choose_victim(set, ways))
    }

    fn remove(&mut self, set: usize, ways: usize, slot: usize) {
        with_policy!(self, policy => policy.remove(set, ways, slot))
    }
}
