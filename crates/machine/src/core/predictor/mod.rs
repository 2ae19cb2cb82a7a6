//! Branch prediction: predictors of directions, each a module, the branch target buffer, and the stack of return addresses.

mod bimodal;
mod block_end;
mod counters;
mod direction;
mod gshare;
mod indirect;
mod path;
mod return_stack;
mod scheme;
mod static_prediction;
mod tage;
mod target_buffer;
mod tournament;
mod two_level;

use serde::Deserialize;

use descriptions::{CheckResult, require};

pub(crate) use block_end::BlockEnd;
use counters::SaturatingCounters;
use direction::{ConditionalBranch, DirectionPredictor};
pub use indirect::TargetCache;
use indirect::{JumpPath, JumpTargets};
pub(crate) use path::SpeculativeState;
use return_stack::ReturnStack;
pub use scheme::PredictorScheme;
use static_prediction::StaticPredictor;
use target_buffer::BranchTargets;
pub use target_buffer::TargetBuffer;

/// How a processor predicts: the section `[predictor]` of a machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predictor {
    /// How the direction of conditional branches is predicted.
    pub scheme: PredictorScheme,
    /// Counters; a power of two. Of `tage`, those of the table without tags; of `tournament`, those found by the history
    /// of all branches.
    #[serde(default)]
    pub entries: u32,
    /// Bits of a counter.
    #[serde(default = "one")]
    pub bits: u8,
    /// Branches whose directions find a counter of `gshare`, `two-level` and `tournament`.
    #[serde(default)]
    pub history: u8,
    /// Of `two-level`: the number of branches with histories of their own (PAs); 0 if all share one (GAs).
    #[serde(default)]
    pub histories: u32,
    /// Of `tournament`: the predictor by the branches' own histories.
    pub local: Option<LocalHistories>,
    /// Of `tage`: its tables with tags.
    pub tagged: Option<TaggedTables>,
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
    /// The branch target buffer of an out-of-order core.
    pub btb: Option<TargetBuffer>,
    /// The targets of jumps by the path to them, of an out-of-order core; jumps that it does not have are predicted without it.
    pub indirect: Option<TargetCache>,
}

/// A predictor by the branches' own histories.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalHistories {
    /// Branches with histories of their own; a power of two.
    pub histories: u32,
    /// Directions in a history.
    pub history: u8,
    /// Counters; a power of two.
    pub entries: u32,
    /// Bits of a counter.
    pub bits: u8,
}

