//! Floating-point operations: results, recorded exceptions and traps.
//!
//! All operations are computed with integers (`number.rs`), so that results and flags are the same on every host.
//! `quick.rs` uses the host's arithmetic in common cases in which the result is provably the same. IEEE S and T and
//! VAX F, G and D share the arithmetic and differ in [`format`].
//!
//! A user program sees a 21264 with Linux's completion handler:
//!
//! - With `/s` any operand is accepted, and an exception gives the IEEE default result; it raises SIGFPE only if the
//!   program has enabled its trap in the IEEE control word ([`control`]).
//! - Without `/s` denormal, infinite and NaN operands, overflow, division by zero and invalid operations always trap;
//!   underflow gives +0, and traps with `/u`.
//! - The FPCR records every exception, whether it traps or not (Alpha 21264/EV67 Hardware Reference Manual, A.8); so
//!   INE is recorded without `/i`, too.
//! - Of NaN operands, Fb is propagated before Fa; a NaN that an operation on other operands gives has its sign set
//!   (Alpha Architecture Reference Manual, 4.7.10.3 and 4.7.10.4).
//!
//! `tests/float_qemu.rs` lists the differences of qemu-alpha.

pub mod control;
mod format;
mod number;
mod quick;

use std::cmp::Ordering;

use isa::{Op, Qualifiers, Rounding};

use self::control::{DNO, DZE, INE, INV, IOV, OVF, UNF};
use self::format::{D, F, FloatFormat, G, S, T};
use self::number::{Number, RoundingMode, add, divide, multiply, square_root, subtract};
use super::cpu::{Cpu, Exception};
use crate::decoded_instruction::DecodedInstruction;

pub use self::format::{load_f, load_g, load_s, store_f, store_g, store_s};

/// The result of a comparison that is true: 2.0 in IEEE, 0.5 in VAX formats (4.10.7 and 4.10.8).
const TRUE: u64 = 0x4000_0000_0000_0000;
const SIGN: u64 = 1 << 63;

/// An operand trap, which prevents the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InvalidOperand;

/// The qualifiers of an operation, and the exceptions that it has raised.
struct FloatEnvironment {
    mode: RoundingMode,
    /// `/s`: operands that are not finite are accepted.
    software: bool,
    denormals_to_zero: bool,
    /// Results below the smallest normal number are denormals instead of zero.
    gradual_underflow: bool,
    flags: u8,
}

impl FloatEnvironment {
    fn new(cpu: &Cpu, vax: bool, qualifiers: Qualifiers) -> FloatEnvironment {
        let mode = match qualifiers.rounding {
            Rounding::Chopped => RoundingMode::Chopped,
            Rounding::MinusInfinity => RoundingMode::MinusInfinity,
            Rounding::Normal if vax => RoundingMode::NearestAway,
            Rounding::Normal => RoundingMode::Nearest,
            Rounding::Dynamic => control::dynamic_mode(cpu),
        };
        FloatEnvironment {
            mode,
            software: qualifiers.software,
            denormals_to_zero: control::denormals_to_zero(cpu),
            gradual_underflow: !vax && qualifiers.software && !control::underflow_to_zero(cpu),
            flags: 0,
        }
    }

    fn binary(
        &mut self,
        format: &FloatFormat,
        operation: fn(Number, Number, RoundingMode, &mut u8) -> Number,
        [a, b]: [u64; 2],
    ) -> Result<u64, InvalidOperand> {
        let (a, b) = (format.unpack(a, self)?, format.unpack(b, self)?);
        let result = operation(a, b, self.mode, &mut self.flags);
        Ok(format.pack(result, self))
    }

    fn square_root(&mut self, format: &FloatFormat, b: u64) -> Result<u64, InvalidOperand> {
        let b = format.unpack(b, self)?;
        let result = square_root(b, &mut self.flags);
        Ok(format.pack(result, self))
    }

    fn convert(&mut self, from: &FloatFormat, to: &FloatFormat, b: u64) -> Result<u64, InvalidOperand> {
        let b = from.unpack(b, self)?;
        Ok(to.pack(b, self))
    }

