//! Integer operations: one line an instruction.

use super::*;

/// The operands of an operation on two sources, or on a source and a constant.
fn operands(step: &RiscvDecodedInstruction) -> OperateOperands {
    OperateOperands { a: step.rs1, second: operand(step.rs2, step.immediate), c: step.rd }
}

/// The operands of an operation on one source, as the second one.
fn single(step: &RiscvDecodedInstruction) -> OperateOperands {
    OperateOperands { a: RiscvCpu::ZERO, second: operand(step.rs1, 0), c: step.rd }
}

/// A register, or a constant instead of the one that is zero.
fn operand(register: u8, constant: i64) -> OperateOperand {
    match register {
        RiscvCpu::ZERO => OperateOperand::Literal(constant as i32),
        _ => OperateOperand::Register(register),
    }
}

impl Emitter<'_> {
    /// An instruction on integer registers. False if compiled code does not implement it.
    pub(crate) fn operate(&mut self, step: &RiscvDecodedInstruction) -> bool {
        use OperandSize::{Byte, Long, Quad, Word};
        use RiscvOp::*;
        match step.op {
            Lui | Auipc => self.write_constant(step.rd, step.immediate as u64),
            Addi if step.rs1 == RiscvCpu::ZERO => self.write_constant(step.rd, step.immediate as u64),
            Addi if step.immediate == 0 => self.copy(step.rs1, step.rd),
            Addi => self.add(operands(step), Quad, 0),
            // A source of zero: the other one is copied.
            Add if step.rs1 == RiscvCpu::ZERO && step.rs2 != RiscvCpu::ZERO => self.copy(step.rs2, step.rd),
            Add => self.add(operands(step), Quad, 0),
            Addiw | Addw => self.add(operands(step), Long, 0),
            Sub => self.subtract(operands(step), Quad, 0),
            Subw => self.subtract(operands(step), Long, 0),
            Andi | And => self.logic(operands(step), Alu::And),
            Ori | Or => self.logic(operands(step), Alu::Or),
            Xori | Xor => self.logic(operands(step), Alu::Xor),
            Slli | Sll => self.shift(operands(step), Shift::Left),
            Srli | Srl => self.shift(operands(step), Shift::Right),
            Srai | Sra => self.shift(operands(step), Shift::Arithmetic),
            Slliw | Sllw => self.shift_word(operands(step), Shift::Left),
            Srliw | Srlw => self.shift_word(operands(step), Shift::Right),
            Sraiw | Sraw => self.shift_word(operands(step), Shift::Arithmetic),
            Slti | Slt => self.compare_into(step, Condition::Less),
            Sltiu | Sltu => self.compare_into(step, Condition::Below),
            Mul => self.multiply(operands(step), Quad),
            Mulw => self.multiply(operands(step), Long),
            Mulhu => self.multiply_high(operands(step), Unary::Multiply),
            Mulh => self.multiply_high(operands(step), Unary::MultiplySigned),
            Div | Divu | Rem | Remu | Divw | Divuw | Remw | Remuw => self.divide(step),
            MopR | MopRr => self.write_constant(step.rd, 0),
            Sh1add => self.add(operands(step), Quad, 1),
            Sh2add => self.add(operands(step), Quad, 2),
            Sh3add => self.add(operands(step), Quad, 3),
            AddUw => self.add_unsigned_word(step, 0),
            Sh1addUw => self.add_unsigned_word(step, 1),
            Sh2addUw => self.add_unsigned_word(step, 2),
            Sh3addUw => self.add_unsigned_word(step, 3),
            SlliUw => {
                self.read_unsigned_word(step.rs1);
                self.assembler.shift(Shift::Left, Quad, RAX, step.immediate as u8);
                self.write(step.rd, RAX);
            }
            Andn => self.logic_not(operands(step), Alu::And),
            Orn => self.logic_not(operands(step), Alu::Or),
            Xnor => self.logic_not(operands(step), Alu::Xor),
            Clz => self.count_bits(single(step), BitCount::LeadingZeros),
            Ctz => self.count_bits(single(step), BitCount::TrailingZeros),
            Cpop => self.count_bits(single(step), BitCount::Ones),
            Clzw | Ctzw | Cpopw => self.count_bits_of_word(step),
            SextB => self.sign_extend(single(step), Byte),
            SextH => self.sign_extend(single(step), Word),
            ZextH => self.keep_bytes(operands(step), 0xffff),
            Min => self.select(step, Condition::Less),
            Minu => self.select(step, Condition::Below),
            Max => self.select(step, Condition::Greater),
            Maxu => self.select(step, Condition::Above),
            Rol => self.shift(operands(step), Shift::RotateLeft),
            Ror | Rori => self.shift(operands(step), Shift::RotateRight),
            Bset | Bseti => self.with_bit(step, |emitter| emitter.assembler.alu(Alu::Or, Quad, RAX, RCX)),
            Binv | Binvi => self.with_bit(step, |emitter| emitter.assembler.alu(Alu::Xor, Quad, RAX, RCX)),
            Bclr | Bclri => self.with_bit(step, |emitter| {
                emitter.assembler.unary(Unary::Not, RCX);
                emitter.assembler.alu(Alu::And, Quad, RAX, RCX);
            }),
            Bext | Bexti => self.extract_bit(step),
            CzeroEqz => self.zero_if(step, Condition::Equal),
            CzeroNez => self.zero_if(step, Condition::NotEqual),
            Fence | FenceTso => self.assembler.fence(),
            Pause | WrsNto | WrsSto | CboClean | CboFlush => {}
            _ => return false,
        }
        true
    }

    /// A shift of a word, sign-extended.
    fn shift_word(&mut self, step: OperateOperands, shift: Shift) {
        // In the double word, the bits that are shifted in are those above the word.
        self.read_into(OperandSize::Long, step.a, RAX);
        match shift {
            Shift::Right => self.assembler.load(OperandSize::Long, RAX, RAX),
            Shift::Arithmetic => self.assembler.load_sign_extended(OperandSize::Long, RAX, RAX),
            _ => {}
        }
        match step.second {
            OperateOperand::Literal(by) => {
                self.assembler.shift(shift, OperandSize::Quad, RAX, (by & WORD_SHIFT_BITS) as u8);
            }
            OperateOperand::Register(by) => {
                self.read_into(OperandSize::Byte, by, RCX);
                self.assembler.alu_constant(Alu::And, OperandSize::Long, RCX, WORD_SHIFT_BITS);
                self.assembler.shift_by_rcx(shift, RAX);
            }
        }
        self.write_low(step.c, RAX);
    }

    fn compare_into(&mut self, step: &RiscvDecodedInstruction, condition: Condition) {
        self.compare_operands(operands(step));
        self.write_condition(step.rd, condition);
    }

    /// The low half of a register, zero-extended, in rax.
    fn read_unsigned_word(&mut self, register: u8) {
        let value = self.read(OperandSize::Long, register, RAX);
        self.assembler.load(OperandSize::Long, RAX, value);
    }

    fn add_unsigned_word(&mut self, step: &RiscvDecodedInstruction, scale: u8) {
        self.read_unsigned_word(step.rs1);
        match step.rs2 {
            RiscvCpu::ZERO => self.assembler.shift(Shift::Left, OperandSize::Quad, RAX, scale),
            register => {
                let other = self.read(OperandSize::Quad, register, RCX);
                self.assembler.address(OperandSize::Quad, RAX, Operand::Indexed(other, RAX, scale, 0));
            }
        }
        self.write(step.rd, RAX);
    }

    fn count_bits_of_word(&mut self, step: &RiscvDecodedInstruction) {
        self.read_unsigned_word(step.rs1);
        match step.op {
            RiscvOp::Clzw => {
                self.assembler.count_bits(BitCount::LeadingZeros, RAX, RAX);
                self.assembler.alu_constant(Alu::Sub, OperandSize::Quad, RAX, 32);
            }
            RiscvOp::Ctzw => {
                // A bit above the word ends the count.
                self.assembler.constant(RCX, 1 << 32);
                self.assembler.alu(Alu::Or, OperandSize::Quad, RAX, RCX);
                self.assembler.count_bits(BitCount::TrailingZeros, RAX, RAX);
            }
            _ => self.assembler.count_bits(BitCount::Ones, RAX, RAX),
        }
        self.write(step.rd, RAX);
    }

    /// A quotient or a remainder. Words are divided as double words, whose quotient does not overflow.
    fn divide(&mut self, step: &RiscvDecodedInstruction) {
        use OperandSize::{Long, Quad};
        use RiscvOp::*;
        let is_signed = matches!(step.op, Div | Rem | Divw | Remw);
        let is_word = matches!(step.op, Divw | Divuw | Remw | Remuw);
        let is_remainder = matches!(step.op, Rem | Remu | Remw | Remuw);
        for (register, to) in [(step.rs2, RCX), (step.rs1, RAX)] {
            self.read_into(if is_word { Long } else { Quad }, register, to);
            match (is_word, is_signed) {
                (true, true) => self.assembler.load_sign_extended(Long, to, to),
                (true, false) => self.assembler.load(Long, to, to),
                _ => {}
            }
        }
        let [zero, minus_one, done] = [(); 3].map(|()| self.assembler.label());
        self.assembler.test(Quad, RCX);
        self.assembler.jump_if(Condition::Equal, zero);
        if is_signed && !is_word {
            self.assembler.alu_constant(Alu::Cmp, Quad, RCX, -1);
            self.assembler.jump_if(Condition::Equal, minus_one);
        }
        self.assembler.push(RDX);
        if is_signed {
            self.assembler.load(Quad, RDX, RAX);
            self.assembler.shift(Shift::Arithmetic, Quad, RDX, SHIFT_BITS as u8);
            self.assembler.unary(Unary::DivideSigned, RCX);
        } else {
            self.assembler.zero(RDX);
            self.assembler.unary(Unary::Divide, RCX);
        }
        if is_remainder {
            self.assembler.load(Quad, RAX, RDX);
        }
        self.assembler.pop(RDX);
        self.assembler.jump(done);
        // The smallest number by -1 overflows to itself.
        self.assembler.bind(minus_one);
        if is_signed && !is_word {
            match is_remainder {
                true => self.assembler.zero(RAX),
                false => self.assembler.negate(Quad, RAX),
            }
            self.assembler.jump(done);
        }
        // The quotient by zero is -1, the remainder the dividend.
        self.assembler.bind(zero);
        if !is_remainder {
            self.assembler.constant(RAX, u64::MAX);
        }
        self.assembler.bind(done);
        match is_word {
            true => self.write_low(step.rd, RAX),
            false => self.write(step.rd, RAX),
        }
    }

    /// The first source if it compares so with the second one, else that.
    fn select(&mut self, step: &RiscvDecodedInstruction, condition: Condition) {
        self.read_into(OperandSize::Quad, step.rs1, RAX);
        let other = self.read(OperandSize::Quad, step.rs2, RCX);
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RAX, other);
        self.assembler.move_if(condition.opposite(), RAX, other);
        self.write(step.rd, RAX);
    }

    /// An operation on the first source, in rax, and the bit that the second one has the number of, in rcx. The result is in rax.
    fn with_bit(&mut self, step: &RiscvDecodedInstruction, operation: impl Fn(&mut Self)) {
        match operand(step.rs2, step.immediate) {
            OperateOperand::Literal(bit) => self.assembler.constant(RCX, 1 << (bit & SHIFT_BITS)),
            OperateOperand::Register(register) => {
                self.read_into(OperandSize::Byte, register, RCX);
                self.assembler.constant(RAX, 1);
                self.assembler.shift_by_rcx(Shift::Left, RAX);
                self.assembler.load(OperandSize::Quad, RCX, RAX);
            }
        }
        self.read_into(OperandSize::Quad, step.rs1, RAX);
        operation(self);
        self.write(step.rd, RAX);
    }

    fn extract_bit(&mut self, step: &RiscvDecodedInstruction) {
        match operand(step.rs2, step.immediate) {
            OperateOperand::Literal(bit) => {
                self.read_into(OperandSize::Quad, step.rs1, RAX);
                self.assembler.shift(Shift::Right, OperandSize::Quad, RAX, (bit & SHIFT_BITS) as u8);
            }
            OperateOperand::Register(register) => {
                self.read_into(OperandSize::Byte, register, RCX);
                self.read_into(OperandSize::Quad, step.rs1, RAX);
                self.assembler.shift_by_rcx(Shift::Right, RAX);
            }
        }
        self.assembler.alu_constant(Alu::And, OperandSize::Long, RAX, 1);
        self.write(step.rd, RAX);
    }

    /// The first source, or zero if the second one compares so with zero.
    fn zero_if(&mut self, step: &RiscvDecodedInstruction, condition: Condition) {
        if step.rs2 == RiscvCpu::ZERO {
            return match condition {
                Condition::Equal => self.write_constant(step.rd, 0),
                _ => self.copy(step.rs1, step.rd),
            };
        }
        self.read_into(OperandSize::Quad, step.rs1, RAX);
        self.assembler.constant(RCX, 0);
        self.test(step.rs2);
        self.assembler.move_if(condition, RAX, RCX);
        self.write(step.rd, RAX);
    }
}
