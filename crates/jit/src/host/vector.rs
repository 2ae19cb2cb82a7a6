//! The vector unit's instructions that the compiler writes.

use super::assembler::{Assembler, Place, Register, Size};

/// Vector registers: what is in them lasts for one instruction of the guest.
pub(crate) const XMM0: Register = Register(0);
pub(crate) const XMM1: Register = Register(1);

/// Instructions of the vector unit: the prefix, the size of what is in general-purpose registers, the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector(pub(crate) u8, pub(crate) Size, pub(crate) u8);

impl Vector {
    /// Loads a double, or moves one to a vector register.
    pub(crate) const LOAD: Vector = Vector(0xf2, Size::Long, 0x10);
    pub(crate) const ADD: Vector = Vector(0xf2, Size::Long, 0x58);
    pub(crate) const SUBTRACT: Vector = Vector(0xf2, Size::Long, 0x5c);
    pub(crate) const MULTIPLY: Vector = Vector(0xf2, Size::Long, 0x59);
    pub(crate) const DIVIDE: Vector = Vector(0xf2, Size::Long, 0x5e);
    pub(crate) const SQUARE_ROOT: Vector = Vector(0xf2, Size::Long, 0x51);
    /// Sets the flags as a comparison of unsigned integers does.
    pub(crate) const COMPARE: Vector = Vector(0x66, Size::Long, 0x2e);
    /// A double from a single.
    pub(crate) const WIDEN: Vector = Vector(0xf3, Size::Long, 0x5a);
    /// A double from a quadword; and back, rounded towards zero, to a general-purpose register.
    pub(crate) const FROM_INTEGER: Vector = Vector(0xf2, Size::Quad, 0x2a);
    pub(crate) const TO_INTEGER: Vector = Vector(0xf2, Size::Quad, 0x2c);
    /// The bits of a longword or a quadword from a general-purpose register; and of a quadword back: the vector
    /// register comes first there, too.
    pub(crate) const SET_LONG: Vector = Vector(0x66, Size::Long, 0x6e);
    pub(crate) const SET: Vector = Vector(0x66, Size::Quad, 0x6e);
    pub(crate) const GET: Vector = Vector(0x66, Size::Quad, 0x7e);
    /// Byte by byte: the greater one, unsigned; whether they are equal.
    pub(crate) const GREATER_BYTES: Vector = Vector(0x66, Size::Long, 0xde);
    pub(crate) const EQUAL_BYTES: Vector = Vector(0x66, Size::Long, 0x74);
    /// The bytes' highest bits, to a general-purpose register.
    pub(crate) const HIGHEST_BITS: Vector = Vector(0x66, Size::Long, 0xd7);
}

impl Assembler {
    /// Sets how the vector unit computes, and what it has noted.
    pub(crate) fn load_float_status(&mut self, from: Place) {
        self.instruction(Size::Long, &[0x0f, 0xae], 2, from.into(), 0);
    }

    /// Stores that.
    pub(crate) fn store_float_status(&mut self, to: Place) {
        self.instruction(Size::Long, &[0x0f, 0xae], 3, to.into(), 0);
    }
}
