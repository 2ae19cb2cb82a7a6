//! The interface of an instruction set.

use std::fmt::Debug;

use events::record::Register;
use guest_memory::{Fault, Memory};
use isa::InstructionSet;

use crate::host_side::HostSide;

/// The state of a guest's processor, and the semantics of its instruction set.
pub trait Guest: Sized + Send {
    /// A model of the processor: which instructions it has.
    type Model: Copy + Debug + Send + Sync;
    /// A decoded instruction.
    type GuestInstruction: InstructionProperties<Self>;
    /// Why an instruction could not complete. The operating system makes a signal of it.
    type Exception: Copy + Debug + PartialEq + From<Fault>;

    /// The lengths and the other properties of instructions that records depend on.
    const INSTRUCTION_SET: &'static dyn InstructionSet;
    /// The exception of a word that is no instruction of the model.
    const ILLEGAL_INSTRUCTION: Self::Exception;

    /// Whether an instruction that raised an exception counts as executed. The program counter is then behind it.
    fn is_completed(exception: Self::Exception) -> bool;

    /// The word of the instruction at an address; one of less than four bytes in the low part.
    #[inline(always)]
    fn fetch(memory: &Memory, address: u64) -> Result<u32, Fault> {
        memory.load::<4>(address).map(|word| word as u32)
    }

    /// The number of bytes of an instruction, from its word.
    #[inline(always)]
    fn length(word: u32) -> u64 {
        Self::INSTRUCTION_SET.length(word)
    }

    /// Decodes a word, fetched from an address. None if the model has no such instruction.
    fn decode(word: u32, address: u64, model: Self::Model) -> Option<Self::GuestInstruction>;

    /// Executes one instruction. The program counter is set behind the block; a transfer of control sets it anew.
    ///
    /// Implementations are always inlined into the loop that decides what is executed next.
    fn execute(
        &mut self,
        instruction: &Self::GuestInstruction,
        memory: &Memory,
    ) -> Result<(), Break<Self::Exception>>;

    /// The address of the next instruction.
    fn pc(&self) -> u64;
    /// Sets the address of the next instruction.
    fn set_pc(&mut self, address: u64);
    /// How many instructions were executed, up to the end of the block that is executed.
    fn instructions(&mut self) -> &mut u64;
    /// The value of [`Guest::instructions`].
    fn executed(&self) -> u64;
    /// How many accesses were not aligned.
    fn unaligned(&self) -> u64;
    /// Sets the model whose instructions the processor has.
    fn set_model(&mut self, model: Self::Model);
    /// The value of a register.
    fn value(&self, register: Register) -> u64;
    /// The fields for compiled code.
    fn host(&mut self) -> &mut HostSide;
    /// The same, to be read.
    fn host_side(&self) -> &HostSide;
}

/// A decoded instruction.
pub trait InstructionProperties<G>: Copy + Debug + Send {
    /// Whether it ends a block: a transfer of control, or a trap to the operating system.
    fn ends_block(&self) -> bool;
    /// Whether it is an indirect jump or call, but no return.
    fn is_indirect_jump(&self) -> bool;
    /// Whether it accesses memory.
    fn is_access(&self) -> bool;
    /// Bytes that it accesses.
    fn access_size(&self) -> Option<u8>;
    /// Whether it may store to memory.
    fn is_store(&self) -> bool;
    /// The address that it accesses.
    fn address(&self, guest: &G) -> u64;
}

/// Why a block was left before the next one could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break<E> {
    /// An instruction raised an exception.
    Exception(E),
    /// A system call was executed.
    SystemCall,
    /// An instruction barrier was executed: instructions in memory may have changed.
    InstructionBarrier,
}

impl<E: From<Fault>> From<Fault> for Break<E> {
    #[cold]
    fn from(fault: Fault) -> Break<E> {
        Break::Exception(E::from(fault))
    }
}
