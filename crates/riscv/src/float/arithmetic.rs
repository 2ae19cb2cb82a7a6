//! Operations on numbers: their exact results, or results that are rounded as the exact ones.

use super::format::{NumberKind, RiscvNumber, RiscvRounding, flag};

const NAN: RiscvNumber =
    RiscvNumber { kind: NumberKind::QuietNan, is_negative: false, exponent: 0, significand: 0 };

/// The result of an operation on something that is not a number. One that signals is invalid.
fn nan_of(operands: &[RiscvNumber], flags: &mut u64) -> Option<RiscvNumber> {
    if operands.iter().any(|one| one.kind == NumberKind::SignalingNan) {
        *flags |= flag::NV;
    }
    operands.iter().any(|one| one.is_nan()).then_some(NAN)
}

fn invalid(flags: &mut u64) -> RiscvNumber {
    *flags |= flag::NV;
    NAN
}

/// The sum. Its significand has so many bits, and its last one stands for all that follow, that it is rounded as the exact sum.
pub(crate) fn add(a: RiscvNumber, b: RiscvNumber, rounding: RiscvRounding, flags: &mut u64) -> RiscvNumber {
    use NumberKind::*;
    if let Some(nan) = nan_of(&[a, b], flags) {
        return nan;
    }
    match (a.kind, b.kind) {
        (Infinity, Infinity) if a.is_negative != b.is_negative => return invalid(flags),
        (Infinity, _) => return a,
        (_, Infinity) => return b,
        (Zero, Zero) if a.is_negative == b.is_negative => return a,
        (Zero, Zero) => return zero_sum(rounding),
        (Zero, _) => return b,
        (_, Zero) => return a,
        _ => {}
    }
    // The one with the larger exponent is shifted to the left as far as there is room, the other one to the right.
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let distance = (high.exponent - low.exponent) as u32;
    let left = distance.min(high.significand.leading_zeros() - 2);
    let first = high.significand << left;
    let right = distance - left;
    let second = match right {
        0 => low.significand,
        1..=127 => low.significand >> right | u128::from(low.significand << (128 - right) != 0),
        _ => 1,
    };
    let exponent = high.exponent - left as i32;
    let (significand, is_negative) = if high.is_negative == low.is_negative {
        (first + second, high.is_negative)
    } else if first >= second {
        (first - second, high.is_negative)
    } else {
        (second - first, low.is_negative)
    };
    if significand == 0 {
        return zero_sum(rounding);
    }
    RiscvNumber { kind: Finite, is_negative, exponent, significand }
}

/// The sum of a number and its negation.
fn zero_sum(rounding: RiscvRounding) -> RiscvNumber {
    RiscvNumber {
        kind: NumberKind::Zero,
        is_negative: rounding == RiscvRounding::Down,
        exponent: 0,
        significand: 0,
    }
}

/// The exact product.
pub(crate) fn multiply(a: RiscvNumber, b: RiscvNumber, flags: &mut u64) -> RiscvNumber {
    use NumberKind::*;
    if let Some(nan) = nan_of(&[a, b], flags) {
        return nan;
    }
    let is_negative = a.is_negative != b.is_negative;
    let kind = match (a.kind, b.kind) {
        (Infinity, Zero) | (Zero, Infinity) => return invalid(flags),
        (Infinity, _) | (_, Infinity) => Infinity,
        (Zero, _) | (_, Zero) => Zero,
        _ => Finite,
    };
    let (exponent, significand) = (a.exponent + b.exponent, a.significand * b.significand);
    RiscvNumber { kind, is_negative, exponent, significand }
}

/// The product of two numbers, plus a third one, rounded once. A product of infinity and zero is invalid whatever is added.
pub(crate) fn multiply_add(
    a: RiscvNumber,
    b: RiscvNumber,
    c: RiscvNumber,
    rounding: RiscvRounding,
    flags: &mut u64,
) -> RiscvNumber {
    add(multiply(a, b, flags), c, rounding, flags)
}

