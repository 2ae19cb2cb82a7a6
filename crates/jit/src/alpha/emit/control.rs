//! Transfers of control: within the region, to other code, and out to the interpreter.

use isa::{Flags, Format, Op};

use super::*;
use crate::alpha::registers::field;
use crate::alpha::stubs::{EXPECTED, find_entry};
use crate::host::arena::CELL_ADDRESS;
use alpha::semantics::pal;

impl Emitter<'_> {
    /// A transfer of control, which ends the block; false if the instruction is none.
    pub(crate) fn transfer(&mut self, step: &DecodedInstruction, at: usize, block: &Block) -> bool {
        let (back, target) = (block.end(), step.immediate as u64);
        if step.op.is(Flags::CONDITIONAL) {
            self.end_record(block);
            let condition = self.condition(step);
            self.branch(condition, target, back);
            return true;
        }
        match step.op.format() {
            Format::Branch | Format::MemoryJump => self.end_record(block),
            Format::Pal => {}
            _ => return false,
        }
        self.widen_all();
        match step.op {
            Op::Br => {
                self.write_constant(step.c, back);
                self.go(target);
            }
            Op::Bsr => {
                let leave = self.leave_for(target);
                self.link(step.c, back, leave);
                if let Some(cell) = self.cell(target) {
                    self.assembler.call_through(cell);
                }
                self.behind_call(back);
            }
            Op::Jsr => self.call_register(step, block, back),
            Op::Ret => {
                self.read_into(Size::Quad, step.b, RAX);
                self.write_constant(step.c, back);
                self.ret();
            }
            Op::Jmp | Op::JsrCoroutine => {
                self.jump_target(step);
                self.write_constant(step.c, back);
                self.jump();
            }
            Op::CallPal => return self.call_pal(step, at, block),
            _ => return false,
        }
        true
    }

    fn call_pal(&mut self, step: &DecodedInstruction, at: usize, block: &Block) -> bool {
        match step.immediate {
            pal::RDUNIQ | pal::WRUNIQ => return false,
            pal::CALLSYS => {
                self.end_record(block);
                self.assembler.constant(RAX, block.end() - 4);
                self.assembler.call_to(self.stubs.system_call);
                self.known = 0;
                self.go(block.end());
            }
            _ => {
                let fault = self.fault(at);
                self.assembler.jump(fault);
            }
        }
        true
    }

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
    fn place_of(&mut self, address: u64) -> Label {
        match self.region.at(address) {
            Some(next) => self.labels[next],
            None => {
                let label = self.assembler.label();
                self.behind.push(Behind::Elsewhere { label, address, lost: self.lost_behind() });
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

    fn cell(&mut self, address: u64) -> Option<Operand> {
        let cell = self.entries.cell(address);
        self.is_full |= cell.is_none();
        cell.map(Operand::Near)
    }

    /// A conditional branch: the flags are set.
    fn branch(&mut self, condition: Condition, target: u64, next: u64) {
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

    /// The address in a jump's register, without the bits that do not count, in rax.
    fn jump_target(&mut self, step: &DecodedInstruction) {
        self.read_into(Size::Quad, step.b, RAX);
        self.assembler.alu_constant(Alu::And, Size::Quad, RAX, !3);
    }

    /// A jump to the address in rax.
    fn jump(&mut self) {
        let leave = self.stub(self.stubs.leave);
        self.poll(leave);
        let absent = self.stub(self.stubs.missing);
        find_entry(&mut self.assembler, absent);
    }

    /// Notes where a call returns to: in the guest's register, and on the host's stack if there is room.
    fn link(&mut self, register: u8, back: u64, leave: Label) {
        self.assembler.constant(RCX, back);
        self.write(register, RCX);
        self.poll(leave);
        self.assembler.push(RCX);
    }

    fn behind_call(&mut self, back: u64) {
        self.assembler.pop(RCX);
        self.known = 0;
        self.go(back);
    }

    /// Calls what a register points to.
    fn call_register(&mut self, step: &DecodedInstruction, block: &Block, back: u64) {
        self.read_into(Size::Quad, step.b, RAX);
        let leave = self.stub(self.stubs.leave);
        self.link(step.c, back, leave);
        // Where it went before it may go again: at once.
        let known = block.jumps.first().and_then(|&first| self.entries.cell(first));
        match known {
            Some(cell) => {
                let (label, returned) = (self.assembler.label(), self.assembler.label());
                self.behind.push(Behind::Call { label, back: returned });
                self.assembler.alu(Alu::Cmp, Size::Quad, RAX, Operand::Near(cell + CELL_ADDRESS));
                self.assembler.jump_if(Condition::NotEqual, label);
                self.assembler.call_through(Operand::Near(cell));
                self.assembler.place(returned);
            }
            None => self.assembler.call_to(self.stubs.find),
        }
        self.behind_call(back);
    }

    /// Returns to the address in rax: to whom called, if it called from before there.
    fn ret(&mut self) {
        let leave = self.stub(self.stubs.leave);
        self.assembler.alu(Alu::Cmp, Size::Quad, RAX, EXPECTED);
        self.assembler.jump_if(Condition::NotEqual, leave);
        self.assembler.ret();
    }

    /// A comparison and the branch behind it that ends the block, in one; false if there is none here.
    pub(crate) fn compare_and_branch(&mut self, block: &Block, at: usize) -> bool {
        let [step, branch] = &block.steps[at..] else { return false };
        // Lookups in the hit filter come between the two, and change flags.
        if self.lookup.is_some() {
            return false;
        }
        if branch.a != step.c || !matches!(branch.op, Op::Beq | Op::Bne) || step.c >= 31 {
            return false;
        }
        let Some(mut condition) = self.compare(step) else { return false };
        self.end_record(block);
        self.write_condition(step.c, condition);
        if branch.op == Op::Beq {
            condition = condition.opposite();
        }
        self.branch(condition, branch.immediate as u64, block.end());
        true
    }

    /// Sets the flags for a conditional branch; when it is taken.
    fn condition(&mut self, step: &DecodedInstruction) -> Condition {
        if step.op.is_float() {
            return self.float_condition(step);
        }
        match step.op {
            Op::Blbc | Op::Blbs => {
                self.test_low_bit(step.a);
                if step.op == Op::Blbs { Condition::NotEqual } else { Condition::Equal }
            }
            _ => {
                self.test(step.a);
                match step.op {
                    Op::Beq => Condition::Equal,
                    Op::Bne => Condition::NotEqual,
                    Op::Blt => Condition::Less,
                    Op::Ble => Condition::LessOrEqual,
                    Op::Bgt => Condition::Greater,
                    _ => Condition::GreaterOrEqual,
                }
            }
        }
    }

    /// Minus zero counts as zero; all else is ordered as its sign says.
    pub(crate) fn float_condition(&mut self, step: &DecodedInstruction) -> Condition {
        const MINUS_ZERO: u64 = 1 << 63;
        self.read_float(step.a, RAX);
        let (bound, condition) = match step.op {
            Op::Fbeq | Op::Fbne => {
                self.assembler.shift(Shift::Left, Size::Quad, RAX, 1);
                self.assembler.test(Size::Quad, RAX);
                return if step.op == Op::Fbeq { Condition::Equal } else { Condition::NotEqual };
            }
            Op::Fbgt => {
                self.assembler.test(Size::Quad, RAX);
                return Condition::Greater;
            }
            Op::Fblt => (MINUS_ZERO, Condition::Above),
            Op::Fbge => (MINUS_ZERO, Condition::BelowOrEqual),
            // Less by one, zero is the greatest.
            _ => {
                self.assembler.address(Size::Quad, RAX, Place { base: RAX, displacement: -1 });
                (MINUS_ZERO - 1, Condition::AboveOrEqual)
            }
        };
        self.assembler.constant(RCX, bound);
        self.assembler.alu(Alu::Cmp, Size::Quad, RAX, RCX);
        condition
    }

    /// Compares an integer register with zero.
    pub(crate) fn test(&mut self, register: u8) {
        if self.flags == (register, self.assembler.position()) {
            return;
        }
        match (register, self.held(register)) {
            (31, _) => {
                self.assembler.constant(RCX, 0);
                self.assembler.test(Size::Quad, RCX);
            }
            (_, Some(host)) => {
                let size = if self.is_narrow(register) { Size::Long } else { Size::Quad };
                self.assembler.test(size, host);
            }
            _ => self.assembler.alu_constant(Alu::Cmp, Size::Quad, integer(register), 0),
        }
    }

    /// Tests an integer register's lowest bit.
    pub(crate) fn test_low_bit(&mut self, register: u8) {
        if register == 31 {
            self.test(31);
        } else {
            let operand = self.operand(Size::Byte, register);
            self.assembler.test_bits(operand, 1);
        }
    }

    /// The place of the thread's unique value.
    pub(crate) fn unique() -> Place {
        field(offset_of!(Cpu, unique))
    }
}
