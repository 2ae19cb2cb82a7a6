//! The five floating-point formats in registers and in memory (Alpha Architecture Reference Manual, 2.2.5 and 2.2.6).

use super::control::{DNO, INE, INV, OVF, UNF};
use super::number::{Finite, Number, RoundingMode};
use super::{FloatEnvironment, InvalidOperand, SIGN};

/// A format in a register: sign, exponent from bit `exponent_at` to 62, fraction.
pub(super) struct FloatFormat {
    vax: bool,
    /// Number of bits of the significand, including the hidden one.
    precision: u32,
    /// Exponent of the smallest normal number, 1.0 × 2^`least`.
    least: i32,
    /// Exponent of the largest finite numbers.
    greatest: i32,
    /// The exponent's bias.
    bias: i32,
    exponent_at: u32,
}

/// IEEE single, with its exponent extended to T's width.
pub(super) const S: FloatFormat =
    FloatFormat { vax: false, precision: 24, least: -126, greatest: 127, bias: 1023, exponent_at: 52 };
/// IEEE double.
pub(super) const T: FloatFormat =
    FloatFormat { vax: false, precision: 53, least: -1022, greatest: 1023, bias: 1023, exponent_at: 52 };
/// VAX single, with its exponent extended to G's width.
pub(super) const F: FloatFormat =
    FloatFormat { vax: true, precision: 24, least: -128, greatest: 126, bias: 1025, exponent_at: 52 };
/// VAX double with the range of T.
pub(super) const G: FloatFormat =
    FloatFormat { vax: true, precision: 53, least: -1024, greatest: 1022, bias: 1025, exponent_at: 52 };
/// VAX double with the range of F.
pub(super) const D: FloatFormat =
    FloatFormat { vax: true, precision: 56, least: -128, greatest: 126, bias: 129, exponent_at: 55 };

/// The first bit of a T or S fraction, set in quiet NaNs.
const QUIET: u64 = 1 << 51;
const INFINITY: u64 = 0x7ff << 52;
/// A reserved operand of VAX formats, which is invalid as an operand. The architecture does not define the result of
/// an overflow or a division by zero; with this one the error is detected at the next use.
const RESERVED: u64 = SIGN;

impl FloatFormat {
    /// Position of the fraction's last bit.
    fn fraction_at(&self) -> u32 {
        self.exponent_at + 1 - self.precision
    }

    /// Unpacks an operand.
    pub(super) fn unpack(
        &self,
        bits: u64,
        environment: &mut FloatEnvironment,
    ) -> Result<Number, InvalidOperand> {
        let number = self.unpack_compared(bits, environment)?;
        match number {
            Number::Infinity { .. } if !environment.software => Err(InvalidOperand),
            _ => Ok(number),
        }
    }

    /// Unpacks an operand of a comparison, which may be an infinity without `/s` (B.1).
    pub(super) fn unpack_compared(
        &self,
        bits: u64,
        environment: &mut FloatEnvironment,
    ) -> Result<Number, InvalidOperand> {
        // A register may contain a value that is not an S or F number; the number that STS and STF would store is
        // used.
        let bits = match self.precision {
            24 if self.vax => load_f(store_f(bits)),
            24 => load_s(store_s(bits)),
            _ => bits,
        };
        let negative = bits & SIGN != 0;
        let field = (bits & !SIGN) >> self.exponent_at;
        let fraction = bits << (64 - self.exponent_at);
        match field {
            0 if bits & !SIGN == 0 && !(self.vax && negative) => Ok(Number::Zero { negative }),
            0 if self.vax => match environment.software {
                true if !negative => Ok(Number::Zero { negative }),
                _ => Err(InvalidOperand),
            },
            0 => self.unpack_denormal(negative, fraction, environment),
            0x7ff if !self.vax && fraction == 0 => Ok(Number::Infinity { negative }),
            0x7ff if !self.vax => {
                if !environment.software {
                    return Err(InvalidOperand);
                }
                if bits & QUIET == 0 {
                    environment.flags |= INV;
                }
                Ok(Number::Nan(bits | QUIET))
            }
            _ => Ok(Number::Finite(Finite {
                negative,
                exponent: field as i32 - self.bias,
                significand: SIGN | fraction >> 1,
            })),
        }
    }

    fn unpack_denormal(
        &self,
        negative: bool,
        fraction: u64,
        environment: &mut FloatEnvironment,
    ) -> Result<Number, InvalidOperand> {
        if !environment.software {
            return Err(InvalidOperand);
        }
        if environment.denormals_to_zero {
            return Ok(Number::Zero { negative });
        }
        environment.flags |= DNO;
        let shift = fraction.leading_zeros();
        let exponent = self.least - 1 - shift as i32;
        Ok(Number::Finite(Finite { negative, exponent, significand: fraction << shift }))
    }

