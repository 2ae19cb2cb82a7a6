//! Loads and stores.

use super::floats::{SINGLE_BOX, float};
use super::*;

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(crate) fn access(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        use RiscvOp::*;
        let (Some(access), Some(_)) = (RiscvCpu::access(step), RiscvCpu::checked_base(step)) else {
            return false;
        };
        let size = match access.size {
            1 => OperandSize::Byte,
            2 => OperandSize::Word,
            4 => OperandSize::Long,
            _ => OperandSize::Quad,
        };
        let operand = self.memory_operand(access, at);
        match step.op {
            Sb | Sh | Sw | Sd => {
                let value = self.read(size, step.rs2, RCX);
                self.may_fault(self.index, at, self.unextended);
                self.assembler.store(size, operand, value);
            }
            Fsw | Fsd => {
                self.assembler.load(OperandSize::Quad, RCX, float(step.rs2));
                self.may_fault(self.index, at, self.unextended);
                self.assembler.store(size, operand, RCX);
            }
            Fld => {
                self.may_fault(self.index, at, self.unextended);
                self.assembler.load(size, RAX, operand);
                self.assembler.store(OperandSize::Quad, float(step.rd), RAX);
            }
            Flw => {
                self.may_fault(self.index, at, self.unextended);
                self.assembler.load(size, RAX, operand);
                self.assembler.constant(RCX, SINGLE_BOX);
                self.assembler.alu(Alu::Or, OperandSize::Quad, RAX, RCX);
                self.assembler.store(OperandSize::Quad, float(step.rd), RAX);
            }
            op => {
                let to = self.target(step.rd);
                self.may_fault(self.index, at, self.unextended);
                if matches!(op, Lb | Lh | Lw) {
                    self.assembler.load_sign_extended(size, to, operand);
                } else {
                    self.assembler.load_zero_extended(size, to, operand);
                }
                self.write(step.rd, to);
            }
        }
        true
    }
}
