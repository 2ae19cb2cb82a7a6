//! The interface of a guest's calling convention.

use crate::guest::Guest;

/// The calling convention of a guest's programs, as far as calls are followed and their values are read.
pub trait CallingConvention: Guest {
    /// The number of the integer register that is the stack pointer, as unwinding tables have it.
    const STACK_POINTER: u8;
    /// Of the register by which functions with frames of varying size address them.
    const FRAME_POINTER: u8;
    /// Of the register with the return address, until a function saves it.
    const RETURN_ADDRESS: u8;

    /// Whether a function has a second entry ([`InstructionSet::second_entry`](isa::InstructionSet::second_entry)), by its first two words.
    fn has_second_entry(first: u32, second: u32) -> bool;
    /// The stack pointer.
    fn stack_pointer(&self) -> u64;
    /// The address to which a function returns, at its first instruction.
    fn return_address(&self) -> u64;
    /// An argument, numbered from 0, of a function at its first instruction.
    fn argument(&self, number: usize) -> u64;
    /// The result of a function at its return.
    fn result(&self) -> u64;
    /// The target of an indirect jump or a return, by its word.
    fn jump_target(&self, word: u32) -> Option<u64>;
}
