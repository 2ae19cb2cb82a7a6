//! Floating point in the host's arithmetic. Compiled code handles results that are normal and rounded to nearest; then the only
//! exception is an inexact result, which has been recorded before, or did not occur. It calls the interpreter for all others.

use std::ops::RangeInclusive;

use super::*;
use crate::emit::OutOfLine;
use crate::host::code::Label;

/// The bits above a single in a register.
pub(super) const SINGLE_BOX: u64 = 0xffff_ffff << 32;
/// The rounding modes to nearest, and of the control register.
const NEAREST: u8 = 0;
const DYNAMIC: u8 = 7;
/// In the control register: the exception of an inexact result, and the bits of the rounding mode, which are 0 for the nearest.
const INEXACT: i32 = 1;
const ROUNDING: i32 = 7 << 5;
/// The host's status of an inexact result (MXCSR.PE).
const HOST_INEXACT: u8 = 1 << 5;

/// The memory operand of a floating-point register.
pub(super) fn float(number: u8) -> MemoryOperand {
    field::<RiscvCpu>(offset_of!(RiscvCpu, f) + 8 * usize::from(number))
}

/// Of the upper half of a floating-point register.
fn upper_half(number: u8) -> MemoryOperand {
    let MemoryOperand { base, displacement } = float(number);
    MemoryOperand { base, displacement: displacement + 4 }
}

/// A format that compiled code computes with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FloatWidth {
    Single,
    Double,
}

impl FloatWidth {
    fn load(self) -> Vector {
        if self == FloatWidth::Single { Vector::LOAD_SINGLE } else { Vector::LOAD }
    }

    /// The number of bits below the exponent's, and the exponents of results that cannot have been rounded to a normal number.
    fn exponents(self) -> (u8, RangeInclusive<i32>) {
        if self == FloatWidth::Single { (23, 2..=0xfe) } else { (52, 2..=0x7fe) }
    }
}

/// The computation of a result in xmm0 from floating-point registers.
#[derive(Clone, Copy)]
pub struct FloatComputation {
    operation: Vector,
    /// Of the operands.
    width: FloatWidth,
    first: u8,
    /// The second operand; none if the first one is the only one.
    second: Option<u8>,
}

/// An operation whose result may be the first inexact one.
pub struct FirstInexact {
    label: Label,
    computation: FloatComputation,
    is_dynamic: bool,
    back: Label,
    slow_path: Label,
}

fn status(which: usize) -> MemoryOperand {
    field::<RiscvCpu>(offset_of!(RiscvCpu, float_status) + which * size_of::<u32>())
}

fn control() -> MemoryOperand {
    field::<RiscvCpu>(offset_of!(RiscvCpu, fcsr))
}

