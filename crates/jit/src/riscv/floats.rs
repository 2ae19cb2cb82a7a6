//! Floating-point registers: moves, which need no arithmetic.

use super::*;

/// The bits above a single in a register.
pub(super) const SINGLE_BOX: u64 = 0xffff_ffff << 32;

/// The memory operand of a floating-point register.
pub(super) fn float(number: u8) -> MemoryOperand {
    field::<RiscvCpu>(offset_of!(RiscvCpu, f) + 8 * usize::from(number))
}

impl Emitter<'_> {
    /// An operation on floating-point registers. False if compiled code does not implement it.
    pub(crate) fn float_operate(&mut self, step: &RiscvDecodedInstruction) -> bool {
        use OperandSize::{Long, Quad};
        use RiscvOp::*;
        match step.op {
            FmvXD => {
                self.assembler.load(Quad, RAX, float(step.rs1));
                self.write(step.rd, RAX);
            }
            FmvXW => {
                self.assembler.load_sign_extended(Long, RAX, float(step.rs1));
                self.write(step.rd, RAX);
            }
            FmvDX => {
                let value = self.read(Quad, step.rs1, RAX);
                self.assembler.store(Quad, float(step.rd), value);
            }
            FmvWX => {
                let value = self.read(Long, step.rs1, RAX);
                self.assembler.load(Long, RAX, value);
                self.assembler.constant(RCX, SINGLE_BOX);
                self.assembler.alu(Alu::Or, Quad, RAX, RCX);
                self.assembler.store(Quad, float(step.rd), RAX);
            }
            FsgnjD if step.rs1 == step.rs2 => {
                self.assembler.load(Quad, RAX, float(step.rs1));
                self.assembler.store(Quad, float(step.rd), RAX);
            }
            // The sign is the highest bit: it is inverted, or cleared by shifting it out.
            FsgnjnD if step.rs1 == step.rs2 => {
                self.assembler.load(Quad, RAX, float(step.rs1));
                self.assembler.constant(RCX, 1 << 63);
                self.assembler.alu(Alu::Xor, Quad, RAX, RCX);
                self.assembler.store(Quad, float(step.rd), RAX);
            }
            FsgnjxD if step.rs1 == step.rs2 => {
                self.assembler.load(Quad, RAX, float(step.rs1));
                self.assembler.shift(Shift::Left, Quad, RAX, 1);
                self.assembler.shift(Shift::Right, Quad, RAX, 1);
                self.assembler.store(Quad, float(step.rd), RAX);
            }
            _ => return false,
        }
        true
    }
}
