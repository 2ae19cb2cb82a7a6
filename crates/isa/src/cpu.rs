//! Implementations of the architecture, by the instructions they have.

use crate::table::Extension;
use std::fmt;
use std::str::FromStr;

/// An implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuModel {
    /// 21064.
    Ev4,
    /// 21164.
    Ev5,
    /// 21164A: bytes and words.
    Ev56,
    /// 21164PC: bytes and words, packed operations.
    Pca56,
    /// 21264: also square roots and moves between the register files.
    Ev6,
    /// 21264A: also counts of bits.
    Ev67,
}

/// Name, value of `implver`, features reported by `amask`.
struct Description(CpuModel, &'static str, u64, u64);

// Bits of AMASK (Alpha Architecture Reference Manual, appendix D).
const BWX: u64 = 1 << 0;
const FIX: u64 = 1 << 1;
const CIX: u64 = 1 << 2;
const MVI: u64 = 1 << 8;
const PRECISE_TRAPS: u64 = 1 << 9;
const PREFETCH_MODIFY: u64 = 1 << 12;

static DESCRIPTIONS: [Description; 6] = [
    Description(CpuModel::Ev4, "ev4", 0, 0),
    Description(CpuModel::Ev5, "ev5", 1, 0),
    Description(CpuModel::Ev56, "ev56", 1, BWX),
    Description(CpuModel::Pca56, "pca56", 1, BWX | MVI),
    Description(CpuModel::Ev6, "ev6", 2, BWX | FIX | MVI | PRECISE_TRAPS),
    Description(CpuModel::Ev67, "ev67", 2, BWX | FIX | CIX | MVI | PRECISE_TRAPS | PREFETCH_MODIFY),
];

impl CpuModel {
    /// Every implementation, oldest first.
    pub const ALL: [CpuModel; 6] =
        [CpuModel::Ev4, CpuModel::Ev5, CpuModel::Ev56, CpuModel::Pca56, CpuModel::Ev6, CpuModel::Ev67];

    fn description(self) -> &'static Description {
        &DESCRIPTIONS[self as usize]
    }

    /// The features it has, as bits: `amask` clears these bits of its operand.
    pub fn amask(self) -> u64 {
        self.description().3
    }

    /// The value of `implver`: the major version of the implementation.
    pub fn implver(self) -> u64 {
        self.description().2
    }

    /// Whether it has the instructions of an extension.
    pub fn has(self, extension: Extension) -> bool {
        let feature = match extension {
            Extension::Base => 0,
            Extension::Bwx => BWX,
            Extension::Fix => FIX,
            Extension::Cix => CIX,
            Extension::Mvi => MVI,
        };
        self.amask() & feature == feature
    }
}

impl fmt::Display for CpuModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.description().1)
    }
}

/// A name that is not an implementation's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown Alpha implementation {0:?}: use ev4, ev5, ev56, pca56, ev6 or ev67")]
pub struct UnknownCpu(String);

impl FromStr for CpuModel {
    type Err = UnknownCpu;

    fn from_str(name: &str) -> Result<CpuModel, UnknownCpu> {
        let known = DESCRIPTIONS.iter().find(|description| description.1 == name);
        known.map(|description| description.0).ok_or_else(|| UnknownCpu(name.into()))
    }
}
