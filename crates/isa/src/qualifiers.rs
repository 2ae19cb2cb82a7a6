//! Qualifiers of floating-point operations: rounding and trapping modes, coded in the function
//! (Alpha Architecture Reference Manual, 4.7.9 and appendix C).
//!
//! Bits of the 11-bit function: 10:8 traps, 7:6 rounding, 5:0 the operation.

/// How a result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `/c`: towards zero.
    Chopped,
    /// `/m`: towards minus infinity.
    MinusInfinity,
    /// No qualifier: to nearest; also of an operation that does not round.
    Normal,
    /// `/d`: as the FPCR says.
    Dynamic,
}

/// The qualifiers that an instruction carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qualifiers {
    /// How the result is rounded.
    pub rounding: Rounding,
    /// `/u`: underflow trap, or `/v`: overflow trap of an operation with an integer result.
    pub underflow: bool,
    /// `/s`: software completes the operation.
    pub software: bool,
    /// `/i`: inexact-result trap.
    pub inexact: bool,
}

impl Qualifiers {
    /// No qualifier.
    pub const NONE: Qualifiers =
        Qualifiers { rounding: Rounding::Normal, underflow: false, software: false, inexact: false };
}

/// Which qualifiers an operation may carry, and how they are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QualifierSet {
    /// None: the function is one exact value.
    Unqualified,
    /// VAX arithmetic and conversion: /c, and none, /u, /s or /su.
    VaxArithmetic,
    /// VAX comparison: none or /s.
    VaxCompare,
    /// VAX to integer: /c, and none, /v, /s or /sv.
    VaxToInteger,
    /// VAX from integer: /c or none.
    VaxFromInteger,
    /// IEEE arithmetic and conversion: any rounding, and none, /u, /su or /sui.
    IeeeArithmetic,
    /// IEEE comparison: none or /su.
    IeeeCompare,
    /// IEEE to integer: any rounding, and none, /v, /sv or /svi.
    IeeeToInteger,
    /// IEEE from integer: any rounding, and none or /sui.
    IeeeFromInteger,
    /// `cvtst`: none or /s; bit 9 of the function distinguishes it from `cvtts`.
    SingleToT,
    /// `cvtql`: none, /v or /sv; nothing is rounded and the field is 0.
    QuadToLong,
}

use QualifierSet::*;

/// The bits of a function that select the operation.
pub(crate) const OPERATION: u16 = 0x3f;

impl QualifierSet {
    /// The legal values of the trap field and of the rounding field, each as a set of bits.
    const fn legal(self) -> (u8, u8) {
        const ANY: u8 = 0b1111;
        const NORMAL: u8 = 0b0100;
        const CHOPPED: u8 = 0b0001;
        match self {
            Unqualified => (0, 0),
            VaxArithmetic | VaxToInteger => (0b0011_0011, NORMAL | CHOPPED),
            VaxCompare => (0b0001_0001, NORMAL),
            VaxFromInteger => (0b0000_0001, NORMAL | CHOPPED),
            IeeeArithmetic | IeeeToInteger => (0b1010_0011, ANY),
            IeeeCompare => (0b0010_0001, NORMAL),
            IeeeFromInteger => (0b1000_0001, ANY),
            SingleToT => (0b0100_0100, NORMAL),
            QuadToLong => (0b0010_0011, 0b0001),
        }
    }

    /// Whether `function` is `base`, an operation of this kind, with legal qualifiers.
    pub(crate) const fn admits(self, base: u16, function: u16) -> bool {
        if function == base {
            return true;
        }
        let (traps, roundings) = self.legal();
        (function ^ base) & OPERATION == 0
            && traps >> (function >> 8) & 1 == 1
            && roundings >> (function >> 6 & 3) & 1 == 1
    }

    /// The qualifiers in the fields of a legal `function`.
    pub(crate) fn decode(self, function: u16) -> Qualifiers {
        let rounding = match (self, function >> 6 & 3) {
            (Unqualified | QuadToLong, _) | (_, 2) => Rounding::Normal,
            (_, 0) => Rounding::Chopped,
            (_, 1) => Rounding::MinusInfinity,
            _ => Rounding::Dynamic,
        };
        let traps = function >> 8;
        match self {
            Unqualified => Qualifiers::NONE,
            SingleToT => Qualifiers { software: traps == 6, ..Qualifiers::NONE },
            _ => Qualifiers {
                rounding,
                underflow: traps & 1 != 0,
                software: traps & 4 != 0,
                inexact: traps & 2 != 0,
            },
        }
    }

    /// The function of an operation with these qualifiers, if they are legal.
    pub(crate) fn encode(self, base: u16, qualifiers: Qualifiers) -> Option<u16> {
        let traps = [0, 1, 2, 4, 5, 6, 7].into_iter();
        let functions = traps.flat_map(|traps| (0..4).map(move |rounding| traps << 8 | rounding << 6));
        let mut legal = functions.map(|fields| base & OPERATION | fields).filter(|f| self.admits(base, *f));
        legal.find(|function| self.decode(*function) == qualifiers)
    }

    /// The letter of the underflow or overflow trap.
    pub(crate) fn underflow_letter(self) -> char {
        if matches!(self, VaxToInteger | IeeeToInteger | QuadToLong) { 'v' } else { 'u' }
    }
}
