//! What the compiler must know of a guest to compile for it, beside what its instructions become.

use guest::{Block, Guest};

use crate::host::assembler::Register;

/// A guest that there is compiled code of.
pub trait Target: Guest {
    /// Integer registers that live in the host's: those that compilers' code uses most. All others live in the
    /// processor's state.
    const HELD: &'static [(u8, Register)];
    /// The integer register that reads as zero. Never held.
    const ZERO: u8;
    /// What an instruction without a result names as the register of its result. Never held.
    const SINK: u8;
    /// The offset in the processor's state of the integer registers, 8 bytes each.
    const INTEGERS: usize;
    /// The offset of [`Guest::host`].
    const HOST: usize;
    /// The offset of [`Guest::instructions`].
    const INSTRUCTIONS: usize;
    /// The bits that count of an address in a register which control goes to.
    const ADDRESS_MASK: i32;

    /// The integer registers, by number.
    fn integers(&mut self) -> &mut [u64];
    /// Where control goes from a block.
    fn exits(block: &Block<Self>) -> Exits;
    /// The access to memory that an instruction makes.
    fn access(instruction: &Self::Instruction) -> Option<Access>;
    /// The base register of an access that is compiled, and whose address is checked thereby.
    fn checked_base(instruction: &Self::Instruction) -> Option<u8>;
    /// The integer register that an instruction may change.
    fn changed(instruction: &Self::Instruction) -> Option<u8>;
}

/// Where control goes from a block without leaving its function.
pub struct Exits {
    /// The addresses. Behind a call, where it returns to.
    pub to: Vec<u64>,
    /// Control may also come there from anywhere: behind a call, or by a jump to where a register points.
    pub is_open: bool,
}

/// An access to memory at a register plus a displacement.
#[derive(Clone, Copy)]
pub struct Access {
    /// The register.
    pub base: u8,
    /// What is added to it: less than 32 KB.
    pub displacement: i32,
    /// Bytes.
    pub size: u8,
    /// Whether it stores.
    pub is_store: bool,
    /// Whether the address is rounded down to a multiple of 8.
    pub is_rounded: bool,
}