/// The quotient, as [`add`] the sum.
pub(crate) fn divide(a: RiscvNumber, b: RiscvNumber, flags: &mut u64) -> RiscvNumber {
    use NumberKind::*;
    if let Some(nan) = nan_of(&[a, b], flags) {
        return nan;
    }
    let is_negative = a.is_negative != b.is_negative;
    let special = |kind| RiscvNumber { kind, is_negative, exponent: 0, significand: 0 };
    match (a.kind, b.kind) {
        (Infinity, Infinity) | (Zero, Zero) => return invalid(flags),
        (Infinity, _) => return special(Infinity),
        (Zero, _) | (_, Infinity) => return special(Zero),
        (_, Zero) => {
            *flags |= flag::DZ;
            return special(Infinity);
        }
        _ => {}
    }
    let left = a.significand.leading_zeros();
    let dividend = a.significand << left;
    let quotient = dividend / b.significand;
    let rest = u128::from(!dividend.is_multiple_of(b.significand));
    let exponent = a.exponent - left as i32 - b.exponent;
    RiscvNumber { kind: Finite, is_negative, exponent, significand: quotient | rest }
}

/// The square root, as [`add`] the sum.
pub(crate) fn square_root(a: RiscvNumber, flags: &mut u64) -> RiscvNumber {
    use NumberKind::*;
    if let Some(nan) = nan_of(&[a], flags) {
        return nan;
    }
    match a.kind {
        Zero => return a,
        _ if a.is_negative => return invalid(flags),
        Infinity => return a,
        _ => {}
    }
    // The exponent must be even.
    let left = a.significand.leading_zeros();
    let left = if (a.exponent - left as i32) % 2 == 0 { left } else { left - 1 };
    let square = a.significand << left;
    let root = square.isqrt();
    let rest = u128::from(root * root != square);
    RiscvNumber {
        kind: Finite,
        is_negative: false,
        exponent: (a.exponent - left as i32) / 2,
        significand: root << 1 | rest,
    }
    .scaled(-1)
}

impl RiscvNumber {
    /// Multiplied by a power of two.
    fn scaled(self, by: i32) -> RiscvNumber {
        RiscvNumber { exponent: self.exponent + by, ..self }
    }

    /// Its order with another one; none if one is not a number.
    pub(crate) fn compare(self, other: RiscvNumber) -> Option<std::cmp::Ordering> {
        use NumberKind::*;
        if self.is_nan() || other.is_nan() {
            return None;
        }
        let rank = |one: RiscvNumber| match one.kind {
            Zero => 0,
            _ if one.is_negative => -1,
            _ => 1,
        };
        let order = rank(self).cmp(&rank(other));
        if order.is_ne() || rank(self) == 0 {
            return Some(order);
        }
        let magnitude = |one: RiscvNumber| match one.kind {
            Infinity => (i32::MAX, 0),
            _ => {
                let left = one.significand.leading_zeros();
                (one.exponent - left as i32, one.significand << left)
            }
        };
        let order = magnitude(self).cmp(&magnitude(other));
        Some(if self.is_negative { order.reverse() } else { order })
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{DOUBLE, FloatLayout, HALF, SINGLE};
    use super::*;

    const NEAREST: RiscvRounding = RiscvRounding::NearestEven;

    /// Bits of all kinds of numbers: of each exponent, with fractions of few and of many bits.
    fn bits(random: &mut fastrand::Rng) -> u64 {
        let any = random.u64(..);
        match random.u8(..6) {
            0 => any & 0xfff0_0000_0000_0000,
            1 => any | 0x000f_ffff_ffff_fff0,
            2 => any & 0x800f_ffff_ffff_ffff,
            3 => (any & 0x807f_ffff_ffff_ffff) | 0x3f80_0000_0000_0000,
            _ => any,
        }
    }

    fn f64_result(result: RiscvNumber) -> u64 {
        DOUBLE.round(result, NEAREST, &mut 0)
    }

    fn canonical(value: f64) -> u64 {
        if value.is_nan() { DOUBLE.canonical_nan() } else { value.to_bits() }
    }

    #[test]
    fn doubles_are_those_of_the_host() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..300_000 {
            let [a, b, c] = [0; 3].map(|_| bits(&mut random));
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            let [p, q, r] = [a, b, c].map(|bits| DOUBLE.unpack(bits));
            assert_eq!(f64_result(add(p, q, NEAREST, &mut 0)), canonical(x + y), "{a:x} + {b:x}");
            assert_eq!(f64_result(multiply(p, q, &mut 0)), canonical(x * y), "{a:x} * {b:x}");
            assert_eq!(f64_result(divide(p, q, &mut 0)), canonical(x / y), "{a:x} / {b:x}");
            assert_eq!(f64_result(square_root(p, &mut 0)), canonical(x.sqrt()), "sqrt {a:x}");
            let fused = multiply_add(p, q, r, NEAREST, &mut 0);
            assert_eq!(f64_result(fused), canonical(x.mul_add(y, z)), "{a:x} * {b:x} + {c:x}");
            assert_eq!(p.compare(q), x.partial_cmp(&y));
        }
    }