/// The tables of TAGE with tags.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaggedTables {
    /// Entries of each table; a power of two.
    pub entries: u32,
    /// Bits of a tag.
    pub tag_bits: u8,
    /// Branches whose directions find an entry, of each table: ascending.
    pub histories: Vec<u32>,
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
    pub(crate) fn check(&self) -> CheckResult {
        let require =
            |holds: bool, field: &str, reason: String| require(holds, format!("predictor.{field}"), reason);
        let table = |field: &str, number: u32| {
            let reason = format!("{number} is not a power of two up to 16,777,216");
            require(number.is_power_of_two() && number <= 1 << 24, field, reason)
        };
        let bits =
            |field: &str, bits: u8| require((1..=7).contains(&bits), field, format!("{bits} is not 1 to 7"));
        let length =
            |field: &str, length: u8| require(length <= 32, field, format!("{length} is more than 32"));
        if self.scheme != PredictorScheme::Static {
            table("entries", self.entries)?;
        }
        if self.targets != 0 {
            table("targets", self.targets)?;
        }
        if self.histories != 0 {
            table("histories", self.histories)?;
        }
        bits("bits", self.bits)?;
        length("history", self.history)?;
        let reason = "the histories of branches have at most 31 directions".into();
        require(self.histories == 0 || self.history < 32, "history", reason)?;
        if self.scheme == PredictorScheme::Tournament {
            let reason =
                "a tournament needs it: { histories = 1024, history = 10, entries = 1024, bits = 3 }";
            require(self.local.is_some(), "local", reason.into())?;
        }
        if let Some(local) = &self.local {
            table("local.histories", local.histories)?;
            table("local.entries", local.entries)?;
            bits("local.bits", local.bits)?;
            require(local.history < 32, "local.history", format!("{} is more than 31", local.history))?;
        }
        if self.scheme == PredictorScheme::Tage {
            let reason = "tage needs it: { entries = 1024, tag_bits = 9, histories = [5, 15, 44, 127] }";
            require(self.tagged.is_some(), "tagged", reason.into())?;
        }
        self.tagged.as_ref().map_or(Ok(()), TaggedTables::check)?;
        self.btb.as_ref().map_or(Ok(()), TargetBuffer::check)?;
        self.indirect.as_ref().map_or(Ok(()), TargetCache::check)?;
        let stack = self.return_stack;
        require(stack <= 1 << 16, "return_stack", format!("{stack} is more than 65,536"))
    }

    /// The predictor of directions.
    fn direction(&self) -> Box<dyn DirectionPredictor> {
        let counters = || SaturatingCounters::new(self.entries, self.bits);
        let history = self.history.into();
        match (self.scheme, &self.local, &self.tagged) {
            (PredictorScheme::Gshare, ..) => Box::new(gshare::Gshare { counters: counters(), history }),
            (PredictorScheme::TwoLevel, ..) => {
                Box::new(two_level::TwoLevel::new(counters(), self.histories, history))
            }
            (PredictorScheme::Tournament, Some(local), _) => {
                let own = SaturatingCounters::new(local.entries, local.bits);
                Box::new(tournament::Tournament {
                    local: two_level::TwoLevel::new(own, local.histories, local.history.into()),
                    global: two_level::TwoLevel::new(counters(), 0, history),
                    choice: counters(),
                    history,
                })
            }
            (PredictorScheme::Tage, _, Some(tagged)) => Box::new(tage::Tage::new(
                counters(),
                tagged.entries,
                tagged.tag_bits.into(),
                &tagged.histories,
            )),
            (PredictorScheme::Counters, ..) => {
                Box::new(bimodal::Bimodal::new(counters(), self.entries, self.reset_by_refill))
            }
            _ => Box::new(StaticPredictor),
        }
    }
}

impl TaggedTables {
    fn check(&self) -> CheckResult {
        let TaggedTables { entries, tag_bits, histories } = self;
        let reason = format!("{entries} is not a power of two from 2 to 16,777,216");
        let is_table = entries.is_power_of_two() && (2..=1 << 24).contains(entries);
        require(is_table, "predictor.tagged.entries", reason)?;
        let reason = format!("{tag_bits} is not 4 to 16");
        require((4..=16).contains(tag_bits), "predictor.tagged.tag_bits", reason)?;
        let reason = format!("{histories:?} are not 1 to 16 ascending lengths of 1 to 127");
        let is_ascending = histories.is_sorted_by(|one, next| one < next);
        let fits = histories.iter().all(|length| (1..=127).contains(length));
        let is_possible = (1..=16).contains(&histories.len()) && is_ascending && fits;
        require(is_possible, "predictor.tagged.histories", reason)
    }
}

impl PredictionCount {
    fn add(&mut self, is_right: bool) -> bool {
        self.executed += 1;
        self.mispredicted += u64::from(!is_right);
        is_right
    }
}

/// The state of a predictor.
pub struct PredictorState {
    direction: Box<dyn DirectionPredictor>,
    /// The directions of the last branches, the last one in the lowest bit.
    history: u128,
    stack: ReturnStack,
    targets: Vec<u64>,
    buffer: Option<BranchTargets>,
    /// The path to the next jump, and targets by it.
    path: JumpPath,
    indirect: Option<JumpTargets>,
    counts: Predictions,
}

impl PredictorState {
    /// The initial state: all counters are weakly not taken.
    pub fn new(description: &Predictor) -> PredictorState {
        PredictorState {
            direction: description.direction(),
            history: 0,
            stack: ReturnStack::new(description.return_stack),
            targets: vec![0; description.targets as usize],
            buffer: description.btb.as_ref().map(BranchTargets::new),
            path: JumpPath::default(),
            indirect: description.indirect.map(JumpTargets::new),
            counts: Predictions::default(),
        }
    }

    /// Predictions so far.
    pub fn counts(&self) -> Predictions {
        self.counts
    }

