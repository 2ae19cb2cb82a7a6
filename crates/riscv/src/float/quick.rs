//! Common cases computed by the host: normal operands, rounding to nearest, a normal result, and inexact results already accrued.
//! In these cases Rust's `f64` and `f32` give the only result that IEEE 754 allows, on every host.

use isa::RiscvOp;

use super::format::flag;
use crate::cpu::RiscvCpu;
use crate::decoded_instruction::RiscvDecodedInstruction;

/// The rounding mode of instructions that take the one in `fcsr`.
const DYNAMIC: u8 = 7;
/// The bits above a single number in a register.
const BOX: u64 = 0xffff_ffff << 32;

/// Whether a double is normal.
fn is_normal(bits: u64) -> bool {
    (bits >> 52 & 0x7ff).wrapping_sub(1) < 0x7fe
}

/// Whether a result certainly neither overflowed nor underflowed. The smallest binade is excluded, since a smaller number may
/// have been rounded up to it.
fn is_certain(bits: u64) -> bool {
    (bits >> 52 & 0x7ff).wrapping_sub(2) < 0x7fd
}

/// The same of singles.
fn is_normal_single(bits: u32) -> bool {
    (bits >> 23 & 0xff).wrapping_sub(1) < 0xfe
}

fn is_certain_single(bits: u32) -> bool {
    (bits >> 23 & 0xff).wrapping_sub(2) < 0xfd
}

/// The bits of the destination register, in the common case.
#[inline]
pub(crate) fn compute(step: &RiscvDecodedInstruction, cpu: &RiscvCpu) -> Option<u64> {
    use RiscvOp::*;
    let is_nearest = step.rounding == 0 || step.rounding == DYNAMIC && cpu.fcsr >> 5 == 0;
    if cpu.fcsr & flag::NX == 0 || !is_nearest {
        return None;
    }
    let [a, b, c] = [step.rs1, step.rs2, step.rs3].map(|register| cpu.f[usize::from(register)]);
    let double = |operands: &[u64], operation: fn(f64, f64, f64) -> f64| {
        let result = operation(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits();
        (operands.iter().all(|&one| is_normal(one)) && is_certain(result)).then_some(result)
    };
    let single = |operands: &[u64], operation: fn(f32, f32, f32) -> f32| {
        let [x, y, z] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
        let result = operation(x, y, z).to_bits();
        let is_plain = |one: &u64| is_normal_single(*one as u32) && one & BOX == BOX;
        (operands.iter().all(is_plain) && is_certain_single(result)).then_some(BOX | u64::from(result))
    };
    match step.op {
        FaddD => double(&[a, b], |x, y, _| x + y),
        FsubD => double(&[a, b], |x, y, _| x - y),
        FmulD => double(&[a, b], |x, y, _| x * y),
        FdivD => double(&[a, b], |x, y, _| x / y),
        FsqrtD => double(&[a], |x, _, _| x.sqrt()),
        FmaddD => double(&[a, b, c], |x, y, z| x.mul_add(y, z)),
        FmsubD => double(&[a, b, c], |x, y, z| x.mul_add(y, -z)),
        FnmsubD => double(&[a, b, c], |x, y, z| (-x).mul_add(y, z)),
        FnmaddD => double(&[a, b, c], |x, y, z| (-x).mul_add(y, -z)),
        FaddS => single(&[a, b], |x, y, _| x + y),
        FsubS => single(&[a, b], |x, y, _| x - y),
        FmulS => single(&[a, b], |x, y, _| x * y),
        FdivS => single(&[a, b], |x, y, _| x / y),
        FsqrtS => single(&[a], |x, _, _| x.sqrt()),
        FcvtDS => {
            let result = f64::from(f32::from_bits(a as u32)).to_bits();
            (a & BOX == BOX && is_normal_single(a as u32)).then_some(result)
        }
        FcvtSD => {
            let result = (f64::from_bits(a) as f32).to_bits();
            (is_normal(a) && is_certain_single(result)).then_some(BOX | u64::from(result))
        }
        FcvtDW => Some(f64::from(cpu.x[usize::from(step.rs1)] as i32).to_bits()),
        FcvtDL => Some((cpu.x[usize::from(step.rs1)] as i64 as f64).to_bits()),
        _ => None,
    }
}