    fn convert_to_integer(&mut self, from: &FloatFormat, b: u64) -> Result<u64, InvalidOperand> {
        let b = from.unpack(b, self)?;
        Ok(b.to_integer(self.mode, &mut self.flags))
    }

    /// Compares; with `signaling` a quiet NaN is invalid, too.
    fn compare(
        &mut self,
        format: &FloatFormat,
        [a, b]: [u64; 2],
        signaling: bool,
        holds: impl Fn(Option<Ordering>) -> bool,
    ) -> Result<u64, InvalidOperand> {
        let (a, b) = (format.unpack_compared(a, self)?, format.unpack_compared(b, self)?);
        let order = a.compare(b);
        if signaling && order.is_none() {
            self.flags |= INV;
        }
        Ok(if holds(order) { TRUE } else { 0 })
    }

    /// The meaning of each arithmetic operation.
    fn compute(&mut self, op: Op, [a, b]: [u64; 2]) -> Result<u64, InvalidOperand> {
        match op {
            Op::Adds => self.binary(&S, add, [a, b]),
            Op::Addt => self.binary(&T, add, [a, b]),
            Op::Addf => self.binary(&F, add, [a, b]),
            Op::Addg => self.binary(&G, add, [a, b]),
            Op::Subs => self.binary(&S, subtract, [a, b]),
            Op::Subt => self.binary(&T, subtract, [a, b]),
            Op::Subf => self.binary(&F, subtract, [a, b]),
            Op::Subg => self.binary(&G, subtract, [a, b]),
            Op::Muls => self.binary(&S, multiply, [a, b]),
            Op::Mult => self.binary(&T, multiply, [a, b]),
            Op::Mulf => self.binary(&F, multiply, [a, b]),
            Op::Mulg => self.binary(&G, multiply, [a, b]),
            Op::Divs => self.binary(&S, divide, [a, b]),
            Op::Divt => self.binary(&T, divide, [a, b]),
            Op::Divf => self.vax_divide(&F, [a, b]),
            Op::Divg => self.vax_divide(&G, [a, b]),
            Op::Sqrts => self.square_root(&S, b),
            Op::Sqrtt => self.square_root(&T, b),
            Op::Sqrtf => self.square_root(&F, b),
            Op::Sqrtg => self.square_root(&G, b),
            Op::Cmptun => self.compare(&T, [a, b], false, |order| order.is_none()),
            Op::Cmpteq => self.compare(&T, [a, b], false, |order| order.is_some_and(Ordering::is_eq)),
            Op::Cmptlt => self.compare(&T, [a, b], true, |order| order.is_some_and(Ordering::is_lt)),
            Op::Cmptle => self.compare(&T, [a, b], true, |order| order.is_some_and(Ordering::is_le)),
            Op::Cmpgeq => self.compare(&G, [a, b], false, |order| order.is_some_and(Ordering::is_eq)),
            Op::Cmpglt => self.compare(&G, [a, b], false, |order| order.is_some_and(Ordering::is_lt)),
            Op::Cmpgle => self.compare(&G, [a, b], false, |order| order.is_some_and(Ordering::is_le)),
            Op::Cvtts => self.convert(&T, &S, b),
            Op::Cvtst => self.convert(&S, &T, b),
            Op::Cvtgf => self.convert(&G, &F, b),
            Op::Cvtgd => self.convert(&G, &D, b),
            Op::Cvtdg => self.convert(&D, &G, b),
            Op::Cvttq => self.convert_to_integer(&T, b),
            Op::Cvtgq => self.convert_to_integer(&G, b),
            Op::Cvtqs => Ok(S.pack(Number::from_integer(b as i64), self)),
            Op::Cvtqt => Ok(T.pack(Number::from_integer(b as i64), self)),
            Op::Cvtqf => Ok(F.pack(Number::from_integer(b as i64), self)),
            Op::Cvtqg => Ok(G.pack(Number::from_integer(b as i64), self)),
            Op::Cvtql => Ok(self.quad_to_long(b)),
            _ => unreachable!("{op:?} is not a floating operate"),
        }
    }

