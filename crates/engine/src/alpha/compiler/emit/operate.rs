//! What integer operates and conditions compute, in Cranelift's terms: one line an instruction, as in
//! the interpreter's `meaning`.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I16, I32, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use isa::Op;

use super::{Cpu, Emitter, Step, state};
use crate::alpha::meaning::pal;

/// The low `size` bytes set.
fn bytes(size: u32) -> u64 {
    u64::MAX >> (64 - 8 * size)
}

/// The 64-bit mask of the bytes whose bit is set.
fn spread(bits: u64) -> u64 {
    crate::alpha::bytes::keep(u64::MAX, bits)
}

impl Emitter<'_> {
    /// Whether a conditional branch is taken.
    pub(super) fn condition(&mut self, step: &Step) -> Value {
        let float = step.op.is_float();
        let value = if float { self.read_float(step.a) } else { self.read(step.a) };
        let compare = match step.op {
            Op::Beq => IntCC::Equal,
            Op::Bne => IntCC::NotEqual,
            Op::Blt => IntCC::SignedLessThan,
            Op::Ble => IntCC::SignedLessThanOrEqual,
            Op::Bgt => IntCC::SignedGreaterThan,
            Op::Bge => IntCC::SignedGreaterThanOrEqual,
            Op::Blbs => return self.builder.ins().band_imm_u(value, 1),
            Op::Blbc => {
                let bit = self.builder.ins().band_imm_u(value, 1);
                return self.builder.ins().icmp_imm_u(IntCC::Equal, bit, 0);
            }
            _ => return self.float_condition(step.op, value),
        };
        self.builder.ins().icmp_imm_s(compare, value, 0)
    }

    /// Minus zero counts as zero; all else is ordered as its sign says.
    fn float_condition(&mut self, op: Op, value: Value) -> Value {
        let magnitude = self.builder.ins().ishl_imm_u(value, 1);
        let zero = self.builder.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
        let nonzero = self.builder.ins().icmp_imm_u(IntCC::NotEqual, magnitude, 0);
        let negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, value, 0);
        let positive = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, value, 0);
        match op {
            Op::Fbeq => zero,
            Op::Fbne => nonzero,
            Op::Fblt => self.builder.ins().band(negative, nonzero),
            Op::Fble => self.builder.ins().bor(negative, zero),
            Op::Fbgt => self.builder.ins().band(positive, nonzero),
            _ => self.builder.ins().bor(positive, zero),
        }
    }

    /// Register b plus the literal or displacement.
    fn second(&mut self, step: &Step) -> Value {
        if step.b == 31 {
            return self.constant(step.immediate as u64);
        }
        let base = self.read(step.b);
        if step.immediate == 0 { base } else { self.builder.ins().iadd_imm_s(base, step.immediate) }
    }

    /// An instruction without access to memory; false if it is none of the common ones.
    pub(super) fn operate(&mut self, step: &Step) -> bool {
        use IntCC::*;
        let literal = (step.b == 31).then_some(step.immediate as u64);
        let value = match step.op {
            Op::Lda | Op::Ldah => self.second(step),
            Op::Itoft => {
                let value = self.read(step.a);
                self.write_float(step.c, value);
                return true;
            }
            Op::Ftoit => self.read_float(step.a),
            Op::Addl | Op::S4addl | Op::S8addl | Op::Addq | Op::S4addq | Op::S8addq => {
                let (a, b) = self.scaled(step);
                let sum = self.builder.ins().iadd(a, b);
                self.sized(step.op, sum)
            }
            Op::Subl | Op::S4subl | Op::S8subl | Op::Subq | Op::S4subq | Op::S8subq => {
                let (a, b) = self.scaled(step);
                let difference = self.builder.ins().isub(a, b);
                self.sized(step.op, difference)
            }
            Op::Mull => {
                let (a, b) = self.both(step);
                let product = self.builder.ins().imul(a, b);
                self.long(product)
            }
            Op::Mulq => self.binary(step, |i, a, b| i.imul(a, b)),
            Op::Umulh => self.binary(step, |i, a, b| i.umulhi(a, b)),
            Op::Cmpeq => self.compare(step, Equal),
            Op::Cmplt => self.compare(step, SignedLessThan),
            Op::Cmple => self.compare(step, SignedLessThanOrEqual),
            Op::Cmpult => self.compare(step, UnsignedLessThan),
            Op::Cmpule => self.compare(step, UnsignedLessThanOrEqual),
            Op::Cmpbge => self.compare_bytes(step),
            Op::And => self.binary(step, |i, a, b| i.band(a, b)),
            Op::Bis => self.or(step),
            Op::Xor => self.binary(step, |i, a, b| i.bxor(a, b)),
            Op::Bic => self.binary(step, |i, a, b| i.band_not(a, b)),
            Op::Ornot => self.binary(step, |i, a, b| i.bor_not(a, b)),
            Op::Eqv => self.binary(step, |i, a, b| i.bxor_not(a, b)),
            Op::Sll => self.binary(step, |i, a, b| i.ishl(a, b)),
            Op::Srl => self.binary(step, |i, a, b| i.ushr(a, b)),
            Op::Sra => self.binary(step, |i, a, b| i.sshr(a, b)),
            Op::Cmoveq => self.conditional(step, Equal),
            Op::Cmovne => self.conditional(step, NotEqual),
            Op::Cmovlt => self.conditional(step, SignedLessThan),
            Op::Cmovle => self.conditional(step, SignedLessThanOrEqual),
            Op::Cmovgt => self.conditional(step, SignedGreaterThan),
            Op::Cmovge => self.conditional(step, SignedGreaterThanOrEqual),
            Op::Cmovlbc | Op::Cmovlbs => {
                let a = self.read(step.a);
                let bit = self.builder.ins().band_imm_u(a, 1);
                self.select(step, bit, if step.op == Op::Cmovlbs { NotEqual } else { Equal })
            }
            Op::Sextb | Op::Sextw => {
                let b = self.second(step);
                let kind = if step.op == Op::Sextb { I8 } else { I16 };
                let low = self.builder.ins().ireduce(kind, b);
                self.builder.ins().sextend(I64, low)
            }
            Op::Ctpop => self.unary(step, |i, b| i.popcnt(b)),
            Op::Ctlz => self.unary(step, |i, b| i.clz(b)),
            Op::Cttz => self.unary(step, |i, b| i.ctz(b)),
            Op::Zap | Op::Zapnot if literal.is_some() => {
                let bits = literal.unwrap_or_default();
                let a = self.read(step.a);
                let mask = spread(if step.op == Op::Zap { !bits } else { bits });
                self.mask(a, mask)
            }
            Op::Extbl => self.extract_low(step, 1),
            Op::Extwl => self.extract_low(step, 2),
            Op::Extll => self.extract_low(step, 4),
            Op::Extql => self.extract_low(step, 8),
            Op::Extwh => self.extract_high(step, 2),
            Op::Extlh => self.extract_high(step, 4),
            Op::Extqh => self.extract_high(step, 8),
            Op::Insbl => self.insert_low(step, 1),
            Op::Inswl => self.insert_low(step, 2),
            Op::Insll => self.insert_low(step, 4),
            Op::Insql => self.insert_low(step, 8),
            Op::Inswh => self.insert_high(step, 2),
            Op::Inslh => self.insert_high(step, 4),
            Op::Insqh => self.insert_high(step, 8),
            Op::Mskbl => self.mask_low(step, 1),
            Op::Mskwl => self.mask_low(step, 2),
            Op::Mskll => self.mask_low(step, 4),
            Op::Mskql => self.mask_low(step, 8),
            Op::Mskwh => self.mask_high(step, 2),
            Op::Msklh => self.mask_high(step, 4),
            Op::Mskqh => self.mask_high(step, 8),
            Op::Trapb | Op::Excb | Op::Fetch | Op::FetchM | Op::Ecb | Op::Wh64 | Op::Wh64en => return true,
            Op::Mb | Op::Wmb => {
                self.builder.ins().fence();
                return true;
            }
            Op::CallPal if step.immediate == pal::RDUNIQ => {
                let offset = std::mem::offset_of!(Cpu, unique) as i32;
                let unique = self.builder.ins().load(I64, state(), self.cpu, offset);
                self.write(0, unique);
                return true;
            }
            Op::Cpys => {
                if step.a != step.b {
                    return false;
                }
                let value = self.read_float(step.a);
                self.write_float(step.c, value);
                return true;
            }
            _ => return false,
        };
        self.write(step.c, value);
        true
    }

    fn both(&mut self, step: &Step) -> (Value, Value) {
        (self.read(step.a), self.second(step))
    }

    fn binary(
        &mut self,
        step: &Step,
        operation: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value, Value) -> Value,
    ) -> Value {
        let (a, b) = self.both(step);
        operation(self.builder.ins(), a, b)
    }

    fn unary(
        &mut self,
        step: &Step,
        operation: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value) -> Value,
    ) -> Value {
        let b = self.second(step);
        operation(self.builder.ins(), b)
    }

    /// `bis` is also how registers are copied.
    fn or(&mut self, step: &Step) -> Value {
        if step.a == 31 {
            self.second(step)
        } else if step.b == 31 && step.immediate == 0 || step.a == step.b {
            self.read(step.a)
        } else {
            self.binary(step, |i, a, b| i.bor(a, b))
        }
    }

    /// The operands of an addition or subtraction, the first one scaled.
    fn scaled(&mut self, step: &Step) -> (Value, Value) {
        let (a, b) = self.both(step);
        let shift = match step.op {
            Op::S4addl | Op::S4addq | Op::S4subl | Op::S4subq => 2,
            Op::S8addl | Op::S8addq | Op::S8subl | Op::S8subq => 3,
            _ => return (a, b),
        };
        (self.builder.ins().ishl_imm_u(a, shift), b)
    }

    /// A longword result is sign-extended.
    fn sized(&mut self, op: Op, value: Value) -> Value {
        match op {
            Op::Addl | Op::S4addl | Op::S8addl | Op::Subl | Op::S4subl | Op::S8subl => self.long(value),
            _ => value,
        }
    }

    fn long(&mut self, value: Value) -> Value {
        let low = self.builder.ins().ireduce(I32, value);
        self.builder.ins().sextend(I64, low)
    }

    fn compare(&mut self, step: &Step, condition: IntCC) -> Value {
        let (a, b) = self.both(step);
        let holds = self.builder.ins().icmp(condition, a, b);
        self.builder.ins().uextend(I64, holds)
    }

    /// All bytes at once in a vector register.
    fn compare_bytes(&mut self, step: &Step) -> Value {
        let (a, b) = self.both(step);
        let flags = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
        let mut vector = |value| {
            let wide = self.builder.ins().scalar_to_vector(I64X2, value);
            self.builder.ins().bitcast(I8X16, flags, wide)
        };
        let (a, b) = (vector(a), vector(b));
        let holds = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, a, b);
        let bits = self.builder.ins().vhigh_bits(I32, holds);
        let bits = self.builder.ins().band_imm_u(bits, 0xff);
        self.builder.ins().uextend(I64, bits)
    }

    /// A conditional move on register a compared with zero.
    fn conditional(&mut self, step: &Step, condition: IntCC) -> Value {
        let a = self.read(step.a);
        self.select(step, a, condition)
    }

    fn select(&mut self, step: &Step, tested: Value, condition: IntCC) -> Value {
        let b = self.second(step);
        // A move into register 31 has no old value, and none is used.
        let old = if step.c >= 31 { b } else { self.read(step.c) };
        let holds = self.builder.ins().icmp_imm_s(condition, tested, 0);
        self.builder.ins().select(holds, b, old)
    }

    fn mask(&mut self, value: Value, mask: u64) -> Value {
        match mask {
            u64::MAX => value,
            0xff => self.zero_extended(I8, value),
            0xffff => self.zero_extended(I16, value),
            0xffff_ffff => self.zero_extended(I32, value),
            _ => {
                let mask = self.constant(mask);
                self.builder.ins().band(value, mask)
            }
        }
    }

    fn zero_extended(&mut self, kind: cranelift_codegen::ir::Type, value: Value) -> Value {
        let low = self.builder.ins().ireduce(kind, value);
        self.builder.ins().uextend(I64, low)
    }

    /// Eight times the byte number in the low three bits of the second operand.
    fn shift(&mut self, step: &Step) -> Value {
        if step.b == 31 {
            return self.constant(8 * (step.immediate as u64 & 7));
        }
        let b = self.second(step);
        let bits = self.builder.ins().ishl_imm_u(b, 3);
        self.builder.ins().band_imm_u(bits, 56)
    }

    fn extract_low(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        let value = self.builder.ins().ushr(a, shift);
        self.mask(value, bytes(size))
    }

    fn extract_high(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        // Shift counts are taken modulo 64, as the manual has it.
        let left = self.builder.ins().ineg(shift);
        let value = self.builder.ins().ishl(a, left);
        self.mask(value, bytes(size))
    }

    fn insert_low(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        let value = self.mask(a, bytes(size));
        self.builder.ins().ishl(value, shift)
    }

    /// Shifts right by 64 less `shift`, in two steps, for a shift of 64 must give 0.
    fn spill(&mut self, value: Value, shift: Value) -> Value {
        let half = self.builder.ins().ushr_imm_u(value, 1);
        let rest = self.builder.ins().bxor_imm_u(shift, 63);
        self.builder.ins().ushr(half, rest)
    }

    fn insert_high(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        let value = self.mask(a, bytes(size));
        self.spill(value, shift)
    }

    fn mask_low(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        let ones = self.constant(bytes(size));
        let covered = self.builder.ins().ishl(ones, shift);
        self.builder.ins().band_not(a, covered)
    }

    fn mask_high(&mut self, step: &Step, size: u32) -> Value {
        let (a, shift) = (self.read(step.a), self.shift(step));
        let ones = self.constant(bytes(size));
        let covered = self.spill(ones, shift);
        self.builder.ins().band_not(a, covered)
    }
}
