//! The Alpha user-mode instruction set through EV67 as one [`TABLE`], one line an instruction, and
//! what derives from it: decoder, disassembler, encoder, classifier. [`InstructionSet`] is the interface by which
//! records, traces, models and analysis take any instruction set; [`Alpha`] implements it.
//!
//! ```
//! use pathlength_isa::{CpuModel, Extension, Group, Op, decode, encode};
//!
//! let load = decode(0x2a1e_0010).unwrap();
//! assert_eq!(load.op, Op::Ldbu);
//! assert_eq!((load.ra(), load.rb(), load.displacement()), (16, 30, 16));
//! assert_eq!(load.disassemble(0).to_string(), "ldbu a0,16(sp)");
//! assert_eq!(load.op.group(), Group::IntegerLoad);
//! assert_eq!(load.op.extension(), Extension::Bwx);
//! assert!(!CpuModel::Ev5.has(Extension::Bwx) && CpuModel::Ev56.has(Extension::Bwx));
//! assert_eq!(encode::memory(Op::Ldbu, 16, 30, 16), Ok(0x2a1e_0010));
//! ```

mod alpha;
mod alpha_system;
pub mod by_name;
mod classes;
mod cpu;
mod decode;
mod described;
mod disassemble;
pub mod encode;
mod evaluate;
mod instruction_set;
mod pipeline;
mod processors;
mod qualifiers;
mod riscv;
mod table;

pub use alpha::Alpha;
pub use alpha_system::AlphaSystem;
pub use classes::{Group, InstructionClass};
pub use cpu::{CpuModel, UnknownCpu};
pub use decode::{Instruction, Nop, decode, decode_op, nop_kind};
pub use described::{
    DESCRIBED_SETS, DescribedAccess, DescribedKind, DescribedSet, InstructionDescription, x86_64_words,
};
pub use disassemble::REGISTER_NAMES;
pub use evaluate::{evaluate, operation};
pub use instruction_set::{
    ControlCalls, ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, LoadExtension,
    MemoryAccess, Operation, PipelineSummary, Register, ReturnStackUse, SourceOperand, TransferKind,
    TransferTarget, ValueModel, ValuePrediction,
};
pub use processors::{Processors, UnknownProcessor};
pub use qualifiers::{QualifierSet, Qualifiers, Rounding};
pub use riscv::{
    CACHE_BLOCK, Riscv, RiscvExtension, RiscvExtensions, RiscvFloatFormat, RiscvInstruction, RiscvOp,
    RiscvOperands, UnknownExtensions, decode_riscv, riscv_length, riscv_operation, riscv_result,
};
pub use table::{Extension, Flags, InstructionFormat, InstructionRow, Op, Operands, TABLE};

/// All instruction sets that traces are recorded of. Files that name none are of the first.
pub static INSTRUCTION_SETS: [&dyn InstructionSet; 3 + DESCRIBED_SETS.len()] = {
    let mut all: [&dyn InstructionSet; 3 + DESCRIBED_SETS.len()] = [&Alpha; _];
    all[1] = &AlphaSystem;
    all[2] = &Riscv;
    let mut next = 0;
    while next < DESCRIBED_SETS.len() {
        all[3 + next] = &DESCRIBED_SETS[next];
        next += 1;
    }
    all
};

/// The instruction set of the images with this machine in their ELF headers, if its words are the instructions.
pub fn of_elf_machine(machine: u16) -> Option<&'static dyn InstructionSet> {
    any_of_elf_machine(machine).filter(|set| !set.describes())
}

/// The same, also if only an emulator knows the instructions.
pub fn any_of_elf_machine(machine: u16) -> Option<&'static dyn InstructionSet> {
    INSTRUCTION_SETS.into_iter().find(|set| set.elf_machine() == machine)
}
