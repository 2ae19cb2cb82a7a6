//! Memory operands.

use super::*;
use crate::registers::address_limit;
use crate::target::GuestAccess;

impl<G: Emit> Emitter<'_, G> {
    /// A memory operand, whose base was compared with the address limit: at another address the comparison faults, and
    /// the interpreter executes the instruction. May use rax and rcx.
    pub(crate) fn memory_operand(&mut self, access: GuestAccess, at: usize) -> MemoryOperand {
        let base = self.read(OperandSize::Quad, access.base, RAX);
        if self.checked_bases & 1 << access.base == 0 {
            // The displacement reaches at most 32 KB further, where nothing is ever mapped.
            self.may_fault(self.index, at, self.unextended);
            self.assembler.alu(Alu::Cmp, OperandSize::Quad, base, address_limit::<G>());
            self.assembler.jump_into(Condition::AboveOrEqual, 1);
            self.checked_bases |= 1 << access.base;
        }
        let mut operand = MemoryOperand { base, displacement: access.displacement };
        if access.is_rounded {
            self.assembler.address(OperandSize::Quad, RAX, operand);
            self.assembler.alu_constant(Alu::And, OperandSize::Quad, RAX, !7);
            operand = MemoryOperand { base: RAX, displacement: 0 };
        }
        self.record_address(operand);
        operand
    }

    /// The address of an atomic access, in rcx. The interpreter executes those that are not aligned.
    pub(crate) fn aligned_operand(
        &mut self,
        access: GuestAccess,
        size: OperandSize,
        at: usize,
    ) -> MemoryOperand {
        let operand = self.memory_operand(access, at);
        let fault = self.fault(at);
        self.assembler.address(OperandSize::Quad, RCX, operand);
        self.assembler.test_bits(RCX, if size == OperandSize::Quad { 7 } else { 3 });
        self.assembler.jump_if(Condition::NotEqual, fault);
        MemoryOperand { base: RCX, displacement: 0 }
    }
}
