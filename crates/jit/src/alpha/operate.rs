//! Integer operates: one line an instruction, as in the interpreter's `semantics.rs`.

use isa::Op;

use super::*;
use alpha::pal;

/// The second operand of an operate: a register of the guest, or a literal.
#[derive(Clone, Copy)]
pub(crate) enum OperateOperand {
    Register(u8),
    Literal(i32),
}

/// The 64-bit mask of the bytes whose bit is set.
fn spread(bits: i32) -> u64 {
    alpha::bytes::keep(u64::MAX, bits as u64)
}

pub(crate) fn second(step: &DecodedInstruction) -> OperateOperand {
    if step.b == 31 {
        OperateOperand::Literal(step.immediate as i32)
    } else {
        OperateOperand::Register(step.b)
    }
}

impl Emitter<'_> {
    /// An instruction without access to memory. False if compiled code does not implement it.
    pub(crate) fn operate(&mut self, step: &DecodedInstruction) -> bool {
        use OperandSize::{Long, Quad};
        match step.op {
            Op::Lda | Op::Ldah => self.load_address(step),
            Op::Trapb | Op::Excb | Op::Fetch | Op::FetchM | Op::Ecb | Op::Wh64 | Op::Wh64en => {}
            Op::Mb => self.assembler.fence(),
            // Barriers for stores: the host's stores are ordered.
            Op::Wmb => {}
            Op::Addl => self.add(step, Long, 0),
            Op::Addq => self.add(step, Quad, 0),
            Op::S4addl => self.add(step, Long, 2),
            Op::S4addq => self.add(step, Quad, 2),
            Op::S8addl => self.add(step, Long, 3),
            Op::S8addq => self.add(step, Quad, 3),
            Op::Subl => self.subtract(step, Long, 0),
            Op::Subq => self.subtract(step, Quad, 0),
            Op::S4subl => self.subtract(step, Long, 2),
            Op::S4subq => self.subtract(step, Quad, 2),
            Op::S8subl => self.subtract(step, Long, 3),
            Op::S8subq => self.subtract(step, Quad, 3),
            Op::Mull => self.multiply(step, Long),
            Op::Mulq => self.multiply(step, Quad),
            Op::Umulh => self.multiply_high(step),
            Op::Cmpeq | Op::Cmplt | Op::Cmple | Op::Cmpult | Op::Cmpule => self.compare_into(step),
            Op::Cmpbge => {
                let a = self.read(Quad, step.a, RAX);
                let b = self.read_second(Quad, step, RCX);
                self.assembler.compare_bytes(RAX, a, b);
                self.write(step.c, RAX);
            }
            Op::And => self.logic(step, Alu::And),
            Op::Bis => self.logic(step, Alu::Or),
            Op::Xor => self.logic(step, Alu::Xor),
            Op::Bic => self.logic_not(step, Alu::And),
            Op::Ornot => self.logic_not(step, Alu::Or),
            Op::Eqv => self.logic_not(step, Alu::Xor),
            Op::Sll => self.shift(step, Shift::Left),
            Op::Srl => self.shift(step, Shift::Right),
            Op::Sra => self.shift(step, Shift::Arithmetic),
            Op::Cmoveq => self.conditional(step, Condition::Equal),
            Op::Cmovne => self.conditional(step, Condition::NotEqual),
            Op::Cmovlt => self.conditional(step, Condition::Less),
            Op::Cmovle => self.conditional(step, Condition::LessOrEqual),
            Op::Cmovgt => self.conditional(step, Condition::Greater),
            Op::Cmovge => self.conditional(step, Condition::GreaterOrEqual),
            Op::Cmovlbc => self.conditional_on_bit(step, Condition::Equal),
            Op::Cmovlbs => self.conditional_on_bit(step, Condition::NotEqual),
            Op::Sextb => self.sign_extend(step, OperandSize::Byte),
            Op::Sextw => self.sign_extend(step, OperandSize::Word),
            Op::Ctpop => self.count_bits(step, BitCount::Ones),
            Op::Ctlz => self.count_bits(step, BitCount::LeadingZeros),
            Op::Cttz => self.count_bits(step, BitCount::TrailingZeros),
            Op::Zap if step.b == 31 => self.keep_bytes(step, spread(!step.immediate as i32)),
            Op::Zapnot if step.b == 31 => self.keep_bytes(step, spread(step.immediate as i32)),
            Op::Extbl => self.extract_low(step, OperandSize::Byte),
            Op::Extwl => self.extract_low(step, OperandSize::Word),
            Op::Extll => self.extract_low(step, OperandSize::Long),
            Op::Extql => self.extract_low(step, OperandSize::Quad),
            Op::Extwh => self.extract_high(step, OperandSize::Word),
            Op::Extlh => self.extract_high(step, OperandSize::Long),
            Op::Extqh => self.extract_high(step, OperandSize::Quad),
            Op::Insbl => self.insert_low(step, OperandSize::Byte),
            Op::Inswl => self.insert_low(step, OperandSize::Word),
            Op::Insll => self.insert_low(step, OperandSize::Long),
            Op::Insql => self.insert_low(step, OperandSize::Quad),
            Op::Inswh => self.insert_high(step, OperandSize::Word),
            Op::Inslh => self.insert_high(step, OperandSize::Long),
            Op::Insqh => self.insert_high(step, OperandSize::Quad),
            Op::Mskbl => self.mask_low(step, OperandSize::Byte),
            Op::Mskwl => self.mask_low(step, OperandSize::Word),
            Op::Mskll => self.mask_low(step, OperandSize::Long),
            Op::Mskql => self.mask_low(step, OperandSize::Quad),
            Op::Mskwh => self.mask_high(step, OperandSize::Word),
            Op::Msklh => self.mask_high(step, OperandSize::Long),
            Op::Mskqh => self.mask_high(step, OperandSize::Quad),
            Op::CallPal if step.immediate == pal::RDUNIQ => {
                self.assembler.load(Quad, RAX, Self::unique());
                self.write(0, RAX);
            }
            Op::CallPal if step.immediate == pal::WRUNIQ => {
                let value = self.read(Quad, 16, RAX);
                self.assembler.store(Quad, Self::unique(), value);
            }
            Op::Itoft => {
                let value = self.read(Quad, step.a, RAX);
                self.write_float(step.c, value);
            }
            Op::Ftoit => {
                self.read_float(step.a, RAX);
                self.write(step.c, RAX);
            }
            Op::Cpys if step.a == step.b => {
                self.read_float(step.a, RAX);
                self.write_float(step.c, RAX);
            }
            _ => return false,
        }
        true
    }

    /// The second operand in a register of the host: its own, or `scratch`.
    fn read_second(
        &mut self,
        size: OperandSize,
        step: &DecodedInstruction,
        scratch: HostRegister,
    ) -> HostRegister {
        match second(step) {
            OperateOperand::Register(register) => self.read(size, register, scratch),
            OperateOperand::Literal(value) => {
                self.assembler.constant(scratch, value as u64);
                scratch
            }
        }
    }

    fn load_address(&mut self, step: &DecodedInstruction) {
        if step.b == 31 {
            return self.write_constant(step.c, step.immediate as u64);
        }
        let base = self.read(OperandSize::Quad, step.b, RAX);
        if step.immediate == 0 {
            return self.write(step.c, base);
        }
        let to = self.target(step.c);
        self.sum(OperandSize::Quad, to, base, step.immediate as i32);
        self.write(step.c, to);
    }

    /// The pair LDAH, LDA that adds a 32-bit constant, as compilers do for the global pointer. False if the first two
    /// instructions are not such a pair.
    pub(crate) fn load_long_address(&mut self, instructions: &[DecodedInstruction]) -> bool {
        let [high, low, ..] = instructions else { return false };
        let is_one = high.op == Op::Ldah && low.op == Op::Lda && low.b == high.c && low.c == high.c;
        let Some(sum) = i32::try_from(high.immediate + low.immediate).ok().filter(|_| is_one) else {
            return false;
        };
        self.load_address(&DecodedInstruction { immediate: i64::from(sum), ..*high });
        true
    }

    /// A register plus a constant.
    fn sum(&mut self, size: OperandSize, to: HostRegister, register: HostRegister, constant: i32) {
        if to == register {
            self.assembler.alu_constant(Alu::Add, size, to, constant);
        } else {
            self.assembler.address(size, to, MemoryOperand { base: register, displacement: constant });
        }
    }

    /// A longword result, which is sign-extended; or a quadword as it is.
    fn write_sized(&mut self, step: &DecodedInstruction, size: OperandSize, value: HostRegister) {
        if size == OperandSize::Long {
            self.write_low(step.c, value);
        } else {
            self.write(step.c, value);
        }
    }

    fn add(&mut self, step: &DecodedInstruction, size: OperandSize, scale: u8) {
        let a = self.read(size, step.a, RAX);
        let to = self.target(step.c);
        match second(step) {
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

    fn subtract(&mut self, step: &DecodedInstruction, size: OperandSize, scale: u8) {
        let to = self.target(step.c);
        if step.a == step.b && step.b != 31 && scale == 0 {
            return self.write_constant(step.c, 0);
        }
        if let (OperateOperand::Literal(value), 0) = (second(step), scale) {
            let a = self.read(size, step.a, RAX);
            self.sum(size, to, a, -value);
            return self.write_sized(step, size, to);
        }
        let work = self.work(step);
        if step.a == 31 {
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
    fn combine(&mut self, operation: Alu, size: OperandSize, to: HostRegister, step: &DecodedInstruction) {
        match second(step) {
            OperateOperand::Literal(value) => self.assembler.alu_constant(operation, size, to, value),
            OperateOperand::Register(register) => {
                let operand = self.operand(size, register);
                self.assembler.alu(operation, size, to, operand);
            }
        }
    }

    /// The host register into which the first operand is copied before the second one is applied: the result's, unless
    /// the second operand is in it.
    fn work(&self, step: &DecodedInstruction) -> HostRegister {
        let to = self.target(step.c);
        if self.held(step.b) == Some(to) { RAX } else { to }
    }

    fn logic(&mut self, step: &DecodedInstruction, operation: Alu) {
        // `bis` is also how registers are copied and constants loaded.
        if operation != Alu::And && step.a == 31 || step.a == step.b && step.b != 31 {
            match second(step) {
                OperateOperand::Literal(value) => return self.write_constant(step.c, value as u64),
                OperateOperand::Register(b) if step.a == 31 || operation != Alu::Xor => {
                    return self.copy(b, step.c);
                }
                OperateOperand::Register(_) => return self.write_constant(step.c, 0),
            }
        }
        if let (OperateOperand::Literal(0), Alu::Or | Alu::Xor) = (second(step), operation) {
            return self.copy(step.a, step.c);
        }
        if let (OperateOperand::Literal(value), Alu::And) = (second(step), operation) {
            let to = self.target(step.c);
            let a = self.read(OperandSize::Long, step.a, RAX);
            self.assembler.load(OperandSize::Long, to, a);
            self.assembler.alu_constant(Alu::And, OperandSize::Long, to, value);
            return self.write_compared(step.c, to);
        }
        let to = self.target(step.c);
        if step.a != 31 && step.b != 31 && self.held(step.b) == Some(to) {
            let a = self.operand(OperandSize::Quad, step.a);
            self.complete_sign_extension(step.b);
            self.assembler.alu(operation, OperandSize::Quad, to, a);
            return self.write_compared(step.c, to);
        }
        let work = self.work(step);
        self.read_into(OperandSize::Quad, step.a, work);
        self.combine(operation, OperandSize::Quad, work, step);
        self.write_compared(step.c, work);
    }

    /// Sets an integer register, and the host's flags by comparing it with zero.
    fn write_compared(&mut self, register: u8, value: HostRegister) {
        self.write(register, value);
        self.flags = (register, self.assembler.position());
    }

    fn copy(&mut self, from: u8, to: u8) {
        if self.is_longword(from) && from != 31 {
            let value = self.read(OperandSize::Long, from, RAX);
            return self.write_low(to, value);
        }
        let value = self.read(OperandSize::Quad, from, RAX);
        self.write(to, value);
    }

    /// An operation with the complement of the second operand.
    fn logic_not(&mut self, step: &DecodedInstruction, operation: Alu) {
        let work = match second(step) {
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

    fn multiply(&mut self, step: &DecodedInstruction, size: OperandSize) {
        self.read_into(size, step.a, RAX);
        let b = self.read_second(size, step, RCX);
        self.assembler.multiply(size, RAX, b);
        self.write_sized(step, size, RAX);
    }

    fn multiply_high(&mut self, step: &DecodedInstruction) {
        self.read_into(OperandSize::Quad, step.a, RAX);
        let b = self.read_second(OperandSize::Quad, step, RCX);
        // The product is in rdx and rax.
        self.assembler.push(RDX);
        self.assembler.unary(Unary::Multiply, b);
        self.assembler.load(OperandSize::Quad, RAX, RDX);
        self.assembler.pop(RDX);
        self.write(step.c, RAX);
    }

    /// Sets the host's flags for a comparison and returns the condition under which it holds. None if the instruction is not a
    /// comparison.
    pub(crate) fn compare(&mut self, step: &DecodedInstruction) -> Option<Condition> {
        let condition = match step.op {
            Op::Cmpeq => Condition::Equal,
            Op::Cmplt => Condition::Less,
            Op::Cmple => Condition::LessOrEqual,
            Op::Cmpult => Condition::Below,
            Op::Cmpule => Condition::BelowOrEqual,
            _ => return None,
        };
        // Sign extension preserves the order of longwords.
        let is_longword = self.is_longword(step.a) && self.is_longword(step.b);
        let size = if is_longword { OperandSize::Long } else { OperandSize::Quad };
        match (second(step), self.held(step.a)) {
            (OperateOperand::Literal(value), None) if step.a != 31 => {
                self.assembler.alu_constant(Alu::Cmp, OperandSize::Quad, integer::<Cpu>(step.a), value);
            }
            _ => {
                let a = self.read(size, step.a, RAX);
                self.combine(Alu::Cmp, size, a, step);
            }
        }
        Some(condition)
    }

    fn compare_into(&mut self, step: &DecodedInstruction) {
        if let Some(condition) = self.compare(step) {
            self.write_condition(step.c, condition);
        }
    }

    /// Sets an integer register to 1 if a condition holds, else to 0. Flags stay as they are.
    pub(crate) fn write_condition(&mut self, register: u8, condition: Condition) {
        self.assembler.set(condition, RAX);
        let to = self.target(register);
        self.assembler.load_zero_extended(OperandSize::Byte, to, RAX);
        self.write(register, to);
    }

    fn shift(&mut self, step: &DecodedInstruction, shift: Shift) {
        match second(step) {
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

    /// A conditional move on register a compared with zero.
    fn conditional(&mut self, step: &DecodedInstruction, condition: Condition) {
        self.test(step.a);
        self.move_if(step, condition);
    }

    fn conditional_on_bit(&mut self, step: &DecodedInstruction, condition: Condition) {
        self.test_low_bit(step.a);
        self.move_if(step, condition);
    }

    fn move_if(&mut self, step: &DecodedInstruction, condition: Condition) {
        if step.c == Cpu::SINK {
            return;
        }
        // Moves do not change the host's flags.
        let b = self.read_second(OperandSize::Quad, step, RCX);
        let to = self.target(step.c);
        self.read_into(OperandSize::Quad, step.c, to);
        self.assembler.move_if(condition, to, b);
        self.write(step.c, to);
    }

    fn sign_extend(&mut self, step: &DecodedInstruction, size: OperandSize) {
        let b = self.read_second(size, step, RAX);
        let to = self.target(step.c);
        self.assembler.load_sign_extended(size, to, b);
        self.write(step.c, to);
    }

    fn count_bits(&mut self, step: &DecodedInstruction, what: BitCount) {
        let b = self.read_second(OperandSize::Quad, step, RAX);
        let to = self.target(step.c);
        self.assembler.count_bits(what, to, b);
        self.write(step.c, to);
    }

    fn keep_bytes(&mut self, step: &DecodedInstruction, mask: u64) {
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
