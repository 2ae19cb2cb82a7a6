//! The branch target buffer: the last target of each taken branch and jump.

use serde::Deserialize;

use descriptions::{CheckResult, require};

/// A branch target buffer: the field `btb` of a predictor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetBuffer {
    /// Its entries, a power of two.
    pub entries: u32,
    /// Associativity, a power of two.
    #[serde(default = "one")]
    pub ways: u32,
    /// It holds the history of branches, too: those that it does not have are predicted statically, backward branches
    /// as taken.
    #[serde(default)]
    pub static_on_miss: bool,
}

fn one() -> u32 {
    1
}

impl TargetBuffer {
    pub(super) fn check(&self) -> CheckResult {
        let TargetBuffer { entries, ways, .. } = *self;
        let reason = format!("{entries} is not a power of two up to 16,777,216");
        require(entries.is_power_of_two() && entries <= 1 << 24, "predictor.btb.entries", reason)?;
        let reason = format!("{ways} is not a power of two up to the number of entries, {entries}");
        require(ways.is_power_of_two() && ways <= entries, "predictor.btb.ways", reason)
    }
}

/// The contents of a branch target buffer: sets of branches and their targets, the last used ones first.
pub(super) struct BranchTargets {
    entries: Vec<(u64, u64)>,
    ways: usize,
    pub static_on_miss: bool,
}

/// The address of no branch.
const EMPTY: u64 = u64::MAX;

impl BranchTargets {
    pub fn new(buffer: &TargetBuffer) -> BranchTargets {
        BranchTargets {
            entries: vec![(EMPTY, 0); buffer.entries as usize],
            ways: buffer.ways as usize,
            static_on_miss: buffer.static_on_miss,
        }
    }

    fn set(&self, address: u64) -> std::ops::Range<usize> {
        let first = (address >> 2) as usize & (self.entries.len() / self.ways - 1);
        first * self.ways..(first + 1) * self.ways
    }

    /// The target of a branch, if the buffer has it.
    pub fn find(&self, address: u64) -> Option<u64> {
        let set = &self.entries[self.set(address)];
        set.iter().find(|(branch, _)| *branch == address).map(|&(_, target)| target)
    }

    /// Enters the target of a taken branch, in place of the branch of its set that was taken longest ago.
    pub fn enter(&mut self, address: u64, target: u64) {
        let set = self.set(address);
        let set = &mut self.entries[set];
        let position = set.iter().position(|(branch, _)| *branch == address).unwrap_or(set.len() - 1);
        set[..=position].rotate_right(1);
        set[0] = (address, target);
    }
}
