//! Integer operations that most instruction sets have.

use super::*;
use crate::registers::integer;

/// The second operand of an operation: a register of the guest, other than the one that is zero, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperateOperand {
    Register(u8),
    Literal(i32),
}

/// The registers of an operation: the first operand, the second one, and the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperateOperands {
    pub(crate) a: u8,
    pub(crate) second: OperateOperand,
    pub(crate) c: u8,
}

impl OperateOperands {
    /// Whether both operands are the same register.
    fn is_same(self) -> bool {
        self.second == OperateOperand::Register(self.a)
    }
}

impl<G: Emit> Emitter<'_, G> {
    /// The host register that holds the second operand.
    fn second_in(&self, step: OperateOperands) -> Option<HostRegister> {
        match step.second {
            OperateOperand::Register(register) => self.held(register),
            OperateOperand::Literal(_) => None,
        }
    }

    /// Completes the deferred sign extension of the second operand.
    fn complete_second(&mut self, step: OperateOperands) {
        if let OperateOperand::Register(register) = step.second {
            self.complete_sign_extension(register);
        }
    }

    /// The second operand in a register of the host: its own, or `scratch`.
    pub(crate) fn read_second(
        &mut self,
        size: OperandSize,
        step: OperateOperands,
        scratch: HostRegister,
    ) -> HostRegister {
        match step.second {
            OperateOperand::Register(register) => self.read(size, register, scratch),
            OperateOperand::Literal(value) => {
                self.assembler.constant(scratch, value as u64);
                scratch
            }
        }
    }

    /// A register plus a constant.
    pub(crate) fn sum(&mut self, size: OperandSize, to: HostRegister, register: HostRegister, constant: i32) {
        if to == register {
            self.assembler.alu_constant(Alu::Add, size, to, constant);
        } else {
            self.assembler.address(size, to, MemoryOperand { base: register, displacement: constant });
        }
    }

    /// A longword result, which is sign-extended; or a quadword as it is.
    pub(crate) fn write_sized(&mut self, step: OperateOperands, size: OperandSize, value: HostRegister) {
        if size == OperandSize::Long {
            self.write_low(step.c, value);
        } else {
            self.write(step.c, value);
        }
    }

    pub(crate) fn add(&mut self, step: OperateOperands, size: OperandSize, scale: u8) {
        let a = self.read(size, step.a, RAX);
        let to = self.target(step.c);
        match step.second {
            OperateOperand::Literal(0) if scale == 0 => return self.write_sized(step, size, a),
            OperateOperand::Literal(value) if scale == 0 => self.sum(size, to, a, value),
            OperateOperand::Literal(value) => {
                self.assembler.load(size, RAX, a);
                self.assembler.shift(Shift::Left, size, RAX, scale);
                self.sum(size, to, RAX, value);
            }
            OperateOperand::Register(b) => {
                let b = self.read(size, b, RCX);
                if scale == 0 && (to == a || to == b) {
                    self.assembler.alu(Alu::Add, size, to, if to == a { b } else { a });
                } else {
                    self.assembler.address(size, to, Operand::Indexed(b, a, scale, 0));
                }
            }
        }
        self.write_sized(step, size, to);
    }

    pub(crate) fn subtract(&mut self, step: OperateOperands, size: OperandSize, scale: u8) {
        let to = self.target(step.c);
        if step.is_same() && scale == 0 {
            return self.write_constant(step.c, 0);
        }
        if let (OperateOperand::Literal(value), 0) = (step.second, scale) {
            let a = self.read(size, step.a, RAX);
            self.sum(size, to, a, -value);
            return self.write_sized(step, size, to);
        }
        let work = self.work(step);
        if step.a == G::ZERO {
            let b = self.read_second(size, step, work);
            self.assembler.load(size, work, b);
            self.assembler.negate(size, work);
        } else {
            self.read_into(size, step.a, work);
            self.assembler.shift(Shift::Left, size, work, scale);
            self.combine(Alu::Sub, size, work, step);
        }
        self.write_sized(step, size, work);
    }

    /// Applies an operation to a host register and the second operand.
    pub(crate) fn combine(
        &mut self,
        operation: Alu,
        size: OperandSize,
        to: HostRegister,
        step: OperateOperands,
    ) {
        match step.second {
            OperateOperand::Literal(value) => self.assembler.alu_constant(operation, size, to, value),
            OperateOperand::Register(register) => {
                let operand = self.operand(size, register);
                self.assembler.alu(operation, size, to, operand);
            }
        }
    }

    /// The host register into which the first operand is copied before the second one is applied: the result's, unless
    /// the second operand is in it.
    pub(crate) fn work(&self, step: OperateOperands) -> HostRegister {
        let to = self.target(step.c);
        if self.second_in(step) == Some(to) { RAX } else { to }
    }

    pub(crate) fn logic(&mut self, step: OperateOperands, operation: Alu) {
        // `bis` is also how registers are copied and constants loaded.
        if operation != Alu::And && step.a == G::ZERO || step.is_same() {
            match step.second {
                OperateOperand::Literal(value) => return self.write_constant(step.c, value as u64),
                OperateOperand::Register(b) if step.a == G::ZERO || operation != Alu::Xor => {
                    return self.copy(b, step.c);
                }
                OperateOperand::Register(_) => return self.write_constant(step.c, 0),
            }
        }
        if let (OperateOperand::Literal(0), Alu::Or | Alu::Xor) = (step.second, operation) {
            return self.copy(step.a, step.c);
        }
        if let (OperateOperand::Literal(value @ 0..), Alu::And) = (step.second, operation) {
            let to = self.target(step.c);
            let a = self.read(OperandSize::Long, step.a, RAX);
            self.assembler.load(OperandSize::Long, to, a);
            self.assembler.alu_constant(Alu::And, OperandSize::Long, to, value);
            return self.write_compared(step.c, to);
        }
        let to = self.target(step.c);
        if step.a != G::ZERO && self.second_in(step) == Some(to) {
            let a = self.operand(OperandSize::Quad, step.a);
            self.complete_second(step);
            self.assembler.alu(operation, OperandSize::Quad, to, a);
            return self.write_compared(step.c, to);
        }
        let work = self.work(step);
        self.read_into(OperandSize::Quad, step.a, work);
        self.combine(operation, OperandSize::Quad, work, step);
        self.write_compared(step.c, work);
    }

    /// Sets an integer register, and the host's flags by comparing it with zero.
    pub(crate) fn write_compared(&mut self, register: u8, value: HostRegister) {
        self.write(register, value);
        self.flags = (register, self.assembler.position());
    }

    pub(crate) fn copy(&mut self, from: u8, to: u8) {
        if self.is_longword(from) && from != G::ZERO {
            let value = self.read(OperandSize::Long, from, RAX);
            return self.write_low(to, value);
        }
        let value = self.read(OperandSize::Quad, from, RAX);
        self.write(to, value);
    }

    /// An operation with the complement of the second operand.
    pub(crate) fn logic_not(&mut self, step: OperateOperands, operation: Alu) {
        let work = match step.second {
            OperateOperand::Literal(value) => {
                let to = self.target(step.c);
                self.read_into(OperandSize::Quad, step.a, to);
                self.assembler.alu_constant(operation, OperandSize::Quad, to, !value);
                to
            }
            OperateOperand::Register(b) => {
                self.read_into(OperandSize::Quad, b, RAX);
                self.assembler.unary(Unary::Not, RAX);
                let a = self.read(OperandSize::Quad, step.a, RCX);
                self.assembler.alu(operation, OperandSize::Quad, RAX, a);
                RAX
            }
        };
        self.write(step.c, work);
    }

    pub(crate) fn multiply(&mut self, step: OperateOperands, size: OperandSize) {
        self.read_into(size, step.a, RAX);
        let b = self.read_second(size, step, RCX);
        self.assembler.multiply(size, RAX, b);
        self.write_sized(step, size, RAX);
    }

    /// The high half of a product.
    pub(crate) fn multiply_high(&mut self, step: OperateOperands, operation: Unary) {
        self.read_into(OperandSize::Quad, step.a, RAX);
        let b = self.read_second(OperandSize::Quad, step, RCX);
        // The product is in rdx and rax.
        self.assembler.push(RDX);
        self.assembler.unary(operation, b);
        self.assembler.load(OperandSize::Quad, RAX, RDX);
        self.assembler.pop(RDX);
        self.write(step.c, RAX);
    }

    /// Sets the host's flags by comparing the operands.
    pub(crate) fn compare_operands(&mut self, step: OperateOperands) {
        // Sign extension preserves the order of longwords.
        let second_is_longword = match step.second {
            OperateOperand::Register(register) => self.is_longword(register),
            OperateOperand::Literal(_) => true,
        };
        let is_longword = self.is_longword(step.a) && second_is_longword;
        let size = if is_longword { OperandSize::Long } else { OperandSize::Quad };
        match (step.second, self.held(step.a)) {
            (OperateOperand::Literal(value), None) if step.a != G::ZERO => {
                self.assembler.alu_constant(Alu::Cmp, OperandSize::Quad, integer::<G>(step.a), value);
            }
            _ => {
                let a = self.read(size, step.a, RAX);
                self.combine(Alu::Cmp, size, a, step);
            }
        }
    }

    /// Sets an integer register to 1 if a condition holds, else to 0. Flags stay as they are.
    pub(crate) fn write_condition(&mut self, register: u8, condition: Condition) {
        self.assembler.set(condition, RAX);
        let to = self.target(register);
        self.assembler.load_zero_extended(OperandSize::Byte, to, RAX);
        self.write(register, to);
    }

    pub(crate) fn shift(&mut self, step: OperateOperands, shift: Shift) {
        match step.second {
            OperateOperand::Literal(by) => {
                let to = self.target(step.c);
                self.read_into(OperandSize::Quad, step.a, to);
                self.assembler.shift(shift, OperandSize::Quad, to, by as u8 & 63);
                self.write(step.c, to);
            }
            OperateOperand::Register(b) => {
                self.read_into(OperandSize::Byte, b, RCX);
                self.read_into(OperandSize::Quad, step.a, RAX);
                self.assembler.shift_by_rcx(shift, RAX);
                self.write(step.c, RAX);
            }
        }
    }

    pub(crate) fn sign_extend(&mut self, step: OperateOperands, size: OperandSize) {
        let b = self.read_second(size, step, RAX);
        let to = self.target(step.c);
        self.assembler.load_sign_extended(size, to, b);
        self.write(step.c, to);
    }

    pub(crate) fn count_bits(&mut self, step: OperateOperands, what: BitCount) {
        let b = self.read_second(OperandSize::Quad, step, RAX);
        let to = self.target(step.c);
        self.assembler.count_bits(what, to, b);
        self.write(step.c, to);
    }

    pub(crate) fn keep_bytes(&mut self, step: OperateOperands, mask: u64) {
        let to = self.target(step.c);
        let size = if mask <= 0xffff_ffff { OperandSize::Long } else { OperandSize::Quad };
        let a = self.read(size, step.a, RAX);
        match mask {
            u64::MAX => return self.write(step.c, a),
            0xff => self.assembler.load_zero_extended(OperandSize::Byte, to, a),
            0xffff => self.assembler.load_zero_extended(OperandSize::Word, to, a),
            0xffff_ffff => self.assembler.load_zero_extended(OperandSize::Long, to, a),
            _ => {
                self.assembler.constant(RCX, mask);
                self.assembler.load(OperandSize::Quad, to, a);
                self.assembler.alu(Alu::And, OperandSize::Quad, to, RCX);
            }
        }
        self.write(step.c, to);
    }
}
