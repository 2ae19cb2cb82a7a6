//! Floating-point formats: numbers taken apart, and rounded and put together (IEEE 754-2019; *The RISC-V Instruction Set Manual*,
//! volume I, chapter "F").

use isa::RiscvFloatFormat;

/// Exceptions that operations accrue, as in `fflags`.
pub(crate) mod flag {
    /// Inexact.
    pub(crate) const NX: u64 = 1;
    /// Underflow.
    pub(crate) const UF: u64 = 2;
    /// Overflow.
    pub(crate) const OF: u64 = 4;
    /// Division by zero.
    pub(crate) const DZ: u64 = 8;
    /// Invalid operation.
    pub(crate) const NV: u64 = 16;
}

/// A rounding mode, by its number in instructions and in `frm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RiscvRounding {
    /// To the nearest number, to the even one of two.
    NearestEven,
    /// Towards zero.
    TowardsZero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To the nearest number, to the larger magnitude of two.
    NearestAway,
}

impl RiscvRounding {
    /// The mode with a number; the others are reserved.
    pub(crate) fn of_number(number: u64) -> Option<RiscvRounding> {
        use RiscvRounding::*;
        [NearestEven, TowardsZero, Down, Up, NearestAway].get(number as usize).copied()
    }

    /// Whether a magnitude is rounded up that lies between two numbers. `rest` compares what lies above the lower one with a half.
    fn rounds_up(self, is_negative: bool, is_odd: bool, rest: std::cmp::Ordering) -> bool {
        match self {
            RiscvRounding::NearestEven => rest.is_gt() || rest.is_eq() && is_odd,
            RiscvRounding::NearestAway => rest.is_ge(),
            RiscvRounding::TowardsZero => false,
            RiscvRounding::Down => is_negative,
            RiscvRounding::Up => !is_negative,
        }
    }
}

/// The layout of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    /// Bits of the fraction.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
}

pub(crate) const HALF: FloatLayout = FloatLayout { fraction: 10, exponent: 5 };
pub(crate) const SINGLE: FloatLayout = FloatLayout { fraction: 23, exponent: 8 };
pub(crate) const DOUBLE: FloatLayout = FloatLayout { fraction: 52, exponent: 11 };

/// The class of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// A significand, which is not 0, times a power of two.
    Finite,
    /// 0.
    Zero,
    /// Infinity.
    Infinity,
    /// Not a number.
    QuietNan,
    /// Not a number; operations on it are invalid.
    SignalingNan,
}

/// A number taken apart. A finite one is its significand times two to the power of its exponent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RiscvNumber {
    pub(crate) kind: NumberKind,
    pub(crate) is_negative: bool,
    pub(crate) exponent: i32,
    pub(crate) significand: u128,
}

impl RiscvNumber {
    pub(crate) fn is_nan(self) -> bool {
        matches!(self.kind, NumberKind::QuietNan | NumberKind::SignalingNan)
    }

    pub(crate) fn negated(self) -> RiscvNumber {
        RiscvNumber { is_negative: !self.is_negative, ..self }
    }

    /// An integer.
    pub(crate) fn integer(is_negative: bool, magnitude: u64) -> RiscvNumber {
        let kind = if magnitude == 0 { NumberKind::Zero } else { NumberKind::Finite };
        RiscvNumber {
            kind,
            is_negative: is_negative && magnitude != 0,
            exponent: 0,
            significand: magnitude.into(),
        }
    }
}

/// The quotient of a significand and a power of two, rounded to an integer: that, and whether it is inexact. The integer is less
/// than 2 to the power of 127.
pub(crate) fn shift_right(
    significand: u128,
    shift: u32,
    is_negative: bool,
    rounding: RiscvRounding,
) -> (u128, bool) {
    let (kept, rest) = match shift {
        0 => return (significand, false),
        1..=127 => (significand >> shift, significand << (128 - shift)),
        // All bits are behind the point: what remains is compared with a half.
        128 => (0, significand),
        _ => (0, u128::from(significand != 0)),
    };
    let up = rest != 0 && rounding.rounds_up(is_negative, kept & 1 != 0, rest.cmp(&(1 << 127)));
    (kept + u128::from(up), rest != 0)
}