    /// Rounds and packs a result.
    pub(super) fn pack(&self, number: Number, environment: &mut FloatEnvironment) -> u64 {
        let sign = |negative| if negative { SIGN } else { 0 };
        match number {
            Number::Zero { .. } if self.vax => 0,
            Number::Zero { negative } => sign(negative),
            Number::Nan(_) | Number::Infinity { .. } if self.vax => RESERVED,
            Number::Infinity { negative } => sign(negative) | INFINITY,
            Number::Nan(bits) => bits >> self.fraction_at() << self.fraction_at(),
            Number::Finite(x) => self.pack_finite(x, environment),
        }
    }

    fn pack_finite(&self, x: Finite, environment: &mut FloatEnvironment) -> u64 {
        let drop = 64 - self.precision;
        let (significand, inexact) = x.round(drop, environment.mode);
        let carry = (significand >> self.precision) as i32;
        let exponent = x.exponent + carry;
        if exponent > self.greatest {
            environment.flags |= OVF | INE;
            return self.overflow(x.negative, environment.mode);
        }
        // Underflow is detected after rounding (4.7.7.7).
        if exponent < self.least {
            return self.pack_denormal(x, environment);
        }
        if inexact {
            environment.flags |= INE;
        }
        self.assemble(x.negative, exponent, significand >> carry)
    }

    /// A result below the smallest normal number. It is a true zero, +0, unless denormals are to be produced; an
    /// exact denormal then raises no exception (IEEE 754-1985, 7.4).
    fn pack_denormal(&self, x: Finite, environment: &mut FloatEnvironment) -> u64 {
        if !environment.gradual_underflow {
            environment.flags |= UNF | INE;
            return 0;
        }
        let drop = 64 - self.precision + (self.least - x.exponent) as u32;
        let (significand, inexact) = x.round(drop, environment.mode);
        if inexact {
            environment.flags |= UNF | INE;
        }
        if significand >> (self.precision - 1) != 0 {
            return self.assemble(x.negative, self.least, significand);
        }
        u64::from(x.negative) << 63 | significand << self.fraction_at()
    }

    fn overflow(&self, negative: bool, mode: RoundingMode) -> u64 {
        let to_infinity = match mode {
            RoundingMode::Nearest | RoundingMode::NearestAway => true,
            RoundingMode::Chopped => false,
            RoundingMode::MinusInfinity => negative,
            RoundingMode::PlusInfinity => !negative,
        };
        match (self.vax, to_infinity) {
            (true, _) => RESERVED,
            (false, true) => u64::from(negative) << 63 | INFINITY,
            (false, false) => self.assemble(negative, self.greatest, (1 << self.precision) - 1),
        }
    }

    /// Packs sign, exponent and significand, without the significand's first bit.
    fn assemble(&self, negative: bool, exponent: i32, significand: u64) -> u64 {
        let field = (exponent + self.bias) as u64;
        let fraction = significand & !(1 << (self.precision - 1));
        u64::from(negative) << 63 | field << self.exponent_at | fraction << self.fraction_at()
    }
}

/// Moves bits 31:30 and 29:0 of a single to their positions in a register, with the extended exponent bits in between.
fn widen(single: u32, exponent: u64) -> u64 {
    let single = u64::from(single);
    (single & 0xc000_0000) << 32 | exponent << 59 | (single & 0x3fff_ffff) << 29
}

/// LDS: memory to register.
pub fn load_s(single: u32) -> u64 {
    let exponent = match single >> 23 & 0xff {
        0 => 0,
        0xff => 7,
        exponent if exponent & 0x80 == 0 => 7,
        _ => 0,
    };
    widen(single, exponent)
}

/// STS: register to memory.
pub fn store_s(register: u64) -> u32 {
    (register >> 32 & 0xc000_0000 | register >> 29 & 0x3fff_ffff) as u32
}

/// LDF: memory to register. The 16-bit words of VAX numbers are in the opposite order.
pub fn load_f(single: u32) -> u64 {
    let single = single.rotate_left(16);
    let exponent = match single >> 23 & 0xff {
        0 => 0,
        exponent if exponent & 0x80 == 0 => 7,
        _ => 0,
    };
    widen(single, exponent)
}

/// STF: register to memory.
pub fn store_f(register: u64) -> u32 {
    store_s(register).rotate_left(16)
}

/// LDG: memory to register; also for D format.
pub fn load_g(double: u64) -> u64 {
    let swapped = double.rotate_left(32);
    (swapped & 0xffff_0000_ffff_0000) >> 16 | (swapped & 0x0000_ffff_0000_ffff) << 16
}

/// STG: register to memory; also for D format.
pub fn store_g(register: u64) -> u64 {
    load_g(register)
}
