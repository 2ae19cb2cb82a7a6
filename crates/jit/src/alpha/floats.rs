//! Floating point in the host's arithmetic. Compiled code handles the common cases: those of `alpha::float`'s `quick`,
//! chopped results, and the first inexact result. It calls the interpreter for all others, and where telling the case
//! would take long.

use std::ops::RangeInclusive;

use isa::{Op, Rounding};

use super::*;
use alpha::cpu::FloatStatus;
use alpha::float::control;

/// Biased exponents of T numbers: of normal numbers, and of results that cannot have been rounded to a normal number.
const NORMAL: RangeInclusive<i32> = 1..=0x7fe;
const CERTAIN: RangeInclusive<i32> = 2..=0x7fe;
/// Exponents that S numbers have in a register.
const SINGLE: RangeInclusive<i32> = 0x381..=0x47e;
/// Exponents of numbers whose integer part fits the significand of a T number.
const INTEGER: RangeInclusive<i32> = 1..=1023 + 52;

/// The memory operand of a floating-point register.
pub(super) fn float(number: u8) -> MemoryOperand {
    field::<Cpu>(offset_of!(Cpu, f) + 8 * usize::from(number))
}

impl Emitter<'_> {
    pub(super) fn read_float(&mut self, register: u8, to: HostRegister) {
        if register == Cpu::ZERO {
            self.assembler.constant(to, 0);
        } else {
            self.assembler.load(OperandSize::Quad, to, float(register));
        }
    }

    pub(super) fn write_float(&mut self, register: u8, value: HostRegister) {
        if register != Cpu::SINK {
            self.assembler.store(OperandSize::Quad, float(register), value);
        }
    }

    /// An operation on floating-point registers. False if compiled code does not implement it.
    pub(crate) fn float_operate(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        match step.op {
            Op::Addt => self.arithmetic(step, at, Vector::ADD),
            Op::Subt => self.arithmetic(step, at, Vector::SUBTRACT),
            Op::Mult => self.arithmetic(step, at, Vector::MULTIPLY),
            Op::Divt => self.arithmetic(step, at, Vector::DIVIDE),
            Op::Sqrtt => self.arithmetic(step, at, Vector::SQUARE_ROOT),
            Op::Cmpteq => self.compare_floats(step, at, Some(Condition::Equal)),
            Op::Cmptlt => self.compare_floats(step, at, Some(Condition::Below)),
            Op::Cmptle => self.compare_floats(step, at, Some(Condition::BelowOrEqual)),
            Op::Cmptun => self.compare_floats(step, at, None),
            Op::Cvtqt => self.convert_integer(step, at),
            Op::Cvttq => self.convert_to_integer(step, at),
            Op::Cvtst => self.convert_single(step, at),
            Op::Fcmoveq => self.move_float_if(step, Op::Fbeq),
            Op::Fcmovne => self.move_float_if(step, Op::Fbne),
            Op::Fcmovlt => self.move_float_if(step, Op::Fblt),
            Op::Fcmovle => self.move_float_if(step, Op::Fble),
            Op::Fcmovgt => self.move_float_if(step, Op::Fbgt),
            Op::Fcmovge => self.move_float_if(step, Op::Fbge),
            Op::MfFpcr => {
                self.assembler.load(OperandSize::Quad, RAX, fpcr());
                self.write_float(step.c, RAX);
                true
            }
            Op::MtFpcr => self.write_fpcr(step),
            _ => false,
        }
    }

    /// A result rounded to nearest, or towards zero, of normal operands or zeroes.
    fn arithmetic(&mut self, step: &DecodedInstruction, at: usize, operation: Vector) -> bool {
        let rounding = rounding(step);
        if !matches!(rounding, Rounding::Normal | Rounding::Dynamic | Rounding::Chopped) {
            return false;
        }
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        let (noted, computed) = (self.assembler.label(), self.assembler.label());
        self.check_operands(step, slow_path);
        if rounding == Rounding::Chopped {
            self.assembler.jump(noted);
        } else {
            self.check_control(rounding, control::FPCR_INE, noted);
            self.compute(step, operation);
        }
        let inexact = Inexact { label: noted, step: *step, operation, back: computed, slow_path };
        self.out_of_line.push(OutOfLine::Guest(inexact));
        self.assembler.bind(computed);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        // A sum that is zero is exact.
        let is_sum = matches!(operation, Vector::ADD | Vector::SUBTRACT);
        self.check_exponent(CERTAIN, is_sum, slow_path);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// The result, in xmm0.
    fn compute(&mut self, step: &DecodedInstruction, operation: Vector) {
        self.assembler.vector(Vector::LOAD, XMM0, float(step.a));
        self.assembler.vector(operation, XMM0, float(step.b));
    }

    /// The result where the rounding mode differs from the host's, or where the first inexact result, which the host's
    /// status reports, must be recorded.
    pub(crate) fn compute_noted(
        &mut self,
        step: &DecodedInstruction,
        operation: Vector,
        back: Label,
        slow_path: Label,
    ) {
        /// The host's status of an inexact result (MXCSR.PE).
        const INEXACT: u8 = 1 << 5;
        let status = |which: FloatStatus| {
            field::<Cpu>(offset_of!(Cpu, float_status) + which as usize * size_of::<u32>())
        };
        let rounding = rounding(step);
        let (mode, certain) = match rounding {
            // An overflow gives the greatest finite number.
            Rounding::Chopped => (FloatStatus::Chopped, *CERTAIN.start()..=*CERTAIN.end() - 1),
            _ => (FloatStatus::Nearest, CERTAIN),
        };
        self.check_control(rounding, 0, slow_path);
        self.assembler.load_float_status(status(mode));
        self.compute(step, operation);
        self.assembler.store_float_status(status(FloatStatus::Noted));
        if mode != FloatStatus::Nearest {
            self.assembler.load_float_status(status(FloatStatus::Nearest));
        }
        self.assembler.test_bits(status(FloatStatus::Noted), INEXACT);
        self.assembler.jump_if(Condition::Equal, back);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.check_exponent(certain, false, slow_path);
        self.record_inexact();
        self.assembler.jump(back);
    }

    fn record_inexact(&mut self) {
        self.assembler.set_bits(last_of_fpcr(), ((control::FPCR_INE | control::SUM) >> 56) as u8);
    }

    /// A comparison of two numbers, neither of which is a NaN.
    fn compare_floats(&mut self, step: &DecodedInstruction, at: usize, holds: Option<Condition>) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.check_operands(step, slow_path);
        match holds {
            Some(condition) => {
                self.assembler.vector(Vector::LOAD, XMM0, float(step.a));
                self.assembler.vector(Vector::COMPARE, XMM0, float(step.b));
                self.assembler.set(condition, RAX);
                self.assembler.load_zero_extended(OperandSize::Byte, RAX, RAX);
                // True is 2.0.
                self.assembler.shift(Shift::Left, OperandSize::Quad, RAX, 62);
            }
            None => self.assembler.constant(RAX, 0),
        }
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// Converts an integer that a T number represents exactly.
    fn convert_integer(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.read_float(step.b, RAX);
        self.assembler.vector(Vector::FROM_INTEGER, XMM0, RAX);
        self.assembler.vector(Vector::TO_INTEGER, RCX, XMM0);
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RCX, RAX);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// Converts a number to an integer, rounded towards zero, if its integer part fits the significand.
    fn convert_to_integer(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        if rounding(step) != Rounding::Chopped {
            return false;
        }
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.read_float(step.b, RAX);
        self.check_exponent(INTEGER, true, slow_path);
        self.assembler.vector(Vector::TO_INTEGER, RAX, float(step.b));
        self.assembler.vector(Vector::FROM_INTEGER, XMM0, RAX);
        self.assembler.vector(Vector::COMPARE, XMM0, float(step.b));
        let exact = self.assembler.label();
        self.assembler.jump_if(Condition::Equal, exact);
        self.check_control(Rounding::Chopped, 0, slow_path);
        self.record_inexact();
        self.assembler.bind(exact);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// Converts a T number to an S number that represents it exactly.
    fn convert_single(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.read_float(step.b, RAX);
        self.check_exponent(SINGLE, true, slow_path);
        self.assembler.alu_constant(Alu::And, OperandSize::Quad, RAX, -1 << 29);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// Loads an S number, which is normal or zero.
    pub(crate) fn load_single(&mut self, step: &DecodedInstruction, at: usize, source: MemoryOperand) {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.may_fault(self.index, at, self.unextended);
        self.assembler.load(OperandSize::Long, RAX, source);
        let zero = self.assembler.label();
        self.assembler.address(OperandSize::Long, RCX, Operand::Indexed(RAX, RAX, 0, 0));
        self.assembler.test(OperandSize::Long, RCX);
        self.assembler.jump_if(Condition::Equal, zero);
        self.assembler.shift(Shift::Right, OperandSize::Long, RCX, 24);
        self.check_number(1..=0xfe, slow_path);
        self.assembler.bind(zero);
        self.assembler.vector(Vector::SET_LONG, XMM0, RAX);
        self.assembler.vector(Vector::WIDEN, XMM0, XMM0);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
    }

    /// A conditional move, on the conditions of branches.
    fn move_float_if(&mut self, step: &DecodedInstruction, branch: Op) -> bool {
        if step.c != Cpu::SINK {
            let condition = self.float_condition(&DecodedInstruction { op: branch, ..*step });
            // Moves leave the flags alone.
            self.read_float(step.b, RCX);
            self.read_float(step.c, RAX);
            self.assembler.move_if(condition, RAX, RCX);
            self.write_float(step.c, RAX);
        }
        true
    }

    /// Sets the floating-point control register.
    fn write_fpcr(&mut self, step: &DecodedInstruction) -> bool {
        let no_status = self.assembler.label();
        self.read_float(step.a, RAX);
        self.assembler.constant(RCX, control::WRITTEN);
        self.assembler.alu(Alu::And, OperandSize::Quad, RAX, RCX);
        self.assembler.constant(RCX, control::STATUS_BITS);
        self.assembler.alu(Alu::And, OperandSize::Quad, RCX, RAX);
        self.assembler.jump_if(Condition::Equal, no_status);
        self.assembler.constant(RCX, control::SUM);
        self.assembler.alu(Alu::Or, OperandSize::Quad, RAX, RCX);
        self.assembler.bind(no_status);
        self.assembler.store(OperandSize::Quad, fpcr(), RAX);
        true
    }

    /// Whether the host's rounding mode is the guest's and an inexact result does not trap; and whether the status of an
    /// inexact result is set already. Uses rcx.
    fn check_control(&mut self, rounding: Rounding, status: u64, otherwise: Label) {
        let byte = |bits: u64| (bits >> 56) as i32;
        let dynamic = if rounding == Rounding::Dynamic { byte(control::DYNAMIC) } else { 0 };
        let nearest = byte(control::INITIAL_FPCR) & dynamic;
        let bits = dynamic | byte(status);
        if bits != 0 {
            self.assembler.load_zero_extended(OperandSize::Byte, RCX, last_of_fpcr());
            self.assembler.alu_constant(Alu::And, OperandSize::Long, RCX, bits);
            self.assembler.alu_constant(Alu::Cmp, OperandSize::Long, RCX, nearest | byte(status));
            self.assembler.jump_if(Condition::NotEqual, otherwise);
        }
        self.assembler.test_bits(field::<Cpu>(offset_of!(Cpu, ieee_control)), control::ENABLE_INE as u8);
        self.assembler.jump_if(Condition::NotEqual, otherwise);
    }

    /// Whether the operands are normal or zero. Uses rax and rcx.
    fn check_operands(&mut self, step: &DecodedInstruction, slow_path: Label) {
        for register in [step.a, step.b].into_iter().filter(|&register| register != 31) {
            self.read_float(register, RAX);
            self.check_exponent(NORMAL, true, slow_path);
        }
    }

    /// Whether the exponent of the T number in rax is in a range; if zero is allowed, also whether the number is zero. Uses rcx.
    fn check_exponent(&mut self, exponents: RangeInclusive<i32>, or_zero: bool, slow_path: Label) {
        let zero = self.assembler.label();
        self.assembler.load(OperandSize::Quad, RCX, RAX);
        self.assembler.alu(Alu::Add, OperandSize::Quad, RCX, RCX);
        if or_zero {
            self.assembler.jump_if(Condition::Equal, zero);
        }
        self.assembler.shift(Shift::Right, OperandSize::Quad, RCX, 53);
        self.check_number(exponents, slow_path);
        self.assembler.bind(zero);
    }

    /// Whether the number in ecx is in a range. Changes rcx.
    fn check_number(&mut self, numbers: RangeInclusive<i32>, slow_path: Label) {
        let (least, most) = numbers.into_inner();
        self.assembler.alu_constant(Alu::Sub, OperandSize::Long, RCX, least);
        self.assembler.alu_constant(Alu::Cmp, OperandSize::Long, RCX, most - least);
        self.assembler.jump_if(Condition::Above, slow_path);
    }
}

/// How an operation's result is rounded.
fn rounding(step: &DecodedInstruction) -> Rounding {
    isa::Instruction { op: step.op, word: step.immediate as u32 }.qualifiers().rounding
}

/// The byte of the floating-point control register that has rounding and an inexact result's status.
fn last_of_fpcr() -> MemoryOperand {
    field::<Cpu>(offset_of!(Cpu, fpcr) + 7)
}

/// The floating-point control register.
fn fpcr() -> MemoryOperand {
    field::<Cpu>(offset_of!(Cpu, fpcr))
}
