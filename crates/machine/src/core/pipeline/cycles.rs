//! CPI stacks: each cycle is attributed to one cause.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::description::MAX_ISSUE;
use crate::observe::sampling::{Estimate, WindowSums};

/// Levels beyond L1 that are distinguished; the last one includes all beyond it.
pub(crate) const LEVELS: usize = 6;

/// The cause of a cycle. The cycles until an instruction is issued are attributed in the order of its way:
/// first to what delays its arrival at the issue stage (**front-end stalls**, which DEC calls "dry"), then to
/// what keeps it there longest (**back-end stalls**, "frozen").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// This number of instructions was issued; out of order, retired.
    Issued(u8),
    /// Front end: a taken branch, predicted correctly.
    TakenBranch,
    /// Front end: a misprediction.
    Mispredict,
    /// Front end, out of order: the target of a taken branch was known only when it was decoded.
    Misfetch,
    /// Front end: the TLB missed an instruction's address.
    InstructionTranslation,
    /// Front end: instructions came from this level; 1 is the one after L1.
    InstructionMiss(u8),
    /// Front end: a call of the privileged architecture library.
    CallPal,
    /// Front end: the system emulated an instruction that the processor lacks.
    Emulation,
    /// Back end: an operand was not ready, or an earlier result not written.
    Operand,
    /// Back end: a unit was occupied, or a rule kept instructions apart.
    Unit,
    /// Back end: data came from this level; 1 is the one after L1.
    DataMiss(u8),
    /// Back end: the TLB missed an address of data.
    DataTranslation,
    /// Back end: the miss address file was full.
    OutstandingMisses,
    /// Back end: the write buffer was full.
    WriteBuffer,
    /// Back end: a barrier waited for earlier accesses.
    Barrier,
    /// Back end: an instruction was replayed.
    Replay,
    /// Back end, out of order: a load waited for the data of an older store.
    Forwarding,
}

/// The part of the pipeline that a cycle is attributed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipelineSide {
    /// No stall: instructions were issued.
    Issuing,
    /// The front end had no instruction to issue.
    FrontEnd,
    /// There was an instruction, and the back end could not issue it.
    BackEnd,
}

/// The number of causes, and one index for none.
pub(crate) const CAUSES: usize = MISSES + 2 * LEVELS;
const SINGLE: usize = MAX_ISSUE + 1;
const MISSES: usize = SINGLE + 14;

impl Cause {
    /// All causes: issuing first, then the front end, then the back end.
    pub fn all() -> impl Iterator<Item = Cause> {
        use Cause::*;
        let levels = 1..=LEVELS as u8;
        let front_end_stall = [TakenBranch, Mispredict, Misfetch, InstructionTranslation];
        let back_end_stall = [DataTranslation, OutstandingMisses, WriteBuffer, Barrier, Replay, Forwarding];
        (1..=MAX_ISSUE as u8)
            .map(Issued)
            .chain(front_end_stall)
            .chain(levels.clone().map(InstructionMiss))
            .chain([CallPal, Emulation, Operand, Unit])
            .chain(levels.map(DataMiss))
            .chain(back_end_stall)
    }

