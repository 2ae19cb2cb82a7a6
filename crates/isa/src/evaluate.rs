//! The results of integer operations.

use crate::{Op, Operation};

/// The bytes of a value whose bits are set.
fn keep(value: u64, bits: u64) -> u64 {
    (0..8).map(|byte| value & (0xff << (8 * byte)) & (bits >> byte & 1).wrapping_neg()).sum()
}

/// The low half, sign-extended.
fn long(value: u64) -> u64 {
    value as i32 as u64
}

fn choose(condition: bool, b: u64, old: u64) -> u64 {
    if condition { b } else { old }
}

/// The bits by which the byte address `b` shifts to the right.
fn right(b: u64) -> u64 {
    8 * (b & 7)
}

/// The bits by which it shifts the next quadword's bytes to the left.
fn left(b: u64) -> u64 {
    (64 - right(b)) & 63
}

/// The bytes from the byte address `b` on, as bits.
fn covered(size: u32, b: u64) -> u64 {
    ((1u64 << size) - 1) << (b & 7)
}

/// An integer operation, if it is a common one (Alpha Architecture Reference Manual, 4.4 to 4.6). Operations that can
/// trap are taken not to.
///
/// Trace files omit the values that this function determines: a change of it changes their format.
pub fn operation(op: Op) -> Option<Operation> {
    let operation: Operation = match op {
        Op::Addl | Op::Addlv => |a, b, _| long(a.wrapping_add(b)),
        Op::Addq | Op::Addqv => |a, b, _| a.wrapping_add(b),
        Op::Subl | Op::Sublv => |a, b, _| long(a.wrapping_sub(b)),
        Op::Subq | Op::Subqv => |a, b, _| a.wrapping_sub(b),
        Op::S4addl => |a, b, _| long((a << 2).wrapping_add(b)),
        Op::S4addq => |a, b, _| (a << 2).wrapping_add(b),
        Op::S4subl => |a, b, _| long((a << 2).wrapping_sub(b)),
        Op::S4subq => |a, b, _| (a << 2).wrapping_sub(b),
        Op::S8addl => |a, b, _| long((a << 3).wrapping_add(b)),
        Op::S8addq => |a, b, _| (a << 3).wrapping_add(b),
        Op::S8subl => |a, b, _| long((a << 3).wrapping_sub(b)),
        Op::S8subq => |a, b, _| (a << 3).wrapping_sub(b),
        Op::Mull | Op::Mullv => |a, b, _| long(a.wrapping_mul(b)),
        Op::Mulq | Op::Mulqv => |a, b, _| a.wrapping_mul(b),
        Op::Umulh => |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Op::Cmpeq => |a, b, _| u64::from(a == b),
        Op::Cmplt => |a, b, _| u64::from((a as i64) < b as i64),
        Op::Cmple => |a, b, _| u64::from(a as i64 <= b as i64),
        Op::Cmpult => |a, b, _| u64::from(a < b),
        Op::Cmpule => |a, b, _| u64::from(a <= b),
        Op::And => |a, b, _| a & b,
        Op::Bis => |a, b, _| a | b,
        Op::Xor => |a, b, _| a ^ b,
        Op::Bic => |a, b, _| a & !b,
        Op::Ornot => |a, b, _| a | !b,
        Op::Eqv => |a, b, _| a ^ !b,
        Op::Sll => |a, b, _| a << (b & 63),
        Op::Srl => |a, b, _| a >> (b & 63),
        Op::Sra => |a, b, _| (a as i64 >> (b & 63)) as u64,
        Op::Cmoveq => |a, b, old| choose(a == 0, b, old),
        Op::Cmovne => |a, b, old| choose(a != 0, b, old),
        Op::Cmovlt => |a, b, old| choose((a as i64) < 0, b, old),
        Op::Cmovle => |a, b, old| choose(a as i64 <= 0, b, old),
        Op::Cmovgt => |a, b, old| choose(a as i64 > 0, b, old),
        Op::Cmovge => |a, b, old| choose(a as i64 >= 0, b, old),
        Op::Cmovlbc => |a, b, old| choose(a & 1 == 0, b, old),
        Op::Cmovlbs => |a, b, old| choose(a & 1 != 0, b, old),
        Op::Zap => |a, b, _| keep(a, !b),
        Op::Zapnot => |a, b, _| keep(a, b),
        Op::Extbl => |a, b, _| keep(a >> right(b), 1),
        Op::Extwl => |a, b, _| keep(a >> right(b), 3),
        Op::Extll => |a, b, _| keep(a >> right(b), 0xf),
        Op::Extql => |a, b, _| a >> right(b),
        Op::Extwh => |a, b, _| keep(a << left(b), 3),
        Op::Extlh => |a, b, _| keep(a << left(b), 0xf),
        Op::Extqh => |a, b, _| a << left(b),
        Op::Insbl => |a, b, _| keep(a << right(b), covered(1, b)),
        Op::Inswl => |a, b, _| keep(a << right(b), covered(2, b)),
        Op::Insll => |a, b, _| keep(a << right(b), covered(4, b)),
        Op::Insql => |a, b, _| a << right(b),
        Op::Mskbl => |a, b, _| keep(a, !covered(1, b)),
        Op::Mskwl => |a, b, _| keep(a, !covered(2, b)),
        Op::Mskll => |a, b, _| keep(a, !covered(4, b)),
        Op::Mskql => |a, b, _| keep(a, !covered(8, b)),
        Op::Sextb => |_, b, _| b as i8 as u64,
        Op::Sextw => |_, b, _| b as i16 as u64,
        _ => return None,
    };
    Some(operation)
}

/// The result of an integer operation, if it is one of [`operation`]. `old` is what its destination held.
pub fn evaluate(op: Op, a: u64, b: u64, old: u64) -> Option<u64> {
    operation(op).map(|operation| operation(a, b, old))
}
