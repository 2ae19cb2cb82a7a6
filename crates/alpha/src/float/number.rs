//! Arithmetic on numbers of any format, exact up to a sticky bit.

use std::cmp::Ordering;

use super::control::{DZE, INE, INV, IOV};

/// How to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundingMode {
    /// Towards zero.
    Chopped,
    /// Towards minus infinity.
    MinusInfinity,
    /// To nearest, ties to even.
    Nearest,
    /// Towards plus infinity.
    PlusInfinity,
    /// To nearest, ties away from zero: VAX.
    NearestAway,
}

/// An unpacked number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A quiet NaN, in the T format's bits.
    Nan(u64),
    /// An infinity.
    Infinity {
        /// Its sign.
        negative: bool,
    },
    /// A zero.
    Zero {
        /// Its sign.
        negative: bool,
    },
    /// Any other number.
    Finite(Finite),
}

/// `significand` × 2^(`exponent` − 63), with bit 63 of the significand set. Bit 0 is a sticky bit for the bits lost
/// below it; no format is precise enough to use it as a value bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finite {
    /// The sign.
    pub negative: bool,
    /// The exponent of the significand's first bit.
    pub exponent: i32,
    /// The bits of the significand.
    pub significand: u64,
}

/// The result of an invalid operation: the canonical quiet NaN, with its sign set (4.7.10.3).
const CANONICAL_NAN: Number = Number::Nan(0xfff8_0000_0000_0000);

fn invalid(flags: &mut u8) -> Number {
    *flags |= INV;
    CANONICAL_NAN
}

impl Finite {
    /// Normalizes a number: bit 127 of `bits`, which are not 0, has the weight 2^`exponent`.
    fn normalized(negative: bool, exponent: i32, bits: u128) -> Finite {
        let shift = bits.leading_zeros();
        let bits = bits << shift;
        let lost = bits as u64 != 0;
        let significand = (bits >> 64) as u64 | u64::from(lost);
        Finite { negative, exponent: exponent - shift as i32, significand }
    }

    fn magnitude(&self) -> (i32, u64) {
        (self.exponent, self.significand)
    }

    fn add(self, other: Finite, mode: RoundingMode) -> Number {
        let (big, small) = if self.magnitude() < other.magnitude() { (other, self) } else { (self, other) };
        let distance = (big.exponent - small.exponent) as u32;
        let x = u128::from(big.significand) << 63;
        let y = u128::from(small.significand) << 63;
        let shifted = y.checked_shr(distance).unwrap_or(0);
        let lost = shifted.checked_shl(distance).unwrap_or(0) != y;
        let y = shifted | u128::from(lost);
        let sum = if big.negative == small.negative { x + y } else { x - y };
        if sum == 0 {
            return Number::Zero { negative: mode == RoundingMode::MinusInfinity };
        }
        Number::Finite(Finite::normalized(big.negative, big.exponent + 1, sum))
    }

    fn multiply(self, other: Finite) -> Finite {
        let product = u128::from(self.significand) * u128::from(other.significand);
        let negative = self.negative != other.negative;
        Finite::normalized(negative, self.exponent + other.exponent + 1, product)
    }

    fn divide(self, other: Finite) -> Finite {
        let (dividend, divisor) = (u128::from(self.significand) << 63, u128::from(other.significand));
        let (quotient, remainder) = (dividend / divisor, dividend % divisor);
        let bits = quotient << 64 | u128::from(remainder != 0);
        Finite::normalized(self.negative != other.negative, self.exponent - other.exponent, bits)
    }

    fn square_root(self) -> Finite {
        // Make the exponent even, so that half of it is an integer.
        let odd = self.exponent & 1;
        let square = u128::from(self.significand) << (63 + odd);
        let root = square.isqrt();
        let bits = root << 64 | u128::from(root * root != square);
        Finite::normalized(false, (self.exponent - odd) / 2, bits)
    }

    /// The significand rounded to drop its last `drop` bits, and whether that changed the value.
    pub fn round(&self, drop: u32, mode: RoundingMode) -> (u64, bool) {
        // Numbers of 66 or more dropped bits are equivalent: the value is less than a quarter.
        let drop = drop.min(66);
        let bits = u128::from(self.significand);
        let kept = (bits >> drop) as u64;
        let rest = bits & ((1 << drop) - 1);
        let half = (1 << drop) >> 1;
        let up = match mode {
            RoundingMode::Chopped => false,
            RoundingMode::MinusInfinity => self.negative,
            RoundingMode::PlusInfinity => !self.negative,
            RoundingMode::Nearest => rest > half || rest == half && kept & 1 != 0,
            RoundingMode::NearestAway => rest >= half,
        };
        let inexact = rest != 0;
        (kept + u64::from(inexact && up), inexact)
    }
}

