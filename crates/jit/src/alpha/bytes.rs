//! Bytes, words and longwords at a byte's offset: EXTxx, INSxx and MSKxx, as in the interpreter's `bytes`.

use super::operate::second;
use super::*;

impl Emitter<'_> {
    /// Eight times the second operand's low three bits (and bits above them that shifts ignore) in rcx.
    fn byte_shift(&mut self, step: &DecodedInstruction) {
        match second(step) {
            OperateOperand::Literal(at) => self.assembler.constant(RCX, 8 * (at as u64 & 7)),
            OperateOperand::Register(b) => {
                self.read_into(OperandSize::Byte, b, RCX);
                self.assembler.shift(Shift::Left, OperandSize::Long, RCX, 3);
            }
        }
    }

    /// The low part of a register, zero-extended, in rax.
    fn low_part(&mut self, size: OperandSize, from: HostRegister) {
        if size == OperandSize::Quad {
            self.assembler.load(OperandSize::Quad, RAX, from);
        } else {
            self.assembler.load_zero_extended(size, RAX, from);
        }
    }

    /// Shifts the first operand by rcx; the low part is the result.
    fn extract(&mut self, step: &DecodedInstruction, size: OperandSize, shift: Shift) {
        self.read_into(OperandSize::Quad, step.a, RAX);
        self.assembler.shift_by_rcx(shift, RAX);
        self.low_part(size, RAX);
        self.write(step.c, RAX);
    }

    pub(crate) fn extract_low(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        self.extract(step, size, Shift::Right);
    }

    pub(crate) fn extract_high(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        // Shift counts are taken modulo 64, as the manual has it.
        self.assembler.negate(OperandSize::Long, RCX);
        self.extract(step, size, Shift::Left);
    }

    pub(crate) fn insert_low(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        let a = self.read(size, step.a, RAX);
        self.low_part(size, a);
        self.assembler.shift_by_rcx(Shift::Left, RAX);
        self.write(step.c, RAX);
    }

    /// Shifts rax right by 64 less what is in rcx, in two steps, because a shift by 64 must give 0.
    fn spill(&mut self) {
        self.assembler.shift(Shift::Right, OperandSize::Quad, RAX, 1);
        self.assembler.unary(Unary::Not, RCX);
        self.assembler.shift_by_rcx(Shift::Right, RAX);
    }

    pub(crate) fn insert_high(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        let a = self.read(size, step.a, RAX);
        self.low_part(size, a);
        self.spill();
        self.write(step.c, RAX);
    }

    fn ones(&mut self, size: OperandSize) {
        let ones = match size {
            OperandSize::Byte => 0xff,
            OperandSize::Word => 0xffff,
            OperandSize::Long => 0xffff_ffff,
            OperandSize::Quad => u64::MAX,
        };
        self.assembler.constant(RAX, ones);
    }

    /// Clears the bits that are set in rax.
    fn clear(&mut self, step: &DecodedInstruction) {
        self.assembler.unary(Unary::Not, RAX);
        let a = self.read(OperandSize::Quad, step.a, RCX);
        self.assembler.alu(Alu::And, OperandSize::Quad, RAX, a);
        self.write(step.c, RAX);
    }

    pub(crate) fn mask_low(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        self.ones(size);
        self.assembler.shift_by_rcx(Shift::Left, RAX);
        self.clear(step);
    }

    pub(crate) fn mask_high(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.byte_shift(step);
        self.ones(size);
        self.spill();
        self.clear(step);
    }
}
