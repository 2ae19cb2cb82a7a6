//! Floating-point operations, exact to the bit and to the accrued exceptions.

mod arithmetic;
mod convert;
mod format;
mod quick;

use isa::RiscvOp;

use crate::cpu::{RiscvCpu, RiscvException};
use crate::decoded_instruction::RiscvDecodedInstruction;
use arithmetic::{add, divide, multiply, multiply_add, square_root};
use format::{DOUBLE, FloatLayout, HALF, NumberKind, RiscvNumber, RiscvRounding, SINGLE, flag};

/// The bits of a register as a number of a format: the canonical NaN if it is not NaN-boxed.
fn read(cpu: &RiscvCpu, register: u8, layout: FloatLayout) -> u64 {
    let value = cpu.f[usize::from(register)];
    let boxed = ones_above(layout);
    if value & boxed == boxed { value & !boxed } else { layout.canonical_nan() }
}

/// The bits above a format's, which are ones in a register.
fn ones_above(layout: FloatLayout) -> u64 {
    u64::MAX.checked_shl(layout.bits()).unwrap_or(0)
}

/// Executes a floating-point operation.
pub(crate) fn execute(step: &RiscvDecodedInstruction, cpu: &mut RiscvCpu) -> Result<(), RiscvException> {
    use RiscvOp::*;
    use isa::RiscvOperands::*;
    if let Some(result) = quick::compute(step, cpu) {
        cpu.f[usize::from(step.rd)] = result;
        return Ok(());
    }
    let op = step.op;
    let layout = FloatLayout::of(op.float_format());
    let number = if step.rounding == 7 { cpu.fcsr >> 5 & 7 } else { step.rounding.into() };
    let is_rounded =
        matches!(op.operands(), FdFs1Fs2Fs3Round | FdFs1Fs2Round | FdFs1Round | RdFs1Round | FdRs1Round)
            && op != FcvtmodWD;
    // Other operations have a function in the place of the rounding mode.
    let rounding = match is_rounded {
        true => RiscvRounding::of_number(number).ok_or(RiscvException::IllegalInstruction)?,
        false => RiscvRounding::TowardsZero,
    };
    let [a, b, c] = [step.rs1, step.rs2, step.rs3].map(|register| read(cpu, register, layout));
    let [x, y, z] = [a, b, c].map(|bits| layout.unpack(bits));
    let integer = cpu.x[usize::from(step.rs1)];
    let source = |layout: FloatLayout| layout.unpack(read(cpu, step.rs1, layout));
    let sign = layout.sign();
    let mut flags = 0;
    let noted = &mut flags;
    /// The register that gets the result.
    enum Target {
        Float(u64),
        Integer(u64),
    }
    let rounded = |number: RiscvNumber, noted: &mut u64| Target::Float(layout.round(number, rounding, noted));
    let result = match op {
        FaddH | FaddS | FaddD => rounded(add(x, y, rounding, noted), noted),
        FsubH | FsubS | FsubD => rounded(add(x, y.negated(), rounding, noted), noted),
        FmulH | FmulS | FmulD => rounded(multiply(x, y, noted), noted),
        FdivH | FdivS | FdivD => rounded(divide(x, y, noted), noted),
        FsqrtH | FsqrtS | FsqrtD => rounded(square_root(x, noted), noted),
        FmaddH | FmaddS | FmaddD => rounded(multiply_add(x, y, z, rounding, noted), noted),
        FmsubH | FmsubS | FmsubD => rounded(multiply_add(x, y, z.negated(), rounding, noted), noted),
        FnmsubH | FnmsubS | FnmsubD => rounded(multiply_add(x.negated(), y, z, rounding, noted), noted),
        FnmaddH | FnmaddS | FnmaddD => {
            rounded(multiply_add(x.negated(), y, z.negated(), rounding, noted), noted)
        }
        FsgnjH | FsgnjS | FsgnjD => Target::Float(a & !sign | b & sign),
        FsgnjnH | FsgnjnS | FsgnjnD => Target::Float(a & !sign | !b & sign),
        FsgnjxH | FsgnjxS | FsgnjxD => Target::Float(a ^ b & sign),
        FminH | FminS | FminD => Target::Float(extreme([a, b], layout, true, false, noted)),
        FmaxH | FmaxS | FmaxD => Target::Float(extreme([a, b], layout, false, false, noted)),
        FminmH | FminmS | FminmD => Target::Float(extreme([a, b], layout, true, true, noted)),
        FmaxmH | FmaxmS | FmaxmD => Target::Float(extreme([a, b], layout, false, true, noted)),
        FeqH | FeqS | FeqD => Target::Integer(compare(x, y, true, noted, |order| order.is_eq())),
        FltH | FltS | FltD => Target::Integer(compare(x, y, false, noted, |order| order.is_lt())),
        FleH | FleS | FleD => Target::Integer(compare(x, y, false, noted, |order| order.is_le())),
        FltqH | FltqS | FltqD => Target::Integer(compare(x, y, true, noted, |order| order.is_lt())),
        FleqH | FleqS | FleqD => Target::Integer(compare(x, y, true, noted, |order| order.is_le())),
        FclassH | FclassS | FclassD => Target::Integer(1 << class(a, layout)),
        FroundH | FroundS | FroundD => {
            Target::Float(convert::to_integral(a, layout, rounding, &mut 0) | invalid(x, noted))
        }
        FroundnxH | FroundnxS | FroundnxD => {
            Target::Float(convert::to_integral(a, layout, rounding, noted) | invalid(x, noted))
        }
        FliH | FliS | FliD => Target::Float(convert::constant(step.rs1, layout)),
        FcvtWH | FcvtWS | FcvtWD => Target::Integer(convert::to_integer(x, rounding, 32, true, noted)),
        FcvtWuH | FcvtWuS | FcvtWuD => Target::Integer(convert::to_integer(x, rounding, 32, false, noted)),
        FcvtLH | FcvtLS | FcvtLD => Target::Integer(convert::to_integer(x, rounding, 64, true, noted)),
        FcvtLuH | FcvtLuS | FcvtLuD => Target::Integer(convert::to_integer(x, rounding, 64, false, noted)),
        FcvtmodWD => Target::Integer(convert::to_integer_modulo(x, noted)),
        FcvtHW | FcvtSW | FcvtDW => rounded(signed(integer as i32 as i64), noted),
        FcvtHWu | FcvtSWu | FcvtDWu => rounded(RiscvNumber::integer(false, integer as u32 as u64), noted),
        FcvtHL | FcvtSL | FcvtDL => rounded(signed(integer as i64), noted),
        FcvtHLu | FcvtSLu | FcvtDLu => rounded(RiscvNumber::integer(false, integer), noted),
        FcvtSD | FcvtHD => rounded(source(DOUBLE), noted),
        FcvtDS | FcvtHS => rounded(source(SINGLE), noted),
        FcvtSH | FcvtDH => rounded(source(HALF), noted),
        FmvXH => Target::Integer(cpu.f[usize::from(step.rs1)] as i16 as u64),
        FmvXW => Target::Integer(cpu.f[usize::from(step.rs1)] as i32 as u64),
        FmvXD => Target::Integer(cpu.f[usize::from(step.rs1)]),
        FmvHX | FmvWX | FmvDX => Target::Float(integer & !ones_above(layout)),
        _ => return Err(RiscvException::IllegalInstruction),
    };
    match result {
        Target::Float(bits) => cpu.f[usize::from(step.rd)] = bits | ones_above(layout),
        Target::Integer(value) => cpu.x[usize::from(step.rd)] = value,
    }
    cpu.fcsr |= flags;
    Ok(())
}

