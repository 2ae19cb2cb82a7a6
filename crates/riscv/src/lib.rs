//! RISC-V (RV64): the processor's state, its decoded instructions, and what each of them does.

mod atomic;
mod cpu;
mod csr;
mod decoded_instruction;
mod float;
mod guest;
mod registers;
mod semantics;

pub use cpu::{LoadReservation, RiscvCpu, RiscvException, register};
pub use decoded_instruction::RiscvDecodedInstruction;

/// A block of RISC-V's instructions.
pub type RiscvBlock = ::guest::DecodedBlock<RiscvCpu>;
/// Blocks of RISC-V's instructions.
pub type RiscvBlockCache = ::guest::BlockCache<RiscvCpu>;
