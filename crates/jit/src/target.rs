//! The facts of a guest that the compiler needs, apart from the translation of its instructions.

use guest::{DecodedBlock, Guest};

use crate::host::assembler::HostRegister;

/// A guest that the compiler supports.
pub trait Target: Guest {
    /// Integer registers that host registers hold: those that generated code uses most. All others are in memory, in the
    /// guest's state.
    const HELD: &'static [(u8, HostRegister)];
    /// The integer register that reads as zero. Never held.
    const ZERO: u8;
    /// The result register of an instruction without a result. Never held.
    const SINK: u8;
    /// The offset in the processor's state of the integer registers, 8 bytes each.
    const INTEGERS: usize;
    /// The offset of [`Guest::host`].
    const HOST: usize;
    /// The offset of [`Guest::instructions`].
    const INSTRUCTIONS: usize;
    /// The bits of a register that are the target address of an indirect transfer.
    const ADDRESS_MASK: i32;

    /// The integer registers, by number.
    fn integers(&mut self) -> &mut [u64];
    /// Where control goes from a block.
    fn exits(block: &DecodedBlock<Self>) -> Exits;
    /// The access to memory that an instruction makes.
    fn access(instruction: &Self::GuestInstruction) -> Option<GuestAccess>;
    /// The base register that the code of an access compares with the address limit. None if the access is not compiled.
    fn checked_base(instruction: &Self::GuestInstruction) -> Option<u8>;
    /// The integer register that an instruction may change.
    fn changed(instruction: &Self::GuestInstruction) -> Option<u8>;
}

/// Where control goes from a block without leaving its function.
pub struct Exits {
    /// The target addresses; for a call, its return address.
    pub to: Vec<u64>,
    /// Whether control may also arrive there from outside the region: after a call, or by an indirect jump.
    pub is_open: bool,
}

/// An access to memory at a register plus a displacement.
#[derive(Clone, Copy)]
pub struct GuestAccess {
    /// The register.
    pub base: u8,
    /// The constant that is added to it: less than 32 KB.
    pub displacement: i32,
    /// Bytes.
    pub size: u8,
    /// Whether it stores.
    pub is_store: bool,
    /// Whether the address is rounded down to a multiple of 8.
    pub is_rounded: bool,
}
