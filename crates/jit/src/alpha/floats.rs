//! Floating point in the host's arithmetic: the common cases, which are those of `alpha::float`'s `quick`, and results
//! that are chopped, or the first that are inexact. All others are the interpreter's, and so is what a case is if it
//! takes long to find out.

use std::ops::RangeInclusive;

use isa::{Op, Rounding};

use super::*;
use alpha::cpu::FloatStatus;
use alpha::float::control;

/// Exponents as they stand in a T number: of normal ones, and of results that cannot have been rounded to one.
const NORMAL: RangeInclusive<i32> = 1..=0x7fe;
const CERTAIN: RangeInclusive<i32> = 2..=0x7fe;
/// Of S numbers in a register.
const SINGLE: RangeInclusive<i32> = 0x381..=0x47e;
/// Of numbers with at most so many bits before the point that all of them are kept.
const INTEGER: RangeInclusive<i32> = 1..=1023 + 52;

/// The memory operand of a floating-point register.
pub(super) fn float(number: u8) -> MemoryOperand {
    field::<Cpu>(offset_of!(Cpu, f) + 8 * usize::from(number))
}

impl Emitter<'_> {
    pub(super) fn read_float(&mut self, register: u8, to: Register) {
        if register == Cpu::ZERO {
            self.assembler.constant(to, 0);
        } else {
            self.assembler.load(Size::Quad, to, float(register));
        }
    }

    pub(super) fn write_float(&mut self, register: u8, value: Register) {
        if register != Cpu::SINK {
            self.assembler.store(Size::Quad, float(register), value);
        }
    }

    /// An operation on floating-point registers; false if it is none of the common ones.
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
                self.assembler.load(Size::Quad, RAX, fpcr());
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

    /// The same where the host does not round as usual, or where an inexact result, of which the host knows, has not
    /// been recorded before.
    pub(crate) fn compute_noted(
        &mut self,
        step: &DecodedInstruction,
        operation: Vector,
        back: Label,
        slow_path: Label,
    ) {
        /// Where the host notes an inexact result (MXCSR.PE).
        const INEXACT: u8 = 1 << 5;
        let status = |which: FloatStatus| {
            field::<Cpu>(offset_of!(Cpu, float_status) + which as usize * size_of::<u32>())
        };
        let rounding = rounding(step);
        let (mode, certain) = match rounding {
            // What is too great is the greatest number.
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

    /// A comparison of numbers, which are never unordered.
    fn compare_floats(&mut self, step: &DecodedInstruction, at: usize, holds: Option<Condition>) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.check_operands(step, slow_path);
        match holds {
            Some(condition) => {
                self.assembler.vector(Vector::LOAD, XMM0, float(step.a));
                self.assembler.vector(Vector::COMPARE, XMM0, float(step.b));
                self.assembler.set(condition, RAX);
                self.assembler.load_zero_extended(Size::Byte, RAX, RAX);
                // What is true is 2.0.
                self.assembler.shift(Shift::Left, Size::Quad, RAX, 62);
            }
            None => self.assembler.constant(RAX, 0),
        }
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// An integer that a T number can hold.
    fn convert_integer(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.read_float(step.b, RAX);
        self.assembler.vector(Vector::FROM_INTEGER, XMM0, RAX);
        self.assembler.vector(Vector::TO_INTEGER, RCX, XMM0);
        self.assembler.alu(Alu::Cmp, Size::Quad, RCX, RAX);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// A number that is no greater than the integers a T number can hold, rounded towards zero.
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

    /// What an S number's bits, and no others, say.
    fn convert_single(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.read_float(step.b, RAX);
        self.check_exponent(SINGLE, true, slow_path);
        self.assembler.alu_constant(Alu::And, Size::Quad, RAX, -1 << 29);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
        true
    }

    /// Loads an S number, which is normal or zero.
    pub(crate) fn load_single(&mut self, step: &DecodedInstruction, at: usize, place: MemoryOperand) {
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.may_fault(self.index, at, self.unextended);
        self.assembler.load(Size::Long, RAX, place);
        let zero = self.assembler.label();
        self.assembler.address(Size::Long, RCX, Operand::Indexed(RAX, RAX, 0, 0));
        self.assembler.test(Size::Long, RCX);
        self.assembler.jump_if(Condition::Equal, zero);
        self.assembler.shift(Shift::Right, Size::Long, RCX, 24);
        self.check_number(1..=0xfe, slow_path);
        self.assembler.bind(zero);
        self.assembler.vector(Vector::SET_LONG, XMM0, RAX);
        self.assembler.vector(Vector::WIDEN, XMM0, XMM0);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.write_float(step.c, RAX);
        self.assembler.bind(back);
    }

    /// A conditional move, on what a branch goes by.
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
        self.assembler.alu(Alu::And, Size::Quad, RAX, RCX);
        self.assembler.constant(RCX, control::STATUS_BITS);
        self.assembler.alu(Alu::And, Size::Quad, RCX, RAX);
        self.assembler.jump_if(Condition::Equal, no_status);
        self.assembler.constant(RCX, control::SUM);
        self.assembler.alu(Alu::Or, Size::Quad, RAX, RCX);
        self.assembler.bind(no_status);
        self.assembler.store(Size::Quad, fpcr(), RAX);
        true
    }

    /// Whether an inexact result is rounded as it should be, and traps nowhere; and whether the status is set that
    /// would note it. Takes rcx.
    fn check_control(&mut self, rounding: Rounding, status: u64, otherwise: Label) {
        let byte = |bits: u64| (bits >> 56) as i32;
        let dynamic = if rounding == Rounding::Dynamic { byte(control::DYNAMIC) } else { 0 };
        let nearest = byte(control::INITIAL_FPCR) & dynamic;
        let bits = dynamic | byte(status);
        if bits != 0 {
            self.assembler.load_zero_extended(Size::Byte, RCX, last_of_fpcr());
            self.assembler.alu_constant(Alu::And, Size::Long, RCX, bits);
            self.assembler.alu_constant(Alu::Cmp, Size::Long, RCX, nearest | byte(status));
            self.assembler.jump_if(Condition::NotEqual, otherwise);
        }
        self.assembler.test_bits(field::<Cpu>(offset_of!(Cpu, ieee_control)), control::ENABLE_INE as u8);
        self.assembler.jump_if(Condition::NotEqual, otherwise);
    }

    /// Whether the operands are normal or zero. Takes rax and rcx.
    fn check_operands(&mut self, step: &DecodedInstruction, slow_path: Label) {
        for register in [step.a, step.b].into_iter().filter(|&register| register != 31) {
            self.read_float(register, RAX);
            self.check_exponent(NORMAL, true, slow_path);
        }
    }

    /// Whether the exponent of the T number in rax is one of these; or it is zero, if that will do. Takes rcx.
    fn check_exponent(&mut self, exponents: RangeInclusive<i32>, or_zero: bool, slow_path: Label) {
        let zero = self.assembler.label();
        self.assembler.load(Size::Quad, RCX, RAX);
        self.assembler.alu(Alu::Add, Size::Quad, RCX, RCX);
        if or_zero {
            self.assembler.jump_if(Condition::Equal, zero);
        }
        self.assembler.shift(Shift::Right, Size::Quad, RCX, 53);
        self.check_number(exponents, slow_path);
        self.assembler.bind(zero);
    }

    /// Whether the number in ecx is one of these. Takes rcx.
    fn check_number(&mut self, numbers: RangeInclusive<i32>, slow_path: Label) {
        let (least, most) = numbers.into_inner();
        self.assembler.alu_constant(Alu::Sub, Size::Long, RCX, least);
        self.assembler.alu_constant(Alu::Cmp, Size::Long, RCX, most - least);
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
