//! Targets of jumps by the path that leads to them: a target cache, as P. Chang, E. Hao and Y. Patt proposed in 1997. An interpreter's
//! dispatch jumps to another target each time, which the last branches and targets often tell.

use serde::Deserialize;

use descriptions::{CheckResult, require};

/// A target cache: the field `indirect` of a predictor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetCache {
    /// Its entries, a power of two.
    pub entries: u32,
    /// Bits of the path that find an entry: one for the direction of each conditional branch, three of each jump's target.
    pub history: u8,
}

impl TargetCache {
    pub(super) fn check(&self) -> CheckResult {
        let TargetCache { entries, history } = *self;
        let reason = format!("{entries} is not a power of two from 2 to 16,777,216");
        let is_table = entries.is_power_of_two() && (2..=1 << 24).contains(&entries);
        require(is_table, "predictor.indirect.entries", reason)?;
        let reason = format!("{history} is not 1 to 63");
        require((1..=63).contains(&history), "predictor.indirect.history", reason)
    }
}

/// The path to the next jump, the last branch in the lowest bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JumpPath(u64);

/// Bits of a jump's target in the path.
const TARGET_BITS: u32 = 3;

impl JumpPath {
    pub fn branch(&mut self, is_taken: bool) {
        self.0 = self.0 << 1 | u64::from(is_taken);
    }

    /// The last branch went the other way.
    pub fn turn_branch(&mut self) {
        self.0 ^= 1;
    }

    pub fn jump(&mut self, target: u64) {
        self.0 = self.0 << TARGET_BITS | Self::target_bits(target);
    }

    /// The last jump went to another target.
    pub fn turn_jump(&mut self, target: u64) {
        self.0 = self.0 >> TARGET_BITS << TARGET_BITS | Self::target_bits(target);
    }

    fn target_bits(target: u64) -> u64 {
        (target >> 2 ^ target >> 5) % (1 << TARGET_BITS)
    }
}

/// The contents of a target cache: jumps and their targets.
pub(super) struct JumpTargets {
    entries: Vec<(u64, u64)>,
    history: u32,
}

/// The address of no jump.
const EMPTY: u64 = u64::MAX;

impl JumpTargets {
    pub fn new(cache: TargetCache) -> JumpTargets {
        JumpTargets { entries: vec![(EMPTY, 0); cache.entries as usize], history: cache.history.into() }
    }

    fn index(&self, jump: u64, path: JumpPath) -> usize {
        let mut rest = path.0 & ((1 << self.history) - 1);
        let mut index = jump >> 2;
        // All bits of the path are folded into those of the index.
        while rest != 0 {
            index ^= rest;
            rest >>= self.entries.len().ilog2();
        }
        index as usize & (self.entries.len() - 1)
    }

    /// The target of a jump that was reached by this path before.
    pub fn find(&self, jump: u64, path: JumpPath) -> Option<u64> {
        let (of, target) = self.entries[self.index(jump, path)];
        (of == jump).then_some(target)
    }

    pub fn enter(&mut self, jump: u64, path: JumpPath, target: u64) {
        let index = self.index(jump, path);
        self.entries[index] = (jump, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_targets_apart() {
        let mut targets = JumpTargets::new(TargetCache { entries: 4096, history: 12 });
        let mut path = JumpPath::default();
        let turns = [0x2000, 0x2004, 0x2000, 0x3008];
        let mut wrong = 0;
        for number in 0..400 {
            let target = turns[number % 4];
            wrong += u32::from(number >= 200 && targets.find(0x1000, path) != Some(target));
            targets.enter(0x1000, path, target);
            path.jump(target);
        }
        assert_eq!(wrong, 0);
        assert_eq!(targets.find(0x1004, path), None);
    }

    #[test]
    fn a_path_can_be_turned() {
        let (mut one, mut other) = (JumpPath::default(), JumpPath::default());
        one.jump(0x1004);
        one.branch(true);
        other.jump(0x1004);
        other.branch(false);
        other.turn_branch();
        assert_eq!(one, other);
        one.jump(0x2008);
        other.jump(0x3010);
        other.turn_jump(0x2008);
        assert_eq!(one, other);
    }
}
