//! An instruction set with instructions of two and of four bytes.

use isa::{
    Alpha, ControlCalls, ControlTransfer, CpuModel, Group, InstructionFormat, InstructionSet,
    InstructionSummary, PipelineSummary, Register, TransferTarget,
};

/// Alpha's instructions, of which integer operations and no-operations have two bytes, and branches count in units of two
/// bytes.
#[derive(Debug)]
pub struct MixedLengths;

/// Bytes of other instructions than the short ones.
const LONG: i64 = 4;

impl InstructionSet for MixedLengths {
    fn name(&self) -> &'static str {
        "mixed lengths"
    }

    fn length(&self, word: u32) -> u64 {
        let is_operation = isa::decode(word).is_some_and(|one| one.op.format() == InstructionFormat::Operate);
        if is_operation || self.mnemonic(word) == Some("unop") { 2 } else { LONG as u64 }
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        let summary = Alpha.summary(word)?;
        let halve = |transfer| match transfer {
            ControlTransfer { target: TransferTarget::Relative(distance), .. } => {
                ControlTransfer { target: TransferTarget::Relative(LONG + (distance - LONG) / 2), ..transfer }
            }
            _ => transfer,
        };
        Some(InstructionSummary { transfer: summary.transfer.map(halve), ..summary })
    }

    fn code_alignment(&self) -> u64 {
        2
    }

    fn zero_register(&self) -> u8 {
        Alpha.zero_register()
    }

    fn stack_pointer(&self) -> u8 {
        Alpha.stack_pointer()
    }

    /// No machine has it.
    fn elf_machine(&self) -> u16 {
        0xfffd
    }

    fn control_calls(&self) -> ControlCalls {
        Alpha.control_calls()
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        Alpha.disassemble(word, address)
    }

    fn register_name(&self, register: Register) -> &'static str {
        Alpha.register_name(register)
    }

    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        Alpha.mnemonic(word)
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        Alpha.mnemonics()
    }

    fn is_implemented(&self, word: u32, cpu: CpuModel) -> bool {
        Alpha.is_implemented(word, cpu)
    }

    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary> {
        Alpha.pipeline_summary(word)
    }

    fn second_entry(&self) -> u64 {
        0
    }
}