    #[test]
    fn narrower_results_are_those_of_the_host() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..300_000 {
            let a = bits(&mut random);
            let near_single = a & 0x8fff_ffff_ffff_ffff | 0x3000_0000_0000_0000;
            for a in [a, near_single] {
                let value = f64::from_bits(a) as f32;
                let expected = if value.is_nan() { SINGLE.canonical_nan() } else { value.to_bits().into() };
                assert_eq!(SINGLE.round(DOUBLE.unpack(a), NEAREST, &mut 0), expected, "{a:x}");
            }
        }
    }

    /// Every number of 16 bits survives, and lies where its value says.
    #[test]
    fn half_numbers_survive() {
        for bits in 0..=0xffff {
            let number = HALF.unpack(bits);
            let expected = if number.is_nan() { HALF.canonical_nan() } else { bits };
            let mut flags = 0;
            assert_eq!(HALF.round(number, NEAREST, &mut flags), expected);
            assert_eq!(flags & !flag::NV, 0);
        }
        let of =
            |layout: FloatLayout, value: f64| layout.round(DOUBLE.unpack(value.to_bits()), NEAREST, &mut 0);
        assert_eq!(
            [1.0, -2.0, 65504.0, 65520.0, 2f64.powi(-24), 2f64.powi(-25)].map(|value| of(HALF, value)),
            [0x3c00, 0xc000, 0x7bff, 0x7c00, 1, 0]
        );
    }

    #[test]
    fn roundings_and_flags() {
        use RiscvRounding::*;
        let round = |value: f64, rounding| {
            let mut flags = 0;
            (SINGLE.round(DOUBLE.unpack(value.to_bits()), rounding, &mut flags), flags)
        };
        let tie = 1.0 + 2f64.powi(-24);
        assert_eq!(
            [NearestEven, TowardsZero, Down, Up, NearestAway].map(|mode| round(tie, mode).0 - 0x3f80_0000),
            [0, 0, 0, 1, 1]
        );
        assert_eq!(
            [NearestEven, TowardsZero, Down, Up, NearestAway].map(|mode| round(-tie, mode).0 - 0xbf80_0000),
            [0, 0, 1, 0, 1]
        );
        assert_eq!(round(f64::MAX, TowardsZero), (0x7f7f_ffff, flag::OF | flag::NX));
        assert_eq!(round(-f64::MAX, Up), (0xff7f_ffff, flag::OF | flag::NX));
        assert_eq!(round(-f64::MAX, Down), (0xff80_0000, flag::OF | flag::NX));
        // Just below the smallest normal number: rounded to it with 24 bits, so that it does not underflow.
        let below = f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-26));
        assert_eq!(round(below, NearestEven), (0x0080_0000, flag::NX));
        let further = f64::from(f32::MIN_POSITIVE) * (1.0 - 2f64.powi(-25));
        assert_eq!(round(further, NearestEven), (0x0080_0000, flag::NX));
        let furthest = f64::from(f32::MIN_POSITIVE) * (1.0 - 3.0 * 2f64.powi(-26));
        assert_eq!(round(furthest, NearestEven), (0x0080_0000, flag::UF | flag::NX));
    }
}