/// a + b.
pub fn add(a: Number, b: Number, mode: RoundingMode, flags: &mut u8) -> Number {
    use Number::*;
    match (a, b) {
        // Fb's NaN takes precedence over Fa's (4.7.10.4).
        (_, Nan(_)) => b,
        (Nan(_), _) => a,
        (Infinity { negative: x }, Infinity { negative: y }) if x != y => invalid(flags),
        (Infinity { .. }, _) => a,
        (_, Infinity { .. }) => b,
        (Zero { negative: x }, Zero { negative: y }) if x != y => {
            Zero { negative: mode == RoundingMode::MinusInfinity }
        }
        (_, Zero { .. }) => a,
        (Zero { .. }, _) => b,
        (Finite(x), Finite(y)) => x.add(y, mode),
    }
}

/// a − b.
pub fn subtract(a: Number, b: Number, mode: RoundingMode, flags: &mut u8) -> Number {
    use Number::*;
    let negated = match b {
        Nan(_) => b,
        Infinity { negative } => Infinity { negative: !negative },
        Zero { negative } => Zero { negative: !negative },
        Finite(y) => Finite(self::Finite { negative: !y.negative, ..y }),
    };
    add(a, negated, mode, flags)
}

/// a × b.
pub fn multiply(a: Number, b: Number, _: RoundingMode, flags: &mut u8) -> Number {
    use Number::*;
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (_, Nan(_)) => b,
        (Nan(_), _) => a,
        (Infinity { .. }, Zero { .. }) | (Zero { .. }, Infinity { .. }) => invalid(flags),
        (Infinity { .. }, _) | (_, Infinity { .. }) => Infinity { negative },
        (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
        (Finite(x), Finite(y)) => Finite(x.multiply(y)),
    }
}

/// a ÷ b.
pub fn divide(a: Number, b: Number, _: RoundingMode, flags: &mut u8) -> Number {
    use Number::*;
    let negative = a.is_negative() != b.is_negative();
    match (a, b) {
        (_, Nan(_)) => b,
        (Nan(_), _) => a,
        (Infinity { .. }, Infinity { .. }) | (Zero { .. }, Zero { .. }) => invalid(flags),
        (Infinity { .. }, _) => Infinity { negative },
        (_, Infinity { .. }) | (Zero { .. }, _) => Zero { negative },
        (_, Zero { .. }) => {
            *flags |= DZE;
            Infinity { negative }
        }
        (Finite(x), Finite(y)) => Finite(x.divide(y)),
    }
}

/// √b.
pub fn square_root(b: Number, flags: &mut u8) -> Number {
    match b {
        Number::Nan(_) | Number::Zero { .. } | Number::Infinity { negative: false } => b,
        Number::Finite(x) if !x.negative => Number::Finite(x.square_root()),
        _ => invalid(flags),
    }
}

impl Number {
    fn is_negative(self) -> bool {
        match self {
            Number::Nan(bits) => bits >> 63 != 0,
            Number::Infinity { negative } | Number::Zero { negative } => negative,
            Number::Finite(x) => x.negative,
        }
    }

    /// Compares two numbers; None if one is a NaN.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        // Compare signs, then magnitudes of numbers with that sign; zero has no sign.
        let key = |number| match number {
            Number::Nan(_) => None,
            Number::Zero { .. } => Some((0, (0, 0))),
            Number::Infinity { negative } => Some((if negative { -1 } else { 1 }, (i32::MAX, 0))),
            Number::Finite(x) => Some((if x.negative { -1 } else { 1 }, x.magnitude())),
        };
        let ((sign, x), (other_sign, y)) = (key(self)?, key(other)?);
        Some(sign.cmp(&other_sign).then(if sign < 0 { y.cmp(&x) } else { x.cmp(&y) }))
    }

    /// Converts an integer; all 64-bit integers are exact.
    pub fn from_integer(value: i64) -> Number {
        match value {
            0 => Number::Zero { negative: false },
            _ => {
                let bits = u128::from(value.unsigned_abs()) << 64;
                Number::Finite(Finite::normalized(value < 0, 63, bits))
            }
        }
    }

    /// Rounds to an integer, truncated to 64 bits on overflow. A NaN or an infinity gives 0; a quiet NaN is not
    /// invalid (table B-2).
    pub fn to_integer(self, mode: RoundingMode, flags: &mut u8) -> u64 {
        let x = match self {
            Number::Nan(_) | Number::Zero { .. } => return 0,
            Number::Infinity { .. } => {
                *flags |= INV;
                return 0;
            }
            Number::Finite(x) => x,
        };
        let (magnitude, inexact) = if x.exponent <= 63 {
            x.round((63 - x.exponent) as u32, mode)
        } else {
            (x.significand.checked_shl((x.exponent - 63) as u32).unwrap_or(0), false)
        };
        // 2^63 fits if it is negative.
        let overflow = x.exponent > 63 || magnitude > i64::MAX as u64 + u64::from(x.negative);
        if overflow {
            *flags |= IOV | INE;
        } else if inexact {
            *flags |= INE;
        }
        if x.negative { magnitude.wrapping_neg() } else { magnitude }
    }
}
