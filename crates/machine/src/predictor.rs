//! Branch prediction.

use serde::Deserialize;

use crate::description::{Checked, require};

/// How a processor predicts: the section `[predictor]` of a machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predictor {
    /// How the direction of conditional branches is predicted.
    pub scheme: PredictorScheme,
    /// Counters; a power of two.
    #[serde(default)]
    pub entries: u32,
    /// Bits of a counter.
    #[serde(default = "one")]
    pub bits: u8,
    /// Branches whose directions `gshare` mixes with the address.
    #[serde(default)]
    pub history: u8,
    /// The counters are kept with the lines of L1: those of a line that is filled begin with the static
    /// prediction.
    #[serde(default)]
    pub reset_by_refill: bool,
    /// Entries of the stack of return addresses; 0 for none, and returns are predicted as jumps are.
    #[serde(default)]
    pub return_stack: u32,
    /// Entries of the table with the last target of each jump, a power of two; 0 for none, and the low 16 bits
    /// of a jump's target are what its hint says.
    #[serde(default)]
    pub targets: u32,
}

/// How the direction of conditional branches is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorScheme {
    /// Backward branches are taken, forward ones are not.
    Static,
    /// Saturating counters, found by the branch's address but for the two lowest bits.
    Counters,
    /// Saturating counters, found by the address and the directions of the last branches.
    Gshare,
}

/// Predictions and mispredictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predictions {
    /// Conditional branches.
    pub branches: PredictionCount,
    /// Jumps to an address in a register that are no returns.
    pub jumps: PredictionCount,
    /// Returns.
    pub returns: PredictionCount,
}

/// Predictions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionCount {
    /// Executed.
    pub executed: u64,
    /// Mispredicted.
    pub mispredicted: u64,
}

fn one() -> u8 {
    1
}

impl Predictor {
    /// Says which field is wrong, and why.
    pub(crate) fn check(&self) -> Checked {
        let require =
            |holds: bool, field: &str, reason: String| require(holds, format!("predictor.{field}"), reason);
        let table = |field: &str, number: u32| {
            let reason = format!("{number} is not a power of two up to 16,777,216");
            require(number.is_power_of_two() && number <= 1 << 24, field, reason)
        };
        if self.scheme != PredictorScheme::Static {
            table("entries", self.entries)?;
        }
        if self.targets != 0 {
            table("targets", self.targets)?;
        }
        require((1..=7).contains(&self.bits), "bits", format!("{} is not 1 to 7", self.bits))?;
        require(self.history <= 32, "history", format!("{} is more than 32", self.history))?;
        let stack = self.return_stack;
        require(stack <= 1 << 16, "return_stack", format!("{stack} is more than 65,536"))
    }
}

impl PredictionCount {
    fn add(&mut self, is_right: bool) -> bool {
        self.executed += 1;
        self.mispredicted += u64::from(!is_right);
        is_right
    }
}

/// A counter whose line was refilled, and whose branch was not executed since.
const UNSET: u8 = u8::MAX;

/// The state of a predictor.
pub struct PredictorState {
    scheme: PredictorScheme,
    /// The highest value of a counter.
    highest: u8,
    counters: Vec<u8>,
    reset_by_refill: bool,
    history: u64,
    history_mask: u64,
    stack: Vec<u64>,
    /// The number of addresses that were pushed, less those that were popped.
    depth: usize,
    targets: Vec<u64>,
    counts: Predictions,
}

impl PredictorState {
    /// The initial state: all counters are weakly not taken.
    pub fn new(description: &Predictor) -> PredictorState {
        let highest = ((1u16 << description.bits) - 1) as u8;
        let entries = if description.scheme == PredictorScheme::Static { 1 } else { description.entries };
        PredictorState {
            scheme: description.scheme,
            highest,
            counters: vec![highest / 2; entries as usize],
            reset_by_refill: description.reset_by_refill && description.scheme == PredictorScheme::Counters,
            history: 0,
            history_mask: (1 << description.history) - 1,
            stack: vec![0; description.return_stack as usize],
            depth: 0,
            targets: vec![0; description.targets as usize],
            counts: Predictions::default(),
        }
    }

    /// Predictions so far.
    pub fn counts(&self) -> Predictions {
        self.counts
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.counts = Predictions::default();
    }

    /// Executes a conditional branch at `address` to `target`. Returns whether it was predicted correctly.
    #[inline]
    pub fn branch(&mut self, address: u64, target: u64, is_taken: bool) -> bool {
        if self.scheme == PredictorScheme::Static {
            return self.counts.branches.add((target <= address) == is_taken);
        }
        let index = (address >> 2 ^ self.history) as usize & (self.counters.len() - 1);
        let counter = &mut self.counters[index];
        if *counter == UNSET {
            *counter = self.highest / 2 + u8::from(target <= address);
        }
        let is_right = (*counter > self.highest / 2) == is_taken;
        *counter = if is_taken { (*counter + 1).min(self.highest) } else { counter.saturating_sub(1) };
        if self.scheme == PredictorScheme::Gshare {
            self.history = (self.history << 1 | u64::from(is_taken)) & self.history_mask;
        }
        self.counts.branches.add(is_right)
    }

