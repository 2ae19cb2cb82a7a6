//! RISC-V's instructions as models of pipelines need them.

use super::RiscvInstruction;
use crate::instruction_set::PipelineSummary;

impl RiscvInstruction {
    /// A summary for models of pipelines. Of a fused multiply and add, the third source is missing.
    pub(crate) fn pipeline_summary(&self) -> PipelineSummary {
        let (written, read) = self.registers();
        let is_store = self.op.is_store();
        // A store's data come first, as the register that a conditional branch tests does.
        let sources = if is_store { [read[1], read[0]] } else { [read[0], read[1]] };
        let is_branch = self.op.class() == crate::InstructionClass::Branch;
        PipelineSummary {
            class: self.op.class(),
            sources,
            special: (is_store || is_branch).then_some(0),
            destination: written[0],
        }
    }
}
