//! Decoded instructions, as the interpreter and the compiler take them.

use isa::Op;

/// A decoded instruction, its operands brought into one form.
#[derive(Clone, Copy, Debug)]
pub struct DecodedInstruction {
    /// Which instruction.
    pub op: Op,
    /// Register of the first operand, or of the value to store: 0 to 31.
    pub a: u8,
    /// Register of the second operand or base: 0 to 31; 31 where a literal stands instead.
    pub b: u8,
    /// Register of the result: 0 to 30, or [`SINK`](crate::cpu::register::SINK).
    pub c: u8,
    /// Added to register `b`: the displacement (shifted for LDAH) or the literal. A branch: its
    /// target. A floating operate: its qualifiers. CALL_PAL: its function.
    pub immediate: i64,
}

impl DecodedInstruction {
    /// Whether it accesses memory.
    #[inline(always)]
    pub fn is_access(&self) -> bool {
        self.op.access_size().is_some()
    }

    /// The address that it accesses, from its base register.
    #[inline(always)]
    pub fn address(&self, base: u64) -> u64 {
        let sum = base.wrapping_add(self.immediate as u64);
        if self.op.is_rounded() { sum & !7 } else { sum }
    }
}