fn signed(value: i64) -> RiscvNumber {
    RiscvNumber::integer(value < 0, value.unsigned_abs())
}

/// Notes an operation on a NaN that signals; no bits.
fn invalid(number: RiscvNumber, flags: &mut u64) -> u64 {
    if number.kind == NumberKind::SignalingNan {
        *flags |= flag::NV;
    }
    0
}

/// The lesser or the greater of two numbers. Of one that is not a number and another one, that other one, unless NaNs propagate.
fn extreme([a, b]: [u64; 2], layout: FloatLayout, is_least: bool, propagates: bool, flags: &mut u64) -> u64 {
    let (x, y) = (layout.unpack(a), layout.unpack(b));
    let _ = invalid(x, flags) | invalid(y, flags);
    if propagates && (x.is_nan() || y.is_nan()) {
        return layout.canonical_nan();
    }
    match (x.compare(y), x.is_nan(), y.is_nan()) {
        (None, true, true) => layout.canonical_nan(),
        (None, true, false) => b,
        (None, ..) => a,
        // Of zeros, the negative one is less.
        (Some(order), ..) if order.is_eq() => {
            if is_least {
                a | b
            } else {
                a & b
            }
        }
        (Some(order), ..) => {
            if order.is_lt() == is_least {
                a
            } else {
                b
            }
        }
    }
}

/// A comparison of two numbers. With NaNs it does not hold, and is invalid if one signals or the comparison is not quiet.
fn compare(
    x: RiscvNumber,
    y: RiscvNumber,
    is_quiet: bool,
    flags: &mut u64,
    holds: impl Fn(std::cmp::Ordering) -> bool,
) -> u64 {
    let _ = invalid(x, flags) | invalid(y, flags);
    match x.compare(y) {
        Some(order) => u64::from(holds(order)),
        None => {
            *flags |= if is_quiet { 0 } else { flag::NV };
            0
        }
    }
}

/// The number of a class (chapter "F", table of the result of `fclass`).
fn class(bits: u64, layout: FloatLayout) -> u32 {
    use NumberKind::*;
    let number = layout.unpack(bits);
    let is_subnormal = bits & !layout.sign() < layout.smallest_normal();
    let magnitude = match number.kind {
        SignalingNan => return 8,
        QuietNan => return 9,
        Infinity => 3,
        Zero => 0,
        Finite if is_subnormal => 1,
        Finite => 2,
    };
    if number.is_negative { 3 - magnitude } else { 4 + magnitude }
}
