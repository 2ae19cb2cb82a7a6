//! Conversions between numbers and integers.

use super::format::{DOUBLE, FloatLayout, NumberKind, RiscvNumber, RiscvRounding, flag, shift_right};

/// A finite number, rounded to an integer: its magnitude, as far as 127 bits hold it, and whether that is inexact.
fn integer(number: RiscvNumber, rounding: RiscvRounding) -> (u128, bool) {
    match number.exponent {
        exponent if exponent < 0 => {
            shift_right(number.significand, exponent.unsigned_abs(), number.is_negative, rounding)
        }
        exponent if exponent as u32 <= number.significand.leading_zeros() => {
            (number.significand << exponent, false)
        }
        _ => (u128::MAX >> 1, false),
    }
}

/// A number as an integer of 32 or 64 bits, sign-extended. One that does not fit is invalid, and the nearest integer; what is not
/// a number is the greatest one.
pub(crate) fn to_integer(
    number: RiscvNumber,
    rounding: RiscvRounding,
    bits: u32,
    is_signed: bool,
    flags: &mut u64,
) -> u64 {
    let (least, greatest) = match (is_signed, bits) {
        (true, 32) => (1u128 << 31, (1u128 << 31) - 1),
        (true, _) => (1 << 63, (1 << 63) - 1),
        (false, _) => (0, (1 << bits) - 1),
    };
    let (magnitude, is_inexact) = match number.kind {
        NumberKind::Zero => (0, false),
        NumberKind::Finite => integer(number, rounding),
        _ => (u128::MAX >> 1, false),
    };
    let is_negative = number.is_negative && !number.is_nan();
    let limit = if is_negative { least } else { greatest };
    *flags |= match () {
        () if magnitude > limit => flag::NV,
        () if is_inexact => flag::NX,
        () => 0,
    };
    let magnitude = magnitude.min(limit) as u64;
    let value = if is_negative { magnitude.wrapping_neg() } else { magnitude };
    if bits == 32 { value as i32 as u64 } else { value }
}

/// The low 32 bits of a number truncated to an integer, sign-extended; 0 of what is no finite number (chapter "Zfa").
pub(crate) fn to_integer_modulo(number: RiscvNumber, flags: &mut u64) -> u64 {
    let saturated = to_integer(number, RiscvRounding::TowardsZero, 32, true, flags);
    if *flags & flag::NV == 0 {
        return saturated;
    }
    if number.kind != NumberKind::Finite {
        return 0;
    }
    let magnitude = match number.exponent {
        exponent @ 0.. => number.significand.checked_shl(exponent as u32).unwrap_or(0),
        exponent => number.significand >> exponent.unsigned_abs().min(127),
    };
    let value = magnitude as u32;
    let value = if number.is_negative { value.wrapping_neg() } else { value };
    value as i32 as u64
}

/// A number rounded to an integer, as a number. What is not a number is the canonical one.
pub(crate) fn to_integral(bits: u64, layout: FloatLayout, rounding: RiscvRounding, flags: &mut u64) -> u64 {
    let number = layout.unpack(bits);
    if number.is_nan() {
        return layout.canonical_nan();
    }
    if number.kind != NumberKind::Finite || number.exponent >= 0 {
        return bits;
    }
    let (magnitude, is_inexact) = integer(number, rounding);
    *flags |= if is_inexact { flag::NX } else { 0 };
    // It has no more bits than the significand, or is a power of two.
    let rounded =
        RiscvNumber { is_negative: number.is_negative, ..RiscvNumber::integer(false, magnitude as u64) };
    layout.round(rounded, rounding, &mut 0)
}