    /// Executes a jump at `address` to `target`; its hint is `hinted`. Returns whether it was predicted correctly.
    pub fn jump(&mut self, address: u64, hinted: u64, target: u64) -> bool {
        let is_right = self.target(address, hinted, target);
        self.counts.jumps.add(is_right)
    }

    /// Pushes the return address of a call.
    pub fn call(&mut self, return_address: u64) {
        if !self.stack.is_empty() {
            let top = self.depth % self.stack.len();
            self.stack[top] = return_address;
            self.depth += 1;
        }
    }

    /// Executes a return at `address` to `target`. Returns whether it was predicted correctly. A stack that
    /// overflowed has lost the oldest addresses.
    pub fn ret(&mut self, address: u64, target: u64) -> bool {
        let is_right = if self.stack.is_empty() {
            self.target(address, 0, target)
        } else {
            self.depth = self.depth.checked_sub(1).unwrap_or(self.stack.len() - 1);
            self.stack[self.depth % self.stack.len()] == target
        };
        self.counts.returns.add(is_right)
    }

    fn target(&mut self, address: u64, hinted: u64, target: u64) -> bool {
        if self.targets.is_empty() {
            return hinted as u16 == target as u16;
        }
        let index = (address >> 2) as usize & (self.targets.len() - 1);
        std::mem::replace(&mut self.targets[index], target) == target
    }

    /// A line was filled into L1: its branches are predicted statically the first time.
    pub fn refilled(&mut self, line: u64, bytes: u64) {
        if self.reset_by_refill {
            for address in (line..line + bytes).step_by(4) {
                let index = (address >> 2) as usize & (self.counters.len() - 1);
                self.counters[index] = UNSET;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictor(scheme: PredictorScheme, bits: u8) -> Predictor {
        Predictor {
            scheme,
            entries: 1024,
            bits,
            history: if scheme == PredictorScheme::Gshare { 4 } else { 0 },
            reset_by_refill: false,
            return_stack: 2,
            targets: 0,
        }
    }

    /// Wrong predictions of a backward branch with these directions.
    fn wrong(predictor: &Predictor, directions: impl Iterator<Item = bool>) -> u64 {
        let mut predicting = PredictorState::new(predictor);
        for is_taken in directions {
            predicting.branch(0x1000, 0x800, is_taken);
        }
        predicting.counts().branches.mispredicted
    }

    #[test]
    fn a_loop_of_ten_runs() {
        let directions = || (0..100).map(|number| number % 10 != 9);
        // A one-bit counter mispredicts the last and the first iteration of each run; two bits only the last, but
        // for the first run.
        assert_eq!(wrong(&predictor(PredictorScheme::Counters, 1), directions()), 20);
        assert_eq!(wrong(&predictor(PredictorScheme::Counters, 2), directions()), 11);
        assert_eq!(wrong(&predictor(PredictorScheme::Static, 1), directions()), 10);
    }

    #[test]
    fn gshare_learns_alternating_branches() {
        let directions = || (0..1000).map(|number| number % 2 == 0);
        assert!(wrong(&predictor(PredictorScheme::Gshare, 2), directions()) < 10);
        assert!(wrong(&predictor(PredictorScheme::Counters, 2), directions()) >= 499);
    }

    #[test]
    fn an_overflowed_stack_loses_the_oldest_return() {
        let mut predicting = PredictorState::new(&predictor(PredictorScheme::Static, 1));
        [0x104, 0x204, 0x304].iter().for_each(|&address| predicting.call(address));
        assert!(predicting.ret(0, 0x304) && predicting.ret(0, 0x204) && !predicting.ret(0, 0x104));
        assert_eq!(predicting.counts().returns, PredictionCount { executed: 3, mispredicted: 1 });
    }

    #[test]
    fn jumps_are_predicted_by_hint_or_by_table() {
        let mut by_hint = PredictorState::new(&predictor(PredictorScheme::Static, 1));
        assert!(by_hint.jump(0x100, 0x12_3000, 0x45_3000) && !by_hint.jump(0x100, 0x3000, 0x3004));
        let mut by_table =
            PredictorState::new(&Predictor { targets: 16, ..predictor(PredictorScheme::Static, 1) });
        assert!(!by_table.jump(0x100, 0x3000, 0x3000) && by_table.jump(0x100, 0, 0x3000));
    }

    #[test]
    fn refilled_lines_are_predicted_statically() {
        let mut predicting = PredictorState::new(&Predictor {
            reset_by_refill: true,
            ..predictor(PredictorScheme::Counters, 1)
        });
        assert!(!predicting.branch(0x1000, 0x800, true) && predicting.branch(0x1000, 0x800, true));
        assert!(!predicting.branch(0x1000, 0x800, false));
        predicting.refilled(0x1000, 32);
        assert!(predicting.branch(0x1000, 0x800, true));
        predicting.refilled(0x1000, 32);
        assert!(predicting.branch(0x1000, 0x2000, false));
    }
}
