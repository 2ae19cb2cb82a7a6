//! Transfers of control: within the region, to other code, and out to the interpreter.

use super::*;
use crate::host::arena::CELL_ADDRESS;
use crate::registers::integer;
use crate::stubs::{EXPECTED, find_entry};

impl<G: Emit> Emitter<'_, G> {
    /// Goes on at an address.
    pub(crate) fn go(&mut self, address: u64) {
        match self.region.at(address) {
            Some(next) if next == self.index + 1 => {}
            Some(next) => self.assembler.jump(self.labels[next]),
            None => {
                self.increment(self.lost_behind());
                self.elsewhere(address);
            }
        }
    }

    /// Where to jump to go on at an address.
    pub(crate) fn place_of(&mut self, address: u64) -> Label {
        match self.region.at(address) {
            Some(next) => self.labels[next],
            None => {
                let label = self.assembler.label();
                self.behind.push(OutOfLine::Elsewhere { label, address, lost: self.lost_behind() });
                label
            }
        }
    }

    /// Goes on in other code.
    pub(crate) fn elsewhere(&mut self, address: u64) {
        let leave = self.leave_for(address);
        self.poll(leave);
        if let Some(cell) = self.cell(address) {
            self.assembler.jump_through(cell);
        }
    }

    pub(crate) fn cell(&mut self, address: u64) -> Option<Operand> {
        let cell = self.entries.cell(address);
        self.is_full |= cell.is_none();
        cell.map(Operand::Near)
    }

    /// A conditional branch: the flags are set.
    pub(crate) fn branch(&mut self, condition: Condition, target: u64, next: u64) {
        self.widen_all();
        if self.region.at(target) == Some(self.index + 1) {
            let there = self.place_of(next);
            self.assembler.jump_if(condition.opposite(), there);
        } else {
            let there = self.place_of(target);
            self.assembler.jump_if(condition, there);
            self.go(next);
        }
    }

    /// Jumps to where a register points; another one gets the address behind the jump.
    pub(crate) fn jump_register(&mut self, pointer: u8, register: u8, back: u64) {
        self.read_into(Size::Quad, pointer, RAX);
        self.assembler.alu_constant(Alu::And, Size::Quad, RAX, G::ADDRESS_MASK);
        self.write_constant(register, back);
        let leave = self.stub(self.stubs.leave);
        self.poll(leave);
        let absent = self.stub(self.stubs.missing);
        find_entry::<G>(&mut self.assembler, absent);
    }

    /// Notes where a call returns to: in the guest's register, and on the host's stack if there is room.
    pub(crate) fn link(&mut self, register: u8, back: u64, leave: Label) {
        self.assembler.constant(RCX, back);
        self.write(register, RCX);
        self.poll(leave);
        self.assembler.push(RCX);
    }

    pub(crate) fn behind_call(&mut self, back: u64) {
        self.assembler.pop(RCX);
        self.known = 0;
        self.go(back);
    }

    /// Calls an address; a register gets where it returns to.
    pub(crate) fn call(&mut self, target: u64, register: u8, back: u64) {
        let leave = self.leave_for(target);
        self.link(register, back, leave);
        if let Some(cell) = self.cell(target) {
            self.assembler.call_through(cell);
        }
        self.behind_call(back);
    }

    /// Calls what a register points to; another one gets where that returns to.
    pub(crate) fn call_register(&mut self, pointer: u8, register: u8, block: &Block<G>) {
        let back = block.end();
        self.read_into(Size::Quad, pointer, RAX);
        let leave = self.stub(self.stubs.leave);
        self.link(register, back, leave);
        // Where it went before it may go again: at once.
        let known = block.jumps.first().and_then(|&first| self.entries.cell(first));
        match known {
            Some(cell) => {
                let (label, returned) = (self.assembler.label(), self.assembler.label());
                self.behind.push(OutOfLine::Call { label, back: returned });
                self.assembler.alu(Alu::Cmp, Size::Quad, RAX, Operand::Near(cell + CELL_ADDRESS));
                self.assembler.jump_if(Condition::NotEqual, label);
                self.assembler.call_through(Operand::Near(cell));
                self.assembler.place(returned);
            }
            None => self.assembler.call_to(self.stubs.find),
        }
        self.behind_call(back);
    }

    /// Returns to where a register points: to whom called, if it called from before there. Another register gets the
    /// address behind the return.
    pub(crate) fn return_to(&mut self, pointer: u8, register: u8, back: u64) {
        self.read_into(Size::Quad, pointer, RAX);
        self.write_constant(register, back);
        let leave = self.stub(self.stubs.leave);
        self.assembler.alu(Alu::Cmp, Size::Quad, RAX, EXPECTED);
        self.assembler.jump_if(Condition::NotEqual, leave);
        self.assembler.ret();
    }

    /// Makes the system call that ends the block.
    pub(crate) fn system_call(&mut self, block: &Block<G>) {
        self.end_record(block);
        self.assembler.constant(RAX, block.address_of(block.steps.len() - 1));
        self.assembler.call_to(self.stubs.system_call);
        self.known = 0;
        self.go(block.end());
    }

    /// Compares an integer register with zero.
    pub(crate) fn test(&mut self, register: u8) {
        if self.flags == (register, self.assembler.position()) {
            return;
        }
        match (register, self.held(register)) {
            (zero, _) if zero == G::ZERO => {
                self.assembler.constant(RCX, 0);
                self.assembler.test(Size::Quad, RCX);
            }
            (_, Some(host)) => {
                let size = if self.is_narrow(register) { Size::Long } else { Size::Quad };
                self.assembler.test(size, host);
            }
            _ => self.assembler.alu_constant(Alu::Cmp, Size::Quad, integer::<G>(register), 0),
        }
    }

    /// Tests an integer register's lowest bit.
    pub(crate) fn test_low_bit(&mut self, register: u8) {
        if register == G::ZERO {
            self.test(G::ZERO);
        } else {
            let operand = self.operand(Size::Byte, register);
            self.assembler.test_bits(operand, 1);
        }
    }
}