impl FloatLayout {
    pub(crate) fn of(format: RiscvFloatFormat) -> FloatLayout {
        match format {
            RiscvFloatFormat::Half => HALF,
            RiscvFloatFormat::Single => SINGLE,
            RiscvFloatFormat::Double => DOUBLE,
        }
    }

    /// All of its bits.
    pub(crate) fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    pub(crate) fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The one result that is not a number.
    pub(crate) fn canonical_nan(self) -> u64 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    /// The exponent of the last bit of subnormal numbers' significands.
    fn least_exponent(self) -> i32 {
        2 - (1 << (self.exponent - 1)) - self.fraction as i32
    }

    /// The smallest normal number.
    pub(crate) fn smallest_normal(self) -> u64 {
        1 << self.fraction
    }

    pub(crate) fn unpack(self, bits: u64) -> RiscvNumber {
        use NumberKind::*;
        let fraction = bits & ((1 << self.fraction) - 1);
        let field = (bits & self.infinity()) >> self.fraction;
        let is_quiet = fraction >> (self.fraction - 1) != 0;
        let (kind, significand, exponent) = match field {
            0 if fraction == 0 => (Zero, 0, 0),
            0 => (Finite, fraction, self.least_exponent()),
            _ if field << self.fraction != self.infinity() => {
                (Finite, fraction | 1 << self.fraction, self.least_exponent() + field as i32 - 1)
            }
            _ if fraction == 0 => (Infinity, 0, 0),
            _ => (if is_quiet { QuietNan } else { SignalingNan }, 0, 0),
        };
        RiscvNumber { kind, is_negative: bits & self.sign() != 0, exponent, significand: significand.into() }
    }

    /// The bits of a number, rounded. Exceptions are added to the flags.
    pub(crate) fn round(self, number: RiscvNumber, rounding: RiscvRounding, flags: &mut u64) -> u64 {
        let sign = if number.is_negative { self.sign() } else { 0 };
        match number.kind {
            NumberKind::Zero => return sign,
            NumberKind::Infinity => return sign | self.infinity(),
            NumberKind::QuietNan => return self.canonical_nan(),
            NumberKind::SignalingNan => {
                *flags |= flag::NV;
                return self.canonical_nan();
            }
            NumberKind::Finite => {}
        }
        let RiscvNumber { significand, exponent, is_negative, .. } = number;
        let precision = self.fraction as i32 + 1;
        let leading = 127 - significand.leading_zeros() as i32;
        // The exponents of the last bit of the result with an unlimited exponent, and of the result.
        let unlimited = exponent + leading - (precision - 1);
        let last = unlimited.max(self.least_exponent());
        let (kept, is_inexact) = match last - exponent {
            shift @ 1.. => shift_right(significand, shift as u32, is_negative, rounding),
            shift => (significand << -shift, false),
        };
        // A carry out of the fraction increments the exponent.
        let magnitude = (((last - self.least_exponent()) as u128) << self.fraction) + kept;
        if magnitude >= self.infinity().into() {
            *flags |= flag::OF | flag::NX;
            let to_infinity = rounding.rounds_up(is_negative, true, std::cmp::Ordering::Greater);
            return sign | if to_infinity { self.infinity() } else { self.infinity() - 1 };
        }
        if is_inexact {
            *flags |= flag::NX;
            // Underflow is found after rounding: the smallest normal number, rounded up with an unlimited exponent, is none.
            let is_tiny = unlimited < self.least_exponent() && {
                let shift = (unlimited - exponent).max(0) as u32;
                let (kept, _) = shift_right(significand, shift, is_negative, rounding);
                unlimited + 1 < self.least_exponent() || kept < 1 << precision
            };
            *flags |= if is_tiny { flag::UF } else { 0 };
        }
        sign | magnitude as u64
    }
}