/// The constants of `fli` (chapter "Zfa"), but for the second one, which is the smallest normal number, and the last one.
const CONSTANTS: [f64; 31] = [
    -1.0,
    0.0,
    1.0 / 65536.0,
    1.0 / 32768.0,
    1.0 / 256.0,
    1.0 / 128.0,
    0.0625,
    0.125,
    0.25,
    0.3125,
    0.375,
    0.4375,
    0.5,
    0.625,
    0.75,
    0.875,
    1.0,
    1.25,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    4.0,
    8.0,
    16.0,
    128.0,
    256.0,
    32768.0,
    65536.0,
    f64::INFINITY,
];

/// A constant of `fli`, by its number.
pub(crate) fn constant(number: u8, layout: FloatLayout) -> u64 {
    match (number, CONSTANTS.get(usize::from(number))) {
        (1, _) => layout.smallest_normal(),
        (_, None) => layout.canonical_nan(),
        (_, Some(value)) => layout.round(DOUBLE.unpack(value.to_bits()), RiscvRounding::NearestEven, &mut 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{HALF, SINGLE};
    use super::*;

    #[test]
    fn integers_saturate() {
        let convert = |value: f64, bits, is_signed| {
            let mut flags = 0;
            let number = DOUBLE.unpack(value.to_bits());
            (to_integer(number, RiscvRounding::NearestEven, bits, is_signed, &mut flags), flags)
        };
        assert_eq!(convert(2.5, 64, true), (2, flag::NX));
        assert_eq!(convert(-3.5, 64, true), (4u64.wrapping_neg(), flag::NX));
        assert_eq!(convert(2f64.powi(63), 64, true), (i64::MAX as u64, flag::NV));
        assert_eq!(convert(-(2f64.powi(63)), 64, true), (1 << 63, 0));
        assert_eq!(convert(2f64.powi(63), 64, false), (1 << 63, 0));
        assert_eq!(convert(f64::INFINITY, 32, false), (u64::MAX, flag::NV));
        assert_eq!(convert(-1.0, 32, false), (0, flag::NV));
        assert_eq!(convert(-0.5, 32, false), (0, flag::NX));
        assert_eq!(convert(f64::NAN, 32, true), (0x7fff_ffff, flag::NV));
        assert_eq!(convert(-f64::NAN, 64, true), (i64::MAX as u64, flag::NV));
        assert_eq!(convert(3e9, 32, false), (3_000_000_000u32 as i32 as u64, 0));
        assert_eq!(convert(1e300, 64, false), (u64::MAX, flag::NV));
    }

    #[test]
    fn integers_modulo_have_the_low_bits() {
        let convert = |value: f64| {
            let mut flags = 0;
            (to_integer_modulo(DOUBLE.unpack(value.to_bits()), &mut flags), flags)
        };
        assert_eq!(convert(-1.75), (u64::MAX, flag::NX));
        assert_eq!(convert(4294967297.0), (1, flag::NV));
        assert_eq!(convert(-4294967299.5), (3u64.wrapping_neg(), flag::NV));
        assert_eq!(convert(2f64.powi(100)), (0, flag::NV));
        assert_eq!(convert(f64::NAN), (0, flag::NV));
    }

    #[test]
    fn integral_numbers_and_constants() {
        let round = |value: f32, rounding| {
            f32::from_bits(to_integral(value.to_bits().into(), SINGLE, rounding, &mut 0) as u32)
        };
        assert_eq!(round(2.5, RiscvRounding::NearestEven), 2.0);
        assert_eq!(round(2.5, RiscvRounding::NearestAway), 3.0);
        assert_eq!(round(-0.25, RiscvRounding::Up).to_bits(), (-0.0f32).to_bits());
        assert_eq!(round(1e20, RiscvRounding::Down), 1e20);
        assert_eq!((constant(16, HALF), constant(29, HALF), constant(2, HALF)), (0x3c00, 0x7c00, 0x0100));
        assert_eq!(
            (constant(0, SINGLE), constant(31, SINGLE), constant(1, SINGLE)),
            (0xbf80_0000, 0x7fc0_0000, 0x80_0000)
        );
    }
}
