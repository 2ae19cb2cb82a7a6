//! RISC-V (RV64) of user mode: one table of instructions of four bytes, one of the two-byte instructions that abbreviate them,
//! and what follows from these: decoder, text, summaries.

mod compressed;
mod decode;
mod evaluate;
mod extensions;
mod pipeline;
mod set;
mod table;
mod text;

pub use decode::{CACHE_BLOCK, RiscvFloatFormat, RiscvInstruction, decode_riscv, riscv_length};
pub use evaluate::{riscv_operation, riscv_result};
pub use extensions::{RiscvExtension, RiscvExtensions, UnknownExtensions};
pub use set::Riscv;
pub use table::{RiscvOp, RiscvOperands};