    /// Adds the counts of another predictor.
    pub fn add_counts(&mut self, other: &PredictorState) {
        let Predictions { branches, jumps, returns } = other.counts;
        let own = [&mut self.counts.branches, &mut self.counts.jumps, &mut self.counts.returns];
        for (own, other) in own.into_iter().zip([branches, jumps, returns]) {
            own.executed += other.executed;
            own.mispredicted += other.mispredicted;
        }
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.counts = Predictions::default();
    }

    /// Executes a conditional branch at `address` to `target`. Returns whether it was predicted correctly.
    #[inline]
    pub fn branch(&mut self, address: u64, target: u64, is_taken: bool) -> bool {
        let branch = ConditionalBranch { address, target, history: self.history };
        let is_right = self.direction.train(branch, is_taken) == is_taken;
        self.history = self.history << 1 | u128::from(is_taken);
        self.counts.branches.add(is_right)
    }

    /// Executes a jump at `address` to `target`; its hint is `hinted`. Returns whether it was predicted correctly.
    pub fn jump(&mut self, address: u64, hinted: u64, target: u64) -> bool {
        let is_right = self.target(address, hinted, target);
        self.counts.jumps.add(is_right)
    }

    /// Pushes the return address of a call.
    pub fn call(&mut self, return_address: u64) {
        self.stack.push(return_address);
    }

    /// Executes a return at `address` to `target`. Returns whether it was predicted correctly. A stack that
    /// overflowed has lost the oldest addresses.
    pub fn ret(&mut self, address: u64, target: u64) -> bool {
        let is_right = match self.stack.is_absent() {
            true => self.target(address, 0, target),
            false => self.stack.pop() == target,
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
        self.direction.refilled(line, bytes);
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
            histories: 0,
            local: None,
            tagged: None,
            reset_by_refill: false,
            return_stack: 2,
            targets: 0,
            btb: None,
            indirect: None,
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

    /// Wrong predictions, of the second half, of a branch whose directions repeat after a number of branches.
    fn wrong_of_period(predictor: &Predictor, period: usize) -> u64 {
        let mut predicting = PredictorState::new(predictor);
        let directions: Vec<bool> =
            (0..period as u64).map(|one| one.wrapping_mul(0x9e37_79b9) >> 7 & 1 == 1).collect();
        assert!(directions.contains(&true) && directions.contains(&false));
        for number in 0..20_000 {
            if number == 10_000 {
                predicting.reset_counts();
            }
            predicting.branch(0x1000, 0x800, directions[number % period]);
        }
        predicting.counts().branches.mispredicted
    }

    #[test]
    fn histories_learn_patterns_as_long_as_they_are() {
        let local = LocalHistories { histories: 64, history: 10, entries: 1024, bits: 3 };
        let tagged = TaggedTables { entries: 1024, tag_bits: 9, histories: vec![5, 15, 44, 100] };
        let with = |scheme, history, histories| Predictor { history, histories, ..predictor(scheme, 2) };
        let tournament = Predictor { local: Some(local), ..with(PredictorScheme::Tournament, 10, 0) };
        let tage = Predictor { tagged: Some(tagged), ..with(PredictorScheme::Tage, 0, 0) };
        let [global, own] = [0, 64].map(|histories| with(PredictorScheme::TwoLevel, 10, histories));
        for learning in [&global, &own, &tournament, &tage] {
            assert_eq!(wrong_of_period(learning, 7), 0, "{learning:?}");
        }
        // A period that ten branches do not tell apart.
        assert!(wrong_of_period(&tage, 60) < 100, "{}", wrong_of_period(&tage, 60));
        assert!(wrong_of_period(&predictor(PredictorScheme::Counters, 2), 60) > 2_000);
    }

    #[test]
    fn a_branch_target_buffer_keeps_the_last_used_targets() {
        let mut targets = BranchTargets::new(&TargetBuffer { entries: 4, ways: 2, static_on_miss: false });
        // The same set: every eighth byte.
        [0x100, 0x108, 0x100, 0x110].iter().for_each(|&branch| targets.enter(branch, branch + 0x1000));
        assert_eq!(
            [0x100, 0x108, 0x110].map(|branch| targets.find(branch)),
            [Some(0x1100), None, Some(0x1110)]
        );
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
