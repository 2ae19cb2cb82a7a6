//! Loads and stores.

use isa::Op;

use super::*;
use alpha::cpu::LoadLock;

/// Where the Cpu has the last load-locked.
const LOCK: usize = offset_of!(Cpu, lock);

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(crate) fn access(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        let Some(access) = Cpu::access(step) else { return false };
        match step.op {
            Op::LdlL => return self.load_locked(step, access, OperandSize::Long, at),
            Op::LdqL => return self.load_locked(step, access, OperandSize::Quad, at),
            Op::StlC => return self.store_conditional(step, access, OperandSize::Long, at),
            Op::StqC => return self.store_conditional(step, access, OperandSize::Quad, at),
            _ => {}
        }
        let size = match step.op {
            Op::Ldbu | Op::Stb => OperandSize::Byte,
            Op::Ldwu | Op::Stw => OperandSize::Word,
            Op::Ldl | Op::Stl | Op::Lds => OperandSize::Long,
            Op::Ldq | Op::Stq | Op::LdqU | Op::StqU | Op::Ldt | Op::Stt => OperandSize::Quad,
            _ => return false,
        };
        if Cpu::checked_base(step).is_none() {
            return false;
        }
        let operand = self.memory_operand(access, at);
        match step.op {
            Op::Stb | Op::Stw | Op::Stl | Op::Stq | Op::StqU => {
                let value = self.read(size, step.a, RCX);
                self.may_fault(self.index, at, self.unextended);
                self.assembler.store(size, operand, value);
            }
            Op::Stt => {
                self.read_float(step.a, RCX);
                self.may_fault(self.index, at, self.unextended);
                self.assembler.store(size, operand, RCX);
            }
            Op::Lds => self.load_single(step, at, operand),
            Op::Ldt => {
                self.may_fault(self.index, at, self.unextended);
                self.assembler.load(size, RAX, operand);
                self.write_float(step.c, RAX);
            }
            _ => {
                let to = self.target(step.c);
                self.may_fault(self.index, at, self.unextended);
                if size == OperandSize::Long {
                    self.assembler.load_sign_extended(size, to, operand);
                } else {
                    self.assembler.load_zero_extended(size, to, operand);
                }
                self.write(step.c, to);
            }
        }
        true
    }

    fn load_locked(
        &mut self,
        step: &DecodedInstruction,
        access: GuestAccess,
        size: OperandSize,
        at: usize,
    ) -> bool {
        if step.b == 31 {
            return false;
        }
        let operand = self.aligned_operand(access, size, at);
        self.may_fault(self.index, at, self.unextended);
        self.assembler.load_sign_extended(size, RAX, operand);
        self.assembler.store(OperandSize::Quad, field::<Cpu>(LOCK + offset_of!(LoadLock, address)), RCX);
        self.assembler.store(OperandSize::Quad, field::<Cpu>(LOCK + offset_of!(LoadLock, value)), RAX);
        self.write(step.c, RAX);
        true
    }

    /// Only with the value in a register of the host: there is no other one left.
    fn store_conditional(
        &mut self,
        step: &DecodedInstruction,
        access: GuestAccess,
        size: OperandSize,
        at: usize,
    ) -> bool {
        if step.b == 31 || self.held(step.a).is_none() {
            return false;
        }
        let value = self.read(size, step.a, RAX);
        let operand = self.aligned_operand(access, size, at);
        let lock = field::<Cpu>(LOCK + offset_of!(LoadLock, address));
        let failed = self.assembler.label();
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RCX, lock);
        self.assembler.jump_if(Condition::NotEqual, failed);
        self.assembler.load(OperandSize::Quad, RAX, field::<Cpu>(LOCK + offset_of!(LoadLock, value)));
        self.may_fault(self.index, at, self.unextended);
        self.assembler.compare_and_exchange(size, operand, value);
        self.assembler.bind(failed);
        self.assembler.store_constant(lock, LoadLock::NONE.address as i32);
        self.write_condition(step.c, Condition::Equal);
        true
    }
}
