//! Loads and stores.

use isa::Op;

use super::*;
use crate::alpha::registers::field;
use alpha::cpu::Lock;

/// Where the Cpu has the last load-locked.
const LOCK: usize = offset_of!(Cpu, lock);

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(crate) fn access(&mut self, step: &DecodedInstruction, at: usize) -> bool {
        match step.op {
            Op::LdlL => return self.load_locked(step, Size::Long, at),
            Op::LdqL => return self.load_locked(step, Size::Quad, at),
            Op::StlC => return self.store_conditional(step, Size::Long, at),
            Op::StqC => return self.store_conditional(step, Size::Quad, at),
            _ => {}
        }
        let size = match step.op {
            Op::Ldbu | Op::Stb => Size::Byte,
            Op::Ldwu | Op::Stw => Size::Word,
            Op::Ldl | Op::Stl | Op::Lds => Size::Long,
            Op::Ldq | Op::Stq | Op::LdqU | Op::StqU | Op::Ldt | Op::Stt => Size::Quad,
            _ => return false,
        };
        if !bounds_check_elimination::is_checked(step) {
            return false;
        }
        let place = self.place(step, at);
        match step.op {
            Op::Stb | Op::Stw | Op::Stl | Op::Stq | Op::StqU => {
                let value = self.read(size, step.a, RCX);
                self.may_fault(self.index, at, self.narrow);
                self.assembler.store(size, place, value);
            }
            Op::Stt => {
                self.read_float(step.a, RCX);
                self.may_fault(self.index, at, self.narrow);
                self.assembler.store(size, place, RCX);
            }
            Op::Lds => self.load_single(step, at, place),
            Op::Ldt => {
                self.may_fault(self.index, at, self.narrow);
                self.assembler.load(size, RAX, place);
                self.write_float(step.c, RAX);
            }
            _ => {
                let to = self.target(step.c);
                self.may_fault(self.index, at, self.narrow);
                if size == Size::Long {
                    self.assembler.load_sign_extended(size, to, place);
                } else {
                    self.assembler.load_zero_extended(size, to, place);
                }
                self.write(step.c, to);
            }
        }
        true
    }

    fn load_locked(&mut self, step: &DecodedInstruction, size: Size, at: usize) -> bool {
        if step.b == 31 {
            return false;
        }
        let place = self.locked_place(step, size, at);
        self.may_fault(self.index, at, self.narrow);
        self.assembler.load_sign_extended(size, RAX, place);
        self.assembler.store(Size::Quad, field(LOCK + offset_of!(Lock, address)), RCX);
        self.assembler.store(Size::Quad, field(LOCK + offset_of!(Lock, value)), RAX);
        self.write(step.c, RAX);
        true
    }

    /// Only with the value in a register of the host: there is no other one left.
    fn store_conditional(&mut self, step: &DecodedInstruction, size: Size, at: usize) -> bool {
        if step.b == 31 || self.held(step.a).is_none() {
            return false;
        }
        let value = self.read(size, step.a, RAX);
        let place = self.locked_place(step, size, at);
        let lock = field(LOCK + offset_of!(Lock, address));
        let failed = self.assembler.label();
        self.assembler.alu(Alu::Cmp, Size::Quad, RCX, lock);
        self.assembler.jump_if(Condition::NotEqual, failed);
        self.assembler.load(Size::Quad, RAX, field(LOCK + offset_of!(Lock, value)));
        self.may_fault(self.index, at, self.narrow);
        self.assembler.compare_and_exchange(size, place, value);
        self.assembler.place(failed);
        self.assembler.store_constant(lock, Lock::NONE.address as i32);
        self.write_condition(step.c, Condition::Equal);
        true
    }

    /// The address of a locked access in rcx. One that is not aligned is the interpreter's.
    fn locked_place(&mut self, step: &DecodedInstruction, size: Size, at: usize) -> Place {
        let place = self.place(step, at);
        let fault = self.fault(at);
        self.assembler.address(Size::Quad, RCX, place);
        self.assembler.test_bits(RCX, if size == Size::Quad { 7 } else { 3 });
        self.assembler.jump_if(Condition::NotEqual, fault);
        Place { base: RCX, displacement: 0 }
    }

    /// Where a memory operand is, which is known to lie where only the guest's memory is: an access to
    /// another address is left to the interpreter. May take rax and rcx.
    fn place(&mut self, step: &DecodedInstruction, at: usize) -> Place {
        let base = self.read(Size::Quad, step.b, RAX);
        if self.known & 1 << step.b == 0 {
            // The displacement reaches at most 32 KB further, where nothing is ever mapped.
            self.may_fault(self.index, at, self.narrow);
            self.assembler.alu(Alu::Cmp, Size::Quad, base, address_limit());
            self.assembler.jump_into(Condition::AboveOrEqual, 1);
            self.known |= 1 << step.b;
        }
        let mut place = Place { base, displacement: step.immediate as i32 };
        if step.op.is_rounded() {
            self.assembler.address(Size::Quad, RAX, place);
            self.assembler.alu_constant(Alu::And, Size::Quad, RAX, !7);
            place = Place { base: RAX, displacement: 0 };
        }
        self.note(place);
        place
    }
}
