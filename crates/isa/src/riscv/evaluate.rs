//! The results of integer operations.

use super::RiscvOp;
use crate::Operation;

/// The low half, sign-extended.
fn word(value: u64) -> u64 {
    value as i32 as u64
}

/// The low half, zero-extended.
fn low(value: u64) -> u64 {
    value as u32 as u64
}

/// The quotient; of a division by zero all bits, as the architecture has it.
fn divide(a: i64, b: i64) -> u64 {
    if b == 0 { u64::MAX } else { a.wrapping_div(b) as u64 }
}

fn remainder(a: i64, b: i64) -> u64 {
    if b == 0 { a as u64 } else { a.wrapping_rem(b) as u64 }
}

/// A product without carries, of 128 bits.
fn carryless(a: u64, b: u64) -> u128 {
    (0..64).filter(|bit| b >> bit & 1 != 0).fold(0, |sum, bit| sum ^ u128::from(a) << bit)
}

/// Each byte, all ones unless it is 0.
fn or_bytes(value: u64) -> u64 {
    u64::from_le_bytes(value.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff }))
}

/// Fields of `a`, selected by the fields of `b`, which are `bits` wide each; 0 where there is none.
fn permute(a: u64, b: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let field = |at: u32| {
        let index = b >> at & mask;
        let from = index.saturating_mul(bits.into());
        if from < 64 { (a >> from & mask) << at } else { 0 }
    };
    (0..64).step_by(bits as usize).map(field).sum()
}

/// Defines the operations, each as a function of two operands.
macro_rules! operations {
    ($($($op:ident)|+ => |$a:pat_param, $b:pat_param| $result:expr;)*) => {
        /// The integer operation of two operands that an instruction is, if it is one: on its first source, and on its second
        /// source or constant. It does not depend on its destination.
        ///
        /// Trace files omit the values that this function determines: a change of it changes their format.
        pub fn riscv_operation(op: RiscvOp) -> Option<Operation> {
            Some(match op {
                $($(RiscvOp::$op)|+ => |$a, $b, _| $result,)*
                _ => return None,
            })
        }

        /// The result of such an operation; none of other instructions.
        #[inline(always)]
        pub fn riscv_result(op: RiscvOp, a: u64, b: u64) -> Option<u64> {
            Some(match op {
                $($(RiscvOp::$op)|+ => {
                    let ($a, $b) = (a, b);
                    $result
                })*
                _ => return None,
            })
        }
    };
}

operations! {
    Addi | Add => |a, b| a.wrapping_add(b);
    Sub => |a, b| a.wrapping_sub(b);
    Slti | Slt => |a, b| u64::from((a as i64) < b as i64);
    Sltiu | Sltu => |a, b| u64::from(a < b);
    Xori | Xor => |a, b| a ^ b;
    Ori | Or => |a, b| a | b;
    Andi | And => |a, b| a & b;
    Slli | Sll => |a, b| a << (b & 63);
    Srli | Srl => |a, b| a >> (b & 63);
    Srai | Sra => |a, b| (a as i64 >> (b & 63)) as u64;
    Addiw | Addw => |a, b| word(a.wrapping_add(b));
    Subw => |a, b| word(a.wrapping_sub(b));
    Slliw | Sllw => |a, b| word(a << (b & 31));
    Srliw | Srlw => |a, b| word(low(a) >> (b & 31));
    Sraiw | Sraw => |a, b| (a as i32 >> (b & 31)) as u64;
    Mul => |a, b| a.wrapping_mul(b);
    Mulw => |a, b| word(a.wrapping_mul(b));
    Mulh => |a, b| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64;
    Mulhsu => |a, b| ((i128::from(a as i64) * i128::from(b)) >> 64) as u64;
    Mulhu => |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    Div => |a, b| divide(a as i64, b as i64);
    Divu => |a, b| a.checked_div(b).unwrap_or(u64::MAX);
    Rem => |a, b| remainder(a as i64, b as i64);
    Remu => |a, b| a.checked_rem(b).unwrap_or(a);
    Divw => |a, b| word(divide((a as i32).into(), (b as i32).into()));
    Divuw => |a, b| word(low(a).checked_div(low(b)).unwrap_or(u64::MAX));
    Remw => |a, b| word(remainder((a as i32).into(), (b as i32).into()));
    Remuw => |a, b| word(low(a).checked_rem(low(b)).unwrap_or(a));
    MopR | MopRr => |_, _| 0;
    AddUw => |a, b| low(a).wrapping_add(b);
    Sh1add => |a, b| (a << 1).wrapping_add(b);
    Sh2add => |a, b| (a << 2).wrapping_add(b);
    Sh3add => |a, b| (a << 3).wrapping_add(b);
    Sh1addUw => |a, b| (low(a) << 1).wrapping_add(b);
    Sh2addUw => |a, b| (low(a) << 2).wrapping_add(b);
    Sh3addUw => |a, b| (low(a) << 3).wrapping_add(b);
    SlliUw => |a, b| low(a) << (b & 63);
    Andn => |a, b| a & !b;
    Orn => |a, b| a | !b;
    Xnor => |a, b| a ^ !b;
    Clz => |a, _| a.leading_zeros().into();
    Ctz => |a, _| a.trailing_zeros().into();
    Cpop => |a, _| a.count_ones().into();
    Clzw => |a, _| (a as u32).leading_zeros().into();
    Ctzw => |a, _| (a as u32).trailing_zeros().into();
    Cpopw => |a, _| (a as u32).count_ones().into();
    SextB => |a, _| a as i8 as u64;
    SextH => |a, _| a as i16 as u64;
    ZextH => |a, _| a as u16 as u64;
    Max => |a, b| (a as i64).max(b as i64) as u64;
    Maxu => |a, b| a.max(b);
    Min => |a, b| (a as i64).min(b as i64) as u64;
    Minu => |a, b| a.min(b);
    OrcB => |a, _| or_bytes(a);
    Rev8 => |a, _| a.swap_bytes();
    Brev8 => |a, _| a.reverse_bits().swap_bytes();
    Rol => |a, b| a.rotate_left(b as u32 & 63);
    Ror | Rori => |a, b| a.rotate_right(b as u32 & 63);
    Rolw => |a, b| (a as u32).rotate_left(b as u32 & 31) as i32 as u64;
    Rorw | Roriw => |a, b| (a as u32).rotate_right(b as u32 & 31) as i32 as u64;
    Pack => |a, b| low(a) | b << 32;
    Packh => |a, b| a & 0xff | (b & 0xff) << 8;
    Packw => |a, b| word(a & 0xffff | b << 16);
    Xperm4 => |a, b| permute(a, b, 4);
    Xperm8 => |a, b| permute(a, b, 8);
    Clmul => |a, b| carryless(a, b) as u64;
    Clmulh => |a, b| (carryless(a, b) >> 64) as u64;
    Clmulr => |a, b| (carryless(a, b) >> 63) as u64;
    Bclr | Bclri => |a, b| a & !(1 << (b & 63));
    Bext | Bexti => |a, b| a >> (b & 63) & 1;
    Binv | Binvi => |a, b| a ^ 1 << (b & 63);
    Bset | Bseti => |a, b| a | 1 << (b & 63);
    CzeroEqz => |a, b| if b == 0 { 0 } else { a };
    CzeroNez => |a, b| if b == 0 { a } else { 0 };
}
