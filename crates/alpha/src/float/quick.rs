//! Common cases computed by the host: normal operands, rounding to nearest, a normal result, and no new exception. In
//! these cases Rust's `f64` and `f32` give the only result that IEEE 754 allows, on every host.

use isa::Op;

use super::control::{self, ENABLE_INE, FPCR_INE};
use super::number::RoundingMode;
use super::{TRUE, load_s, store_s};
use crate::cpu::Cpu;

const EXPONENT: u32 = 52;
const ROUNDING: u32 = 11;
const CHOPPED: u32 = 0;
const NORMAL: u32 = 2;
const DYNAMIC: u32 = 3;
/// All integers up to this one are T numbers.
const EXACT: u64 = 1 << 53;

/// Whether a number is normal or zero.
fn plain(bits: u64) -> bool {
    let field = bits >> EXPONENT & 0x7ff;
    field.wrapping_sub(1) < 0x7fe || bits << 1 == 0
}

/// Whether a result certainly neither overflowed nor underflowed. The smallest binade is excluded, since a smaller
/// number may have been rounded up to it.
fn certain(bits: u64, least: u64) -> bool {
    (bits >> EXPONENT & 0x7ff).wrapping_sub(least + 1) < 0x7fe - least
}

/// Whether an inexact result is rounded to nearest and needs no action: its exception is already recorded, and does
/// not trap.
#[inline]
fn unobserved(word: u32, cpu: &Cpu) -> bool {
    let nearest = match word >> ROUNDING & 3 {
        NORMAL => true,
        DYNAMIC => control::dynamic_mode(cpu) == RoundingMode::Nearest,
        _ => false,
    };
    nearest && cpu.fpcr & FPCR_INE != 0 && cpu.ieee_control & ENABLE_INE == 0
}

/// The result, in the common case.
#[inline]
pub fn compute(op: Op, word: u32, [a, b]: [u64; 2], cpu: &Cpu) -> Option<u64> {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let double = |result: f64| {
        let bits = result.to_bits();
        (plain(a) && plain(b) && certain(bits, 1) && unobserved(word, cpu)).then_some(bits)
    };
    let single = |operation: fn(f32, f32) -> f32| {
        let (x, y) = (store_s(a), store_s(b));
        let bits = load_s(operation(f32::from_bits(x), f32::from_bits(y)).to_bits());
        (plain(load_s(x)) && plain(load_s(y)) && certain(bits, 0x381) && unobserved(word, cpu))
            .then_some(bits)
    };
    let comparison = |holds: bool| (plain(a) && plain(b)).then_some(if holds { TRUE } else { 0 });
    match op {
        Op::Addt => double(x + y),
        Op::Subt => double(x - y),
        Op::Mult => double(x * y),
        Op::Divt => double(x / y),
        Op::Sqrtt => double(y.sqrt()),
        Op::Adds => single(|x, y| x + y),
        Op::Subs => single(|x, y| x - y),
        Op::Muls => single(|x, y| x * y),
        Op::Divs => single(|x, y| x / y),
        Op::Sqrts => single(|_, y| y.sqrt()),
        Op::Cmpteq => comparison(x == y),
        Op::Cmptlt => comparison(x < y),
        Op::Cmptle => comparison(x <= y),
        Op::Cmptun => comparison(false),
        Op::Cvtqt => {
            let exact = (b as i64).unsigned_abs() <= EXACT;
            (exact || unobserved(word, cpu)).then_some((b as i64 as f64).to_bits())
        }
        Op::Cvttq if word >> ROUNDING & 3 == CHOPPED && plain(b) && y.abs() < EXACT as f64 => {
            let integer = y as i64;
            (integer as f64 == y || cpu.fpcr & FPCR_INE != 0 && cpu.ieee_control & ENABLE_INE == 0)
                .then_some(integer as u64)
        }
        Op::Cvtst => Some(load_s(store_s(b))).filter(|bits| plain(*bits)),
        Op::Cvtts => {
            let bits = load_s((y as f32).to_bits());
            (plain(b) && certain(bits, 0x381) && unobserved(word, cpu)).then_some(bits)
        }
        _ => None,
    }
}