impl Emitter<'_> {
    /// An operation on floating-point registers. False if compiled code does not implement it.
    pub(crate) fn float_operate(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        use FloatWidth::{Double, Single};
        use RiscvOp::*;
        match step.op {
            FaddD => self.arithmetic(step, at, Vector::ADD, Double),
            FsubD => self.arithmetic(step, at, Vector::SUBTRACT, Double),
            FmulD => self.arithmetic(step, at, Vector::MULTIPLY, Double),
            FdivD => self.arithmetic(step, at, Vector::DIVIDE, Double),
            FsqrtD => self.arithmetic(step, at, Vector::SQUARE_ROOT, Double),
            FaddS => self.arithmetic(step, at, Vector::ADD_SINGLE, Single),
            FsubS => self.arithmetic(step, at, Vector::SUBTRACT_SINGLE, Single),
            FmulS => self.arithmetic(step, at, Vector::MULTIPLY_SINGLE, Single),
            FdivS => self.arithmetic(step, at, Vector::DIVIDE_SINGLE, Single),
            FsqrtS => self.arithmetic(step, at, Vector::SQUARE_ROOT_SINGLE, Single),
            FcvtSD => self.arithmetic(step, at, Vector::NARROW, Double),
            FcvtDS => self.widen(step, at),
            FeqD => self.compare_floats(step, at, Condition::Equal),
            FltD => self.compare_floats(step, at, Condition::Below),
            FleD => self.compare_floats(step, at, Condition::BelowOrEqual),
            FcvtDW | FcvtDL => self.convert_integer(step, at),
            FcvtWD | FcvtLD => self.convert_to_integer(step, at),
            _ => self.move_float(step),
        }
    }

    /// A move between registers, which no exception comes from.
    fn move_float(&mut self, step: &RiscvDecodedInstruction) -> bool {
        use OperandSize::{Long, Quad};
        use RiscvOp::*;
        match step.op {
            FmvXD => {
                self.assembler.load(Quad, RAX, float(step.rs1));
                self.write(step.rd, RAX);
            }
            FmvXW => {
                self.assembler.load_sign_extended(Long, RAX, float(step.rs1));
                self.write(step.rd, RAX);
            }
            FmvDX => {
                let value = self.read(Quad, step.rs1, RAX);
                self.assembler.store(Quad, float(step.rd), value);
            }
            FmvWX => {
                let value = self.read(Long, step.rs1, RAX);
                self.assembler.load(Long, RAX, value);
                self.write_single(step.rd);
            }
            FsgnjD | FsgnjnD | FsgnjxD => self.move_sign(step),
            _ => return false,
        }
        true
    }

    /// The first source with the sign of the second one, with its opposite, or with the product of both signs.
    fn move_sign(&mut self, step: &RiscvDecodedInstruction) {
        use OperandSize::Quad;
        self.assembler.load(Quad, RAX, float(step.rs1));
        if step.op == RiscvOp::FsgnjD && step.rs1 == step.rs2 {
            return self.assembler.store(Quad, float(step.rd), RAX);
        }
        self.assembler.load(Quad, RCX, float(step.rs2));
        if step.op == RiscvOp::FsgnjnD {
            self.assembler.unary(Unary::Not, RCX);
        }
        self.assembler.shift(Shift::Right, Quad, RCX, 63);
        self.assembler.shift(Shift::Left, Quad, RCX, 63);
        if step.op == RiscvOp::FsgnjxD {
            self.assembler.alu(Alu::Xor, Quad, RAX, RCX);
        } else {
            self.assembler.shift(Shift::Left, Quad, RAX, 1);
            self.assembler.shift(Shift::Right, Quad, RAX, 1);
            self.assembler.alu(Alu::Or, Quad, RAX, RCX);
        }
        self.assembler.store(Quad, float(step.rd), RAX);
    }

    /// Sets a register to the single in eax. Uses rcx.
    fn write_single(&mut self, register: u8) {
        self.assembler.constant(RCX, SINGLE_BOX);
        self.assembler.alu(Alu::Or, OperandSize::Quad, RAX, RCX);
        self.assembler.store(OperandSize::Quad, float(register), RAX);
    }

    /// Jumps unless the registers hold singles.
    fn check_boxes(&mut self, registers: impl IntoIterator<Item = u8>, slow_path: Label) {
        for register in registers {
            self.assembler.alu_constant(Alu::Cmp, OperandSize::Long, upper_half(register), -1);
            self.assembler.jump_if(Condition::NotEqual, slow_path);
        }
    }

    /// Computes a result in xmm0.
    fn compute(&mut self, computation: FloatComputation) {
        let FloatComputation { operation, width, first, second } = computation;
        match second {
            Some(second) => {
                self.assembler.vector(width.load(), XMM0, float(first));
                self.assembler.vector(operation, XMM0, float(second));
            }
            None => self.assembler.vector(operation, XMM0, float(first)),
        }
    }

    /// A result rounded to nearest, which is normal.
    fn arithmetic(
        &mut self,
        step: &RiscvDecodedInstruction,
        at: usize,
        operation: Vector,
        width: FloatWidth,
    ) -> bool {
        let is_dynamic = step.rounding == DYNAMIC;
        if step.rounding != NEAREST && !is_dynamic {
            return false;
        }
        let has_second = step.op.operands() == RiscvOperands::FdFs1Fs2Round;
        let second = has_second.then_some(step.rs2);
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        if width == FloatWidth::Single {
            self.check_boxes([step.rs1].into_iter().chain(second), slow_path);
        }
        // The common case: an inexact result was recorded before.
        let [first_inexact, computed] = [(); 2].map(|()| self.assembler.label());
        let computation = FloatComputation { operation, width, first: step.rs1, second };
        let rounding = if is_dynamic { ROUNDING } else { 0 };
        self.assembler.load_zero_extended(OperandSize::Byte, RCX, control());
        self.assembler.alu_constant(Alu::And, OperandSize::Long, RCX, INEXACT | rounding);
        self.assembler.alu_constant(Alu::Cmp, OperandSize::Long, RCX, INEXACT);
        self.assembler.jump_if(Condition::NotEqual, first_inexact);
        self.compute(computation);
        let code = FirstInexact { label: first_inexact, computation, is_dynamic, back: computed, slow_path };
        self.out_of_line.push(OutOfLine::Guest(code));
        self.assembler.bind(computed);
        let result = if operation == Vector::NARROW { FloatWidth::Single } else { width };
        // A sum that is zero is exact.
        let is_sum =
            [Vector::ADD, Vector::SUBTRACT, Vector::ADD_SINGLE, Vector::SUBTRACT_SINGLE].contains(&operation);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        if result == FloatWidth::Single {
            self.assembler.load(OperandSize::Long, RAX, RAX);
        }
        self.check_exponent(result, is_sum, slow_path);
        match result {
            FloatWidth::Single => self.write_single(step.rd),
            FloatWidth::Double => self.assembler.store(OperandSize::Quad, float(step.rd), RAX),
        }
        self.assembler.bind(back);
        true
    }

    /// The result of an operation before which no inexact result was recorded: the host's status tells whether it is one. Then the
    /// interpreter records it.
    pub(crate) fn compute_first(&mut self, first: FirstInexact) {
        let FirstInexact { label, computation, is_dynamic, back, slow_path } = first;
        self.assembler.bind(label);
        if is_dynamic {
            self.assembler.load_zero_extended(OperandSize::Byte, RCX, control());
            self.assembler.test_bits(RCX, ROUNDING as u8);
            self.assembler.jump_if(Condition::NotEqual, slow_path);
        }
        self.assembler.load_float_status(status(0));
        self.compute(computation);
        self.assembler.store_float_status(status(1));
        self.assembler.test_bits(status(1), HOST_INEXACT);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.jump(back);
    }

    /// Jumps unless the exponent of the number in rax is one of a certain result; or the number is zero, if that is allowed. Uses rcx.
    fn check_exponent(&mut self, width: FloatWidth, or_zero: bool, slow_path: Label) {
        use OperandSize::{Long, Quad};
        let size = if width == FloatWidth::Single { Long } else { Quad };
        let (fraction, exponents) = width.exponents();
        let (least, most) = exponents.into_inner();
        let zero = self.assembler.label();
        self.assembler.load(size, RCX, RAX);
        self.assembler.alu(Alu::Add, size, RCX, RCX);
        if or_zero {
            self.assembler.jump_if(Condition::Equal, zero);
        }
        self.assembler.shift(Shift::Right, size, RCX, fraction + 1);
        self.assembler.alu_constant(Alu::Sub, Long, RCX, least);
        self.assembler.alu_constant(Alu::Cmp, Long, RCX, most - least);
        self.assembler.jump_if(Condition::Above, slow_path);
        self.assembler.bind(zero);
    }

    /// A single as a double, if it is normal or zero.
    fn widen(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        if matches!(step.rounding, 5 | 6) {
            return false;
        }
        // A reserved mode in the control register makes it illegal: that is the interpreter's.
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.check_boxes([step.rs1], slow_path);
        if step.rounding == DYNAMIC {
            self.check_nearest(slow_path);
        }
        self.assembler.vector(Vector::WIDEN, XMM0, float(step.rs1));
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.check_exponent(FloatWidth::Double, true, slow_path);
        self.assembler.store(OperandSize::Quad, float(step.rd), RAX);
        self.assembler.bind(back);
        true
    }

    /// Jumps unless the control register's rounding mode is to nearest. Uses rcx.
    fn check_nearest(&mut self, slow_path: Label) {
        self.assembler.load_zero_extended(OperandSize::Byte, RCX, control());
        self.assembler.test_bits(RCX, ROUNDING as u8);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
    }

    /// A comparison of doubles. The interpreter compares NaNs.
    fn compare_floats(&mut self, step: &RiscvDecodedInstruction, at: usize, holds: Condition) -> bool {
        self.complete_sign_extensions();
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        self.assembler.vector(Vector::LOAD, XMM0, float(step.rs1));
        self.assembler.vector(Vector::COMPARE, XMM0, float(step.rs2));
        self.assembler.jump_if(Condition::Unordered, slow_path);
        self.write_condition(step.rd, holds);
        self.assembler.bind(back);
        true
    }

    /// An integer that a double represents exactly.
    fn convert_integer(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        if matches!(step.rounding, 5 | 6) {
            return false;
        }
        self.complete_sign_extensions();
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        if step.rounding == DYNAMIC {
            self.check_nearest(slow_path);
        }
        self.read_into(OperandSize::Quad, step.rs1, RAX);
        if step.op == RiscvOp::FcvtDW {
            self.assembler.load_sign_extended(OperandSize::Long, RAX, RAX);
        }
        self.assembler.vector(Vector::FROM_INTEGER, XMM0, RAX);
        self.assembler.vector(Vector::TO_INTEGER, RCX, XMM0);
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RCX, RAX);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.vector(Vector::GET, XMM0, RAX);
        self.assembler.store(OperandSize::Quad, float(step.rd), RAX);
        self.assembler.bind(back);
        true
    }

    /// A double as an integer, rounded towards zero: one that the double is exactly, or after an inexact result was recorded. One that
    /// does not fit is the interpreter's.
    fn convert_to_integer(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        const TOWARDS_ZERO: u8 = 1;
        if step.rounding != TOWARDS_ZERO {
            return false;
        }
        use OperandSize::{Long, Quad};
        self.complete_sign_extensions();
        let (slow_path, back) = self.interpret_out_of_line(step, at);
        let fits = self.assembler.label();
        self.assembler.vector(Vector::TO_INTEGER, RAX, float(step.rs1));
        if step.op == RiscvOp::FcvtWD {
            self.assembler.load_sign_extended(Long, RCX, RAX);
        } else {
            // The host's result of what does not fit is the smallest integer.
            self.assembler.constant(RCX, 1 << 63);
            self.assembler.alu(Alu::Cmp, Quad, RCX, RAX);
            self.assembler.jump_if(Condition::Equal, slow_path);
            self.assembler.load(Quad, RCX, RAX);
        }
        self.assembler.alu(Alu::Cmp, Quad, RCX, RAX);
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.test_bits(control(), INEXACT as u8);
        self.assembler.jump_if(Condition::NotEqual, fits);
        self.assembler.vector(Vector::FROM_INTEGER, XMM0, RAX);
        self.assembler.vector(Vector::COMPARE, XMM0, float(step.rs1));
        self.assembler.jump_if(Condition::NotEqual, slow_path);
        self.assembler.bind(fits);
        self.write(step.rd, RAX);
        self.assembler.bind(back);
        true
    }
}
