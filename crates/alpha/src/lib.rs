//! Alpha: the processor's state, its decoded instructions, and what each of them does.

pub mod bytes;
pub mod cpu;
mod decoded_instruction;
pub mod float;
mod fpcr;
mod guest;
pub mod pal;
mod registers;
pub mod semantics;

pub use decoded_instruction::DecodedInstruction;

/// A block of Alpha's instructions.
pub type DecodedBlock = ::guest::DecodedBlock<cpu::Cpu>;
/// Blocks of Alpha's instructions.
pub type BlockCache = ::guest::BlockCache<cpu::Cpu>;