    /// VAX has no invalid division: 0/0 is a division by zero (4.7.7.5).
    fn vax_divide(&mut self, format: &FloatFormat, operands: [u64; 2]) -> Result<u64, InvalidOperand> {
        let result = self.binary(format, divide, operands)?;
        if self.flags & INV != 0 {
            self.flags = self.flags & !INV | DZE;
        }
        Ok(result)
    }

    fn quad_to_long(&mut self, b: u64) -> u64 {
        if b as i32 as u64 != b {
            self.flags |= IOV | INE;
        }
        (b & 0xc000_0000) << 32 | (b & 0x3fff_ffff) << 29
    }
}

/// Executes a floating-point operation; `step.immediate` is the instruction word. `cpu.pc` is already the address of
/// the next instruction, as for an arithmetic trap.
#[inline]
pub fn execute(step: &DecodedInstruction, cpu: &mut Cpu) -> Result<(), Exception> {
    let operands @ [a, b] = [cpu.f[step.a as usize], cpu.f[step.b as usize]];
    let (zero, negative) = (a & !SIGN == 0, a & SIGN != 0);
    let condition = match step.op {
        Op::Fcmoveq => zero,
        Op::Fcmovne => !zero,
        Op::Fcmovlt => negative && !zero,
        Op::Fcmovge => !negative || zero,
        Op::Fcmovle => negative || zero,
        Op::Fcmovgt => !negative && !zero,
        _ => {
            let value = match step.op {
                Op::Cpys => a & SIGN | b & !SIGN,
                Op::Cpysn => !a & SIGN | b & !SIGN,
                Op::Cpyse => a & 0xfff << 52 | b & !(0xfff << 52),
                Op::Cvtlq => store_s(b) as i32 as u64,
                Op::MfFpcr => cpu.fpcr,
                Op::MtFpcr => {
                    control::write_fpcr(cpu, a);
                    return Ok(());
                }
                op => match quick::compute(op, step.immediate as u32, operands, cpu) {
                    Some(value) => value,
                    None => return arithmetic(step, operands, cpu),
                },
            };
            cpu.f[step.c as usize] = value;
            return Ok(());
        }
    };
    if condition {
        cpu.f[step.c as usize] = b;
    }
    Ok(())
}

/// Computes the general case, records exceptions and traps.
#[cold]
fn arithmetic(step: &DecodedInstruction, operands: [u64; 2], cpu: &mut Cpu) -> Result<(), Exception> {
    let vax = step.op.is(isa::Flags::VAX);
    let qualifiers = isa::Instruction { op: step.op, word: step.immediate as u32 }.qualifiers();
    let mut environment = FloatEnvironment::new(cpu, vax, qualifiers);
    let result = environment.compute(step.op, operands);
    // The architecture leaves results of trapping operations UNPREDICTABLE. Here an operand trap writes no result,
    // and any other trap writes the result that there would be without a trap.
    if let Ok(value) = result {
        cpu.f[step.c as usize] = value;
    }
    let mut flags = environment.flags | if result.is_err() { INV } else { 0 };
    if vax {
        flags &= !INE;
    } else if qualifiers.software && qualifiers.underflow && flags & IOV != 0 {
        // The completion handler reports integer overflow as an invalid operation (B.2.1).
        flags |= INV;
    }
    if flags == 0 {
        return Ok(());
    }
    control::record(cpu, flags);

    let mut trapping = INV | DZE | OVF | DNO;
    if qualifiers.underflow {
        trapping |= UNF | IOV;
    }
    if qualifiers.inexact {
        trapping |= INE;
    }
    if qualifiers.software && !vax {
        trapping &= control::enabled(cpu);
    }
    match flags & trapping {
        0 => Ok(()),
        traps => Err(Exception::Arithmetic {
            summary: control::summary(traps, qualifiers.software),
            registers: 1 << (32 + step.c.min(31)),
        }),
    }
}
