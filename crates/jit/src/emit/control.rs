//! Transfers of control: within the region, to other code, and out to the interpreter.

use super::*;
use crate::host::arena::SLOT_GUEST_ADDRESS;
use crate::registers::integer;
use crate::stubs::{EXPECTED, jump_by_table};

/// The target of an indirect transfer: the contents of an integer register plus a displacement.
#[derive(Clone, Copy)]
pub struct CodePointer {
    pub(crate) register: u8,
    pub(crate) displacement: i32,
}

impl From<u8> for CodePointer {
    fn from(register: u8) -> CodePointer {
        CodePointer { register, displacement: 0 }
    }
}

impl<G: Emit> Emitter<'_, G> {
    /// Continues at a guest address: in this region by fall-through or a jump, otherwise in another one.
    pub(crate) fn continue_at(&mut self, address: u64) {
        match self.region.at(address) {
            Some(next) if next == self.index + 1 => {}
            Some(next) => self.assembler.jump(self.labels[next]),
            None => {
                self.increment(self.exit_after());
                self.jump_to_other_region(address);
            }
        }
    }

    /// The label to jump to in order to continue at a guest address.
    pub(crate) fn label_of(&mut self, address: u64) -> Label {
        match self.region.at(address) {
            Some(next) => self.labels[next],
            None => {
                let label = self.assembler.label();
                self.out_of_line.push(OutOfLine::OtherRegion {
                    label,
                    address,
                    exit_counter: self.exit_after(),
                });
                label
            }
        }
    }

    /// Jumps to the region with the code for a guest address.
    pub(crate) fn jump_to_other_region(&mut self, address: u64) {
        let leave = self.leave_for(address);
        self.poll(leave);
        if let Some(slot) = self.link_slot(address) {
            self.assembler.jump_through(slot);
        }
    }

    /// The link slot of a guest address.
    pub(crate) fn link_slot(&mut self, address: u64) -> Option<Operand> {
        let slot = self.code_table.link_slot(address);
        self.is_full |= slot.is_none();
        slot.map(Operand::Near)
    }

    /// A conditional branch: the flags are set.
    pub(crate) fn branch(&mut self, condition: Condition, target: u64, next: u64) {
        self.complete_sign_extensions();
        if self.region.at(target) == Some(self.index + 1) {
            let there = self.label_of(next);
            self.assembler.jump_if(condition.opposite(), there);
        } else {
            let there = self.label_of(target);
            self.assembler.jump_if(condition, there);
            self.continue_at(next);
        }
    }

    /// Reads the target of an indirect transfer into rax.
    fn read_pointer(&mut self, pointer: CodePointer) {
        self.read_into(OperandSize::Quad, pointer.register, RAX);
        if pointer.displacement != 0 {
            self.assembler.alu_constant(Alu::Add, OperandSize::Quad, RAX, pointer.displacement);
        }
    }

    /// Jumps to the guest address that a register has; another register gets the address behind the jump.
    pub(crate) fn jump_register(&mut self, pointer: CodePointer, register: u8, back: u64) {
        self.read_pointer(pointer);
        self.assembler.alu_constant(Alu::And, OperandSize::Quad, RAX, G::ADDRESS_MASK);
        self.write_constant(register, back);
        let leave = self.stub(self.stubs.leave);
        self.poll(leave);
        let unresolved = self.stub(self.stubs.unresolved);
        jump_by_table::<G>(&mut self.assembler, unresolved);
    }

    /// Writes a call's return address to the guest's register and onto the host's stack. Leaves if that is full.
    pub(crate) fn push_return_address(&mut self, register: u8, back: u64, leave: Label) {
        self.assembler.constant(RCX, back);
        self.write(register, RCX);
        self.poll(leave);
        self.assembler.push(RCX);
    }

    /// Continues behind a call, where it returns to.
    pub(crate) fn after_call(&mut self, back: u64) {
        self.assembler.pop(RCX);
        self.checked_bases = 0;
        self.continue_at(back);
    }

    /// Calls a guest address; a register gets the return address.
    pub(crate) fn call(&mut self, target: u64, register: u8, back: u64) {
        let leave = self.leave_for(target);
        self.push_return_address(register, back, leave);
        if let Some(slot) = self.link_slot(target) {
            self.assembler.call_through(slot);
        }
        self.after_call(back);
    }

    /// Calls the guest address that a register has; another register gets the return address.
    pub(crate) fn call_register(&mut self, pointer: CodePointer, register: u8, block: &DecodedBlock<G>) {
        let back = block.end();
        self.read_pointer(pointer);
        let leave = self.stub(self.stubs.leave);
        self.push_return_address(register, back, leave);
        // Predicts the first target so far, whose link slot is compared.
        let slot = block.jump_targets.first().and_then(|&first| self.code_table.link_slot(first));
        match slot {
            Some(slot) => {
                let (label, returned) = (self.assembler.label(), self.assembler.label());
                self.out_of_line.push(OutOfLine::Call { label, back: returned });
                self.assembler.alu(
                    Alu::Cmp,
                    OperandSize::Quad,
                    RAX,
                    Operand::Near(slot + SLOT_GUEST_ADDRESS),
                );
                self.assembler.jump_if(Condition::NotEqual, label);
                self.assembler.call_through(Operand::Near(slot));
                self.assembler.bind(returned);
            }
            None => self.assembler.call_to(self.stubs.jump_indirect),
        }
        self.after_call(back);
    }

    /// Returns to the address that a register has: by a host return if it is the expected return address on the host's stack,
    /// otherwise by leaving compiled code. Another register gets the address behind the return.
    pub(crate) fn return_to(&mut self, pointer: CodePointer, register: u8, back: u64) {
        self.read_pointer(pointer);
        self.write_constant(register, back);
        let leave = self.stub(self.stubs.leave);
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RAX, EXPECTED);
        self.assembler.jump_if(Condition::NotEqual, leave);
        self.assembler.ret();
    }

    /// Makes the system call that ends the block.
    pub(crate) fn system_call(&mut self, block: &DecodedBlock<G>) {
        self.end_record(block);
        self.assembler.constant(RAX, block.address_of(block.instructions.len() - 1));
        self.assembler.call_to(self.stubs.system_call);
        self.checked_bases = 0;
        self.continue_at(block.end());
    }

    /// Compares an integer register with zero.
    pub(crate) fn test(&mut self, register: u8) {
        if self.flags == (register, self.assembler.position()) {
            return;
        }
        match (register, self.held(register)) {
            (zero, _) if zero == G::ZERO => {
                self.assembler.constant(RCX, 0);
                self.assembler.test(OperandSize::Quad, RCX);
            }
            (_, Some(host)) => {
                let size = if self.is_longword(register) { OperandSize::Long } else { OperandSize::Quad };
                self.assembler.test(size, host);
            }
            _ => self.assembler.alu_constant(Alu::Cmp, OperandSize::Quad, integer::<G>(register), 0),
        }
    }

    /// Tests an integer register's lowest bit.
    pub(crate) fn test_low_bit(&mut self, register: u8) {
        if register == G::ZERO {
            self.test(G::ZERO);
        } else {
            let operand = self.operand(OperandSize::Byte, register);
            self.assembler.test_bits(operand, 1);
        }
    }
}
