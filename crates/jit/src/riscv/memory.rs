//! Loads and stores, and atomic accesses.

use riscv::LoadReservation;

use super::floats::{SINGLE_BOX, float};
use super::*;

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(crate) fn access(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        use RiscvOp::*;
        if matches!(step.op.operands(), RiscvOperands::Atomic | RiscvOperands::LoadReserved) {
            return self.atomic(step, at);
        }
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

    /// An atomic access of a word or a double word; false if it is none of the frequent ones.
    fn atomic(&mut self, step: &RiscvDecodedInstruction, at: usize) -> bool {
        use RiscvOp::*;
        let Some(access) = RiscvCpu::access(step).filter(|access| access.base != RiscvCpu::ZERO) else {
            return false;
        };
        let size = if access.size == 4 { OperandSize::Long } else { OperandSize::Quad };
        match step.op {
            LrW | LrD => self.load_reserved(step, access, size, at),
            ScW | ScD => return self.store_conditional(step, access, size, at),
            AmoswapW | AmoswapD | AmoaddW | AmoaddD => {
                let operand = self.aligned_operand(access, size, at);
                self.read_into(size, step.rs2, RAX);
                self.may_fault(self.index, at, self.unextended);
                if matches!(step.op, AmoswapW | AmoswapD) {
                    self.assembler.exchange(size, operand, RAX);
                } else {
                    self.assembler.exchange_and_add(size, operand, RAX);
                }
                match size {
                    OperandSize::Long => self.write_low(step.rd, RAX),
                    _ => self.write(step.rd, RAX),
                }
            }
            _ => return false,
        }
        true
    }

    fn load_reserved(
        &mut self,
        step: &RiscvDecodedInstruction,
        access: GuestAccess,
        size: OperandSize,
        at: usize,
    ) {
        let operand = self.aligned_operand(access, size, at);
        self.may_fault(self.index, at, self.unextended);
        self.assembler.load_sign_extended(size, RAX, operand);
        self.assembler.store(OperandSize::Quad, reservation(offset_of!(LoadReservation, address)), RCX);
        self.assembler.store(OperandSize::Quad, reservation(offset_of!(LoadReservation, value)), RAX);
        self.assembler.store_constant(reservation(offset_of!(LoadReservation, size)), access.size.into());
        self.write(step.rd, RAX);
    }

    /// Only with the value in a register of the host: there is no other one left.
    fn store_conditional(
        &mut self,
        step: &RiscvDecodedInstruction,
        access: GuestAccess,
        size: OperandSize,
        at: usize,
    ) -> bool {
        if self.held(step.rs2).is_none() {
            return false;
        }
        let value = self.read(size, step.rs2, RAX);
        let operand = self.aligned_operand(access, size, at);
        let address = reservation(offset_of!(LoadReservation, address));
        let failed = self.assembler.label();
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RCX, address);
        self.assembler.jump_if(Condition::NotEqual, failed);
        let reserved_size = reservation(offset_of!(LoadReservation, size));
        self.assembler.alu_constant(Alu::Cmp, OperandSize::Quad, reserved_size, access.size.into());
        self.assembler.jump_if(Condition::NotEqual, failed);
        self.assembler.load(OperandSize::Quad, RAX, reservation(offset_of!(LoadReservation, value)));
        self.may_fault(self.index, at, self.unextended);
        self.assembler.compare_and_exchange(size, operand, value);
        self.assembler.bind(failed);
        self.assembler.store_constant(address, LoadReservation::NONE.address as i32);
        self.write_condition(step.rd, Condition::NotEqual);
        true
    }
}

/// A field of the last load-reserved.
fn reservation(offset: usize) -> MemoryOperand {
    field::<RiscvCpu>(offset_of!(RiscvCpu, reservation) + offset)
}
