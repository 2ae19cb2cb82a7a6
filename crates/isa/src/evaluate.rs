//! What integer operations compute.

use crate::Op;

/// The bytes of a value whose bits are set.
fn keep(value: u64, bits: u64) -> u64 {
    (0..8).map(|byte| value & (0xff << (8 * byte)) & (bits >> byte & 1).wrapping_neg()).sum()
}

/// The result of an integer operation, if it is a common one (Alpha Architecture Reference Manual, 4.4 to 4.6).
/// `old` is what its destination held. Operations that can trap are taken not to.
///
/// Trace files omit values that follow from this, so that a change of it changes their format.
pub fn evaluate(op: Op, a: u64, b: u64, old: u64) -> Option<u64> {
    let long = |value: u64| value as i32 as u64;
    let (signed_a, signed_b) = (a as i64, b as i64);
    let choose = |condition| if condition { b } else { old };
    let (right, left) = (8 * (b & 7), (64 - 8 * (b & 7)) & 63);
    let covered = |size: u32| ((1u64 << size) - 1) << (b & 7);
    Some(match op {
        Op::Addl | Op::Addlv => long(a.wrapping_add(b)),
        Op::Addq | Op::Addqv => a.wrapping_add(b),
        Op::Subl | Op::Sublv => long(a.wrapping_sub(b)),
        Op::Subq | Op::Subqv => a.wrapping_sub(b),
        Op::S4addl => long((a << 2).wrapping_add(b)),
        Op::S4addq => (a << 2).wrapping_add(b),
        Op::S4subl => long((a << 2).wrapping_sub(b)),
        Op::S4subq => (a << 2).wrapping_sub(b),
        Op::S8addl => long((a << 3).wrapping_add(b)),
        Op::S8addq => (a << 3).wrapping_add(b),
        Op::S8subl => long((a << 3).wrapping_sub(b)),
        Op::S8subq => (a << 3).wrapping_sub(b),
        Op::Mull | Op::Mullv => long(a.wrapping_mul(b)),
        Op::Mulq | Op::Mulqv => a.wrapping_mul(b),
        Op::Umulh => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Op::Cmpeq => u64::from(a == b),
        Op::Cmplt => u64::from(signed_a < signed_b),
        Op::Cmple => u64::from(signed_a <= signed_b),
        Op::Cmpult => u64::from(a < b),
        Op::Cmpule => u64::from(a <= b),
        Op::And => a & b,
        Op::Bis => a | b,
        Op::Xor => a ^ b,
        Op::Bic => a & !b,
        Op::Ornot => a | !b,
        Op::Eqv => a ^ !b,
        Op::Sll => a << (b & 63),
        Op::Srl => a >> (b & 63),
        Op::Sra => (signed_a >> (b & 63)) as u64,
        Op::Cmoveq => choose(a == 0),
        Op::Cmovne => choose(a != 0),
        Op::Cmovlt => choose(signed_a < 0),
        Op::Cmovle => choose(signed_a <= 0),
        Op::Cmovgt => choose(signed_a > 0),
        Op::Cmovge => choose(signed_a >= 0),
        Op::Cmovlbc => choose(a & 1 == 0),
        Op::Cmovlbs => choose(a & 1 != 0),
        Op::Zap => keep(a, !b),
        Op::Zapnot => keep(a, b),
        Op::Extbl => keep(a >> right, 1),
        Op::Extwl => keep(a >> right, 3),
        Op::Extll => keep(a >> right, 0xf),
        Op::Extql => a >> right,
        Op::Extwh => keep(a << left, 3),
        Op::Extlh => keep(a << left, 0xf),
        Op::Extqh => a << left,
        Op::Insbl => keep(a << right, covered(1)),
        Op::Inswl => keep(a << right, covered(2)),
        Op::Insll => keep(a << right, covered(4)),
        Op::Insql => a << right,
        Op::Mskbl => keep(a, !covered(1)),
        Op::Mskwl => keep(a, !covered(2)),
        Op::Mskll => keep(a, !covered(4)),
        Op::Mskql => keep(a, !covered(8)),
        Op::Sextb => b as i8 as u64,
        Op::Sextw => b as i16 as u64,
        _ => return None,
    })
}
