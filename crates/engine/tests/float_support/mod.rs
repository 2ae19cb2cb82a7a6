//! Functions that the tests of floating operates share: executing one, and operands worth trying.
#![allow(dead_code, reason = "each test uses some")]

use alpha::DecodedInstruction;
use alpha::cpu::{Cpu, Exception};
use alpha::float;
use isa::{Op, Qualifiers, Rounding};

pub const NORMAL: u64 = 2 << 58;

pub const SUI: Qualifiers =
    Qualifiers { rounding: Rounding::Dynamic, underflow: true, software: true, inexact: true };

/// The results of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The result register, which held [`UNWRITTEN`] before.
    pub value: u64,
    pub fpcr: u64,
    pub exception: Option<Exception>,
}

pub const UNWRITTEN: u64 = 0x0123_4567_89ab_cdef;

pub fn word(op: Op, qualifiers: Qualifiers) -> u32 {
    let fa = if op.row().operands == isa::Operands::FbFc { 31 } else { 1 };
    isa::encode::float_operate(op, qualifiers, fa, 2, 3)
        .unwrap_or_else(|error| panic!("{op:?} {qualifiers:?}: {error}"))
}

/// Executes the instruction `word`, with operands in f1 and f2 and the result in f3.
pub fn execute(word: u32, fpcr: u64, ieee_control: u64, [a, b]: [u64; 2]) -> Outcome {
    let instruction = isa::decode(word).expect("a legal instruction");
    let mut cpu = Cpu { fpcr, ieee_control, ..Cpu::default() };
    (cpu.f[1], cpu.f[2], cpu.f[3]) = (a, b, UNWRITTEN);
    let step = DecodedInstruction {
        op: instruction.op,
        a: instruction.ra(),
        b: instruction.rb(),
        c: instruction.rc(),
        immediate: i64::from(word),
    };
    let exception = float::execute(&step, &mut cpu).err();
    Outcome { value: cpu.f[3], fpcr: cpu.fpcr, exception }
}

/// Random operands, which are the same in every run.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0.u64(..n)
    }

    /// A fraction of `bits` bits: random, few bits set, or runs of ones and zeros.
    pub fn fraction(&mut self, bits: u32) -> u64 {
        let mask = (1u64 << bits) - 1;
        mask & match self.below(6) {
            0 => 0,
            1 => mask,
            2 => 1 << self.below(u64::from(bits)),
            3 => mask << self.below(u64::from(bits)),
            4 => mask >> self.below(u64::from(bits)),
            _ => self.next(),
        }
    }

    /// A number with an exponent field of `exponent_bits` and a fraction of `fraction_bits`.
    /// Exponents are near `near`, near the ends, or anywhere.
    pub fn number(&mut self, exponent_bits: u32, fraction_bits: u32, near: u64) -> u64 {
        let mask = (1u64 << exponent_bits) - 1;
        let exponent = match self.below(8) {
            0 => 0,
            1 => mask,
            2 => 1 + self.below(60),
            3 => mask - 1 - self.below(60),
            4 => self.next(),
            _ => near.wrapping_add(self.below(120)).wrapping_sub(60),
        } & mask;
        let sign = self.below(2) << (exponent_bits + fraction_bits);
        sign | exponent << fraction_bits | self.fraction(fraction_bits)
    }

    /// An IEEE double, of any kind.
    pub fn t(&mut self) -> u64 {
        self.number(11, 52, 1023)
    }

    /// An IEEE single in a register, of any kind.
    pub fn s(&mut self) -> u64 {
        float::load_s(self.number(8, 23, 127) as u32)
    }

    /// A T number near `other`: of like magnitude, so that sums cancel and quotients are near 1.
    pub fn like(&mut self, other: u64) -> u64 {
        match self.below(4) {
            0 => other ^ 1 << 63,
            1 => other.wrapping_add(self.below(5)).wrapping_sub(2),
            2 => other ^ self.fraction(52) ^ (self.below(2) << 63),
            _ => other.wrapping_add(self.below(9) << 52).wrapping_sub(4 << 52) ^ self.below(2) << 63,
        }
    }
}
