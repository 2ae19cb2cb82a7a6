//! The vector unit's instructions that the compiler writes.

use super::assembler::{Assembler, Place, Register, Size};

/// Vector registers: what is in them lasts for one instruction of the guest.
pub(super) const XMM0: Register = Register(0);
pub(super) const XMM1: Register = Register(1);

/// Instructions of the vector unit: the prefix, the size of what is in general-purpose registers, the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vector(pub(super) u8, pub(super) Size, pub(super) u8);

impl Vector {
    /// Loads a double, or moves one to a vector register.
    pub(super) const LOAD: Vector = Vector(0xf2, Size::Long, 0x10);
    pub(super) const ADD: Vector = Vector(0xf2, Size::Long, 0x58);
    pub(super) const SUBTRACT: Vector = Vector(0xf2, Size::Long, 0x5c);
    pub(super) const MULTIPLY: Vector = Vector(0xf2, Size::Long, 0x59);
    pub(super) const DIVIDE: Vector = Vector(0xf2, Size::Long, 0x5e);
    pub(super) const SQUARE_ROOT: Vector = Vector(0xf2, Size::Long, 0x51);
    /// Sets the flags as a comparison of unsigned integers does.
    pub(super) const COMPARE: Vector = Vector(0x66, Size::Long, 0x2e);
    /// A double from a single.
    pub(super) const WIDEN: Vector = Vector(0xf3, Size::Long, 0x5a);
    /// A double from a quadword; and back, rounded towards zero, to a general-purpose register.
    pub(super) const FROM_INTEGER: Vector = Vector(0xf2, Size::Quad, 0x2a);
    pub(super) const TO_INTEGER: Vector = Vector(0xf2, Size::Quad, 0x2c);
    /// The bits of a longword or a quadword from a general-purpose register; and of a quadword back: the vector
    /// register comes first there, too.
    pub(super) const SET_LONG: Vector = Vector(0x66, Size::Long, 0x6e);
    pub(super) const SET: Vector = Vector(0x66, Size::Quad, 0x6e);
    pub(super) const GET: Vector = Vector(0x66, Size::Quad, 0x7e);
    /// Byte by byte: the greater one, unsigned; whether they are equal.
    pub(super) const GREATER_BYTES: Vector = Vector(0x66, Size::Long, 0xde);
    pub(super) const EQUAL_BYTES: Vector = Vector(0x66, Size::Long, 0x74);
    /// The bytes' highest bits, to a general-purpose register.
    pub(super) const HIGHEST_BITS: Vector = Vector(0x66, Size::Long, 0xd7);
}

impl Assembler {
    /// Sets how the vector unit computes, and what it has noted.
    pub(super) fn load_float_status(&mut self, from: Place) {
        self.instruction(Size::Long, &[0x0f, 0xae], 2, from.into(), 0);
    }

    /// Stores that.
    pub(super) fn store_float_status(&mut self, to: Place) {
        self.instruction(Size::Long, &[0x0f, 0xae], 3, to.into(), 0);
    }
}
