//! Loads and stores.

use isa::Op;

use super::*;

impl Emitter<'_> {
    /// An access to memory; false if the instruction is none of the common ones.
    pub(super) fn access(&mut self, step: &Step, at: usize) -> bool {
        let size = match step.op {
            Op::Ldbu | Op::Stb => Size::Byte,
            Op::Ldwu | Op::Stw => Size::Word,
            Op::Ldl | Op::Stl => Size::Long,
            Op::Ldq | Op::Stq | Op::LdqU | Op::StqU | Op::Ldt | Op::Stt => Size::Quad,
            _ => return false,
        };
        if !known::is_checked(step) {
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

    /// Where a memory operand is, which is known to lie where only the guest's memory is: an access to
    /// another address is left to the interpreter. May take rax and rcx.
    fn place(&mut self, step: &Step, at: usize) -> Place {
        let base = self.read(Size::Quad, step.b, RAX);
        if self.known & 1 << step.b == 0 {
            // The displacement reaches at most 32 KB further, where nothing is ever mapped.
            self.may_fault(self.index, at, self.narrow);
            self.assembler.alu(Alu::Cmp, Size::Quad, base, address_limit());
            self.assembler.jump_into(Condition::AboveOrEqual, 1);
            self.known |= 1 << step.b;
        }
        let mut place = Place { base, displacement: step.immediate as i32 };
        if step.is_rounded() {
            self.assembler.address(Size::Quad, RAX, place);
            self.assembler.alu_constant(Alu::And, Size::Quad, RAX, !7);
            place = Place { base: RAX, displacement: 0 };
        }
        self.note(place);
        place
    }
}