    /// An index below [`CAUSES`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        match self {
            Cause::Issued(number) => number as usize,
            Cause::TakenBranch => SINGLE,
            Cause::Mispredict => SINGLE + 1,
            Cause::InstructionTranslation => SINGLE + 2,
            Cause::CallPal => SINGLE + 3,
            Cause::Emulation => SINGLE + 4,
            Cause::Operand => SINGLE + 5,
            Cause::Unit => SINGLE + 6,
            Cause::DataTranslation => SINGLE + 7,
            Cause::OutstandingMisses => SINGLE + 8,
            Cause::WriteBuffer => SINGLE + 9,
            Cause::Barrier => SINGLE + 10,
            Cause::Replay => SINGLE + 11,
            Cause::Misfetch => SINGLE + 12,
            Cause::Forwarding => SINGLE + 13,
            Cause::InstructionMiss(level) => MISSES + level as usize - 1,
            Cause::DataMiss(level) => MISSES + LEVELS + level as usize - 1,
        }
    }

    /// The part of the pipeline.
    pub const fn side(self) -> PipelineSide {
        use Cause::*;
        match self {
            Issued(_) => PipelineSide::Issuing,
            TakenBranch
            | Mispredict
            | Misfetch
            | InstructionTranslation
            | InstructionMiss(_)
            | CallPal
            | Emulation => PipelineSide::FrontEnd,
            Operand | Unit | DataMiss(_) | DataTranslation | OutstandingMisses | WriteBuffer | Barrier
            | Replay | Forwarding => PipelineSide::BackEnd,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Cause::Issued(number) => return write!(f, "issued {number}"),
            Cause::InstructionMiss(level) => return write!(f, "instructions from level {}", level + 1),
            Cause::DataMiss(level) => return write!(f, "data from level {}", level + 1),
            Cause::TakenBranch => "taken branches",
            Cause::Mispredict => "mispredictions",
            Cause::InstructionTranslation => "translation of instructions",
            Cause::CallPal => "PAL calls",
            Cause::Emulation => "emulation",
            Cause::Operand => "operands",
            Cause::Unit => "units",
            Cause::DataTranslation => "translation of data",
            Cause::OutstandingMisses => "outstanding misses",
            Cause::WriteBuffer => "write buffer",
            Cause::Barrier => "barriers",
            Cause::Replay => "replay traps",
            Cause::Misfetch => "targets known late",
            Cause::Forwarding => "store forwarding",
        };
        f.pad(name)
    }
}

/// Cycles by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycles(pub(crate) [u64; CAUSES]);

impl Default for Cycles {
    fn default() -> Cycles {
        Cycles([0; CAUSES])
    }
}

impl Cycles {
    /// Cycles of one cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause.index()]
    }

    /// All cycles.
    pub fn total(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// Cycles of one part.
    pub fn of_side(&self, side: PipelineSide) -> u64 {
        Cause::all().filter(|cause| cause.side() == side).map(|cause| self.of(cause)).sum()
    }

    /// Instructions issued.
    pub fn instructions(&self) -> u64 {
        (0..).zip(&self.0[..=MAX_ISSUE]).map(|(each, cycles)| each * cycles).sum()
    }

    /// Cycles in which instructions or data came from a level: 1 is the one after L1.
    pub fn from_level(&self, level: u8) -> u64 {
        self.of(Cause::InstructionMiss(level)) + self.of(Cause::DataMiss(level))
    }

    /// The causes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::all().map(|cause| (cause, self.of(cause))).filter(|&(_, cycles)| cycles > 0)
    }

    /// The difference since `earlier`.
    pub fn since(&self, earlier: &Cycles) -> Cycles {
        let mut difference = self.clone();
        for (now, before) in difference.0.iter_mut().zip(&earlier.0) {
            *now -= before;
        }
        difference
    }

    /// All cycles at index 0, which is no cause, and the causes at theirs: what a sample's windows add up.
    pub(crate) fn with_total(&self) -> [u64; CAUSES] {
        let mut sums = self.0;
        sums[0] = self.total();
        sums
    }

    /// Adds others.
    pub fn add(&mut self, others: &Cycles) {
        for (totals, other) in self.0.iter_mut().zip(&others.0) {
            *totals += other;
        }
    }
}

/// The measurements in the windows of a sample: cycles, by cause.
pub type SampledCycles = WindowSums<CAUSES>;

impl SampledCycles {
    /// Cycles of one cause per instruction.
    pub fn of(&self, cause: Cause) -> Estimate {
        self.estimate(cause.index())
    }

    /// The causes that occurred in windows.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, Estimate)> {
        let of = |cause: Cause| (self.sum(cause.index()) > 0).then(|| (cause, self.of(cause)));
        Cause::all().filter_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_index() {
        let mut seen = [0; CAUSES];
        Cause::all().for_each(|cause| seen[cause.index()] += 1);
        assert!(seen[1..].iter().all(|&times| times == 1) && seen[0] == 0);
    }
}
