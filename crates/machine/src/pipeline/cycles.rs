//! Cycles, each in one class.

use std::fmt;

use super::description::WIDEST;

/// Levels behind the first cache that are told apart; what is farther counts as the last.
pub(crate) const LEVELS: usize = 6;

/// What a cycle was spent for. An instruction is waited for until it is issued; if several things keep it, the
/// cycles go to what begins the way there: first what keeps it from arriving at the issue stage (**dry**), then
/// what keeps it there longest (**frozen**).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// So many instructions were issued.
    Issued(u8),
    /// Dry: control went elsewhere, as predicted.
    TakenBranch,
    /// Dry: a prediction was wrong.
    Mispredict,
    /// Dry: the translation of an instruction's address was missing.
    InstructionTranslation,
    /// Dry: instructions came from this level; 1 is behind the first cache.
    InstructionMiss(u8),
    /// Dry: the privileged architecture library was called.
    CallPal,
    /// Dry: the system emulated an instruction that the processor has not.
    Emulation,
    /// Frozen: an operand was not computed yet, or an earlier result not written.
    Operand,
    /// Frozen: a unit was occupied, or a rule kept instructions apart.
    Unit,
    /// Frozen: data came from this level; 1 is behind the first cache.
    DataMiss(u8),
    /// Frozen: the translation of the address of data was missing.
    DataTranslation,
    /// Frozen: more loads were missing than the processor can follow.
    OutstandingMisses,
    /// Frozen: the write buffer was full.
    WriteBuffer,
    /// Frozen: a barrier waited for what was before it.
    Barrier,
    /// Frozen: an instruction was issued in vain, and came back.
    Replay,
}

/// Where stall cycles come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// No stall.
    Issuing,
    /// There was no instruction to issue: the instruction side.
    Dry,
    /// There was one, but it could not be issued: the data side.
    Frozen,
}

/// How many kinds of cycles there are, and one place for what is none.
pub(crate) const CAUSES: usize = MISSES + 2 * LEVELS;
const SINGLE: usize = WIDEST + 1;
const MISSES: usize = SINGLE + 12;

impl Cause {
    /// All of them, issuing first, then dry, then frozen.
    pub fn all() -> impl Iterator<Item = Cause> {
        use Cause::*;
        let levels = 1..=LEVELS as u8;
        let dry = [TakenBranch, Mispredict, InstructionTranslation];
        let frozen = [DataTranslation, OutstandingMisses, WriteBuffer, Barrier, Replay];
        (1..=WIDEST as u8)
            .map(Issued)
            .chain(dry)
            .chain(levels.clone().map(InstructionMiss))
            .chain([CallPal, Emulation, Operand, Unit])
            .chain(levels.map(DataMiss))
            .chain(frozen)
    }

    /// A number below [`CAUSES`].
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
            Cause::InstructionMiss(level) => MISSES + level as usize - 1,
            Cause::DataMiss(level) => MISSES + LEVELS + level as usize - 1,
        }
    }

    /// Where it belongs.
    pub const fn side(self) -> Side {
        use Cause::*;
        match self {
            Issued(_) => Side::Issuing,
            TakenBranch | Mispredict | InstructionTranslation | InstructionMiss(_) | CallPal | Emulation => {
                Side::Dry
            }
            Operand | Unit | DataMiss(_) | DataTranslation | OutstandingMisses | WriteBuffer | Barrier
            | Replay => Side::Frozen,
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
        };
        f.pad(name)
    }
}

/// Numbers of cycles of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycles(pub(crate) [u64; CAUSES]);

impl Default for Cycles {
    fn default() -> Cycles {
        Cycles([0; CAUSES])
    }
}

impl Cycles {
    /// Of one kind.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause.index()]
    }

    /// All cycles.
    pub fn total(&self) -> u64 {
        self.0[1..].iter().sum()
    }

    /// Of one side.
    pub fn of_side(&self, side: Side) -> u64 {
        Cause::all().filter(|cause| cause.side() == side).map(|cause| self.of(cause)).sum()
    }

    /// Instructions that were issued.
    pub fn instructions(&self) -> u64 {
        (0..).zip(&self.0[..=WIDEST]).map(|(each, cycles)| each * cycles).sum()
    }

    /// Those in which instructions or data came from a level: 1 is behind the first cache.
    pub fn from_level(&self, level: u8) -> u64 {
        self.of(Cause::InstructionMiss(level)) + self.of(Cause::DataMiss(level))
    }

    /// The kinds of which there are any.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::all().map(|cause| (cause, self.of(cause))).filter(|&(_, cycles)| cycles > 0)
    }

    /// What was spent since `earlier`.
    pub fn since(&self, earlier: &Cycles) -> Cycles {
        let mut difference = self.clone();
        for (now, before) in difference.0.iter_mut().zip(&earlier.0) {
            *now -= before;
        }
        difference
    }

    /// Adds others.
    pub fn add(&mut self, others: &Cycles) {
        for (sum, other) in self.0.iter_mut().zip(&others.0) {
            *sum += other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_place() {
        let mut seen = [0; CAUSES];
        Cause::all().for_each(|cause| seen[cause.index()] += 1);
        assert!(seen[1..].iter().all(|&times| times == 1) && seen[0] == 0);
    }
}
