//! Integer operates: one line an instruction, as in the interpreter's `semantics.rs`.

use isa::Op;

use super::*;
use alpha::pal;

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

/// The operands of an operate.
fn operands(step: &DecodedInstruction) -> OperateOperands {
    OperateOperands { a: step.a, second: second(step), c: step.c }
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
            Op::Addl => self.add(operands(step), Long, 0),
            Op::Addq => self.add(operands(step), Quad, 0),
            Op::S4addl => self.add(operands(step), Long, 2),
            Op::S4addq => self.add(operands(step), Quad, 2),
            Op::S8addl => self.add(operands(step), Long, 3),
            Op::S8addq => self.add(operands(step), Quad, 3),
            Op::Subl => self.subtract(operands(step), Long, 0),
            Op::Subq => self.subtract(operands(step), Quad, 0),
            Op::S4subl => self.subtract(operands(step), Long, 2),
            Op::S4subq => self.subtract(operands(step), Quad, 2),
            Op::S8subl => self.subtract(operands(step), Long, 3),
            Op::S8subq => self.subtract(operands(step), Quad, 3),
            Op::Mull => self.multiply(operands(step), Long),
            Op::Mulq => self.multiply(operands(step), Quad),
            Op::Umulh => self.multiply_high(operands(step), Unary::Multiply),
            Op::Cmpeq | Op::Cmplt | Op::Cmple | Op::Cmpult | Op::Cmpule => self.compare_into(step),
            Op::Cmpbge => {
                let a = self.read(Quad, step.a, RAX);
                let b = self.read_second(Quad, operands(step), RCX);
                self.assembler.compare_bytes(RAX, a, b);
                self.write(step.c, RAX);
            }
            Op::And => self.logic(operands(step), Alu::And),
            Op::Bis => self.logic(operands(step), Alu::Or),
            Op::Xor => self.logic(operands(step), Alu::Xor),
            Op::Bic => self.logic_not(operands(step), Alu::And),
            Op::Ornot => self.logic_not(operands(step), Alu::Or),
            Op::Eqv => self.logic_not(operands(step), Alu::Xor),
            Op::Sll => self.shift(operands(step), Shift::Left),
            Op::Srl => self.shift(operands(step), Shift::Right),
            Op::Sra => self.shift(operands(step), Shift::Arithmetic),
            Op::Cmoveq => self.conditional(step, Condition::Equal),
            Op::Cmovne => self.conditional(step, Condition::NotEqual),
            Op::Cmovlt => self.conditional(step, Condition::Less),
            Op::Cmovle => self.conditional(step, Condition::LessOrEqual),
            Op::Cmovgt => self.conditional(step, Condition::Greater),
            Op::Cmovge => self.conditional(step, Condition::GreaterOrEqual),
            Op::Cmovlbc => self.conditional_on_bit(step, Condition::Equal),
            Op::Cmovlbs => self.conditional_on_bit(step, Condition::NotEqual),
            Op::Sextb => self.sign_extend(operands(step), OperandSize::Byte),
            Op::Sextw => self.sign_extend(operands(step), OperandSize::Word),
            Op::Ctpop => self.count_bits(operands(step), BitCount::Ones),
            Op::Ctlz => self.count_bits(operands(step), BitCount::LeadingZeros),
            Op::Cttz => self.count_bits(operands(step), BitCount::TrailingZeros),
            Op::Zap if step.b == 31 => self.keep_bytes(operands(step), spread(!step.immediate as i32)),
            Op::Zapnot if step.b == 31 => self.keep_bytes(operands(step), spread(step.immediate as i32)),
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
        self.compare_operands(operands(step));
        Some(condition)
    }

    fn compare_into(&mut self, step: &DecodedInstruction) {
        if let Some(condition) = self.compare(step) {
            self.write_condition(step.c, condition);
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
        let b = self.read_second(OperandSize::Quad, operands(step), RCX);
        let to = self.target(step.c);
        self.read_into(OperandSize::Quad, step.c, to);
        self.assembler.move_if(condition, to, b);
        self.write(step.c, to);
    }
}
