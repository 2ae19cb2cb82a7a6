//! Vector instructions.

use super::assembler::{Assembler, HostRegister, MemoryOperand, OperandSize};

/// A vector register. Its contents are only used within one guest instruction.
pub(crate) const XMM0: HostRegister = HostRegister(0);
pub(crate) const XMM1: HostRegister = HostRegister(1);

/// A vector instruction: its prefix, the size of its general-purpose operand, and its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector(pub(crate) u8, pub(crate) OperandSize, pub(crate) u8);

impl Vector {
    /// Loads a double, or moves one to a vector register.
    pub(crate) const LOAD: Vector = Vector(0xf2, OperandSize::Long, 0x10);
    pub(crate) const ADD: Vector = Vector(0xf2, OperandSize::Long, 0x58);
    pub(crate) const SUBTRACT: Vector = Vector(0xf2, OperandSize::Long, 0x5c);
    pub(crate) const MULTIPLY: Vector = Vector(0xf2, OperandSize::Long, 0x59);
    pub(crate) const DIVIDE: Vector = Vector(0xf2, OperandSize::Long, 0x5e);
    pub(crate) const SQUARE_ROOT: Vector = Vector(0xf2, OperandSize::Long, 0x51);
    /// Compares doubles, and sets the flags as a comparison of unsigned integers.
    pub(crate) const COMPARE: Vector = Vector(0x66, OperandSize::Long, 0x2e);
    /// Loads a single, or moves one to a vector register; and operations on singles.
    pub(crate) const LOAD_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x10);
    pub(crate) const ADD_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x58);
    pub(crate) const SUBTRACT_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x5c);
    pub(crate) const MULTIPLY_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x59);
    pub(crate) const DIVIDE_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x5e);
    pub(crate) const SQUARE_ROOT_SINGLE: Vector = Vector(0xf3, OperandSize::Long, 0x51);
    /// Converts a single to a double, and back.
    pub(crate) const WIDEN: Vector = Vector(0xf3, OperandSize::Long, 0x5a);
    pub(crate) const NARROW: Vector = Vector(0xf2, OperandSize::Long, 0x5a);
    /// Converts a quadword to a double; and back, rounded towards zero, to a general-purpose register.
    pub(crate) const FROM_INTEGER: Vector = Vector(0xf2, OperandSize::Quad, 0x2a);
    pub(crate) const TO_INTEGER: Vector = Vector(0xf2, OperandSize::Quad, 0x2c);
    /// Copies the bits of a longword or a quadword from a general-purpose register; and of a quadword back: the
    /// vector register is the first operand in this form, too.
    pub(crate) const SET_LONG: Vector = Vector(0x66, OperandSize::Long, 0x6e);
    pub(crate) const SET: Vector = Vector(0x66, OperandSize::Quad, 0x6e);
    pub(crate) const GET: Vector = Vector(0x66, OperandSize::Quad, 0x7e);
    /// For each byte: the greater one, unsigned; whether they are equal.
    pub(crate) const GREATER_BYTES: Vector = Vector(0x66, OperandSize::Long, 0xde);
    pub(crate) const EQUAL_BYTES: Vector = Vector(0x66, OperandSize::Long, 0x74);
    /// Copies the highest bit of each byte to a general-purpose register.
    pub(crate) const HIGHEST_BITS: Vector = Vector(0x66, OperandSize::Long, 0xd7);
}

impl Assembler {
    /// Loads control and status of the vector unit (MXCSR).
    pub(crate) fn load_float_status(&mut self, from: MemoryOperand) {
        self.instruction(OperandSize::Long, &[0x0f, 0xae], 2, from.into(), 0);
    }

    /// Stores control and status of the vector unit (MXCSR).
    pub(crate) fn store_float_status(&mut self, to: MemoryOperand) {
        self.instruction(OperandSize::Long, &[0x0f, 0xae], 3, to.into(), 0);
    }
}
