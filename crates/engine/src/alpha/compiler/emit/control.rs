//! Transfers of control: within the region, to other code, and out to the interpreter.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{self, InstBuilder, InstructionData, MemFlagsData, Opcode, Value};
use cranelift_frontend::Switch;
use isa::{Flags, Op};

use super::Registers;
use super::{Cpu, Edge, Emitter, Entries, HostSide, TRAP, host_field, offset_of, state};
use crate::alpha::block::Block;
use crate::alpha::meaning::{Step, pal};

impl Emitter<'_> {
    /// The blocks by which every exit of the region goes.
    pub(super) fn shared_exits(&mut self) {
        let target = self.builder.append_block_param(self.elsewhere, I64);
        self.begin(self.elsewhere);
        self.builder.set_cold_block(self.elsewhere);
        self.check_stack(target);
        let code = self.look_up(target);
        let result = self.call_code(target, code);
        self.builder.ins().return_(&[result]);

        let next = self.builder.append_block_param(self.leave, I64);
        self.begin(self.leave);
        self.builder.set_cold_block(self.leave);
        self.settle_executed();
        self.builder.ins().return_(&[next]);
    }

    /// Goes to `leave` with `next` if `condition` is not zero. The registers must have been flushed.
    fn leave_with(&mut self, condition: Value, next: Value) {
        let on = self.builder.create_block();
        self.builder.ins().brif(condition, self.leave, &[next.into()], on, &[]);
        self.continue_in(on);
    }

    /// Leaves to `address` if `condition` is not zero.
    pub(super) fn leave_if(&mut self, condition: Value, address: u64) {
        let address = self.constant(address);
        self.leave_with(condition, address);
    }

    /// Leaves for `next` if the host's stack has no room for more calls.
    pub(super) fn check_stack(&mut self, next: Value) {
        let limit = self.builder.ins().load(I64, state(), self.cpu, host_field!(stack_limit));
        let stack_pointer = self.builder.ins().get_stack_pointer(I64);
        let full = self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, stack_pointer, limit);
        self.leave_with(full, next);
    }

    /// Whether control comes to a node from here only, and directly: it goes on where this one ends.
    fn is_only_way_to(&self, index: usize) -> bool {
        let direct = self.region.edges[self.index].contains(&Edge { to: index, through_call: false });
        direct && index > self.index && self.before[index] == [self.index]
    }

    /// Ends the block: control goes to a fixed address.
    pub(super) fn go(&mut self, address: u64) {
        match self.region.node(self.region.nodes[self.index].frame, address) {
            Some(index) => self.go_to(index),
            None => {
                self.flush();
                let target = self.constant(address);
                self.builder.ins().jump(self.elsewhere, &[target.into()]);
            }
        }
    }

    /// Ends the block: control goes to a node.
    fn go_to(&mut self, index: usize) {
        if !self.is_only_way_to(index) {
            self.flush();
        }
        let block = self.carry_to(index);
        self.builder.ins().jump(block, &[]);
    }

    /// The block of a node to which control goes now, with what is dirty if this is the only way there.
    fn carry_to(&mut self, index: usize) -> ir::Block {
        // With all in the Cpu the interpreter can take over there, and must not go back further.
        if self.is_only_way_to(index) && self.dirty != Registers::default() {
            let site = self.sites.last().expect("each block begins with one").clone();
            self.carried[index] = Some((self.dirty, site));
        }
        self.blocks[index]
    }

    /// The code for a fixed address.
    fn code_at(&mut self, address: u64) -> Value {
        let cell = self.entries.cell(address) as u64;
        let cell = self.constant(cell);
        self.builder.ins().load(I64, state(), cell, 0)
    }

    /// The code for an address that is not known before.
    fn look_up(&mut self, target: Value) -> Value {
        let bits = self.builder.ins().band_imm_u(target, Entries::MASK as i64);
        let offset = self.builder.ins().ishl_imm_u(bits, i64::from(Entries::SHIFT));
        let table = self.constant(self.entries.table() as u64);
        let entry = self.builder.ins().iadd(table, offset);
        let address = self.builder.ins().load(I64, state(), entry, 0);
        let code = self.builder.ins().load(I64, state(), entry, 8);
        let same = self.builder.ins().icmp(IntCC::Equal, address, target);
        let missing = self.constant(self.entries.missing() as u64);
        self.builder.ins().select(same, code, missing)
    }

    /// Calls `code` and gives what it returns.
    fn call_code(&mut self, target: Value, code: Value) -> Value {
        self.settle_executed();
        let done = self.builder.ins().call_indirect(self.region_signature, code, &[target]);
        self.builder.inst_results(done)[0]
    }

    /// A guest call: goes on at `back` if the callee returns there.
    fn call(&mut self, target: Value, code: Value, back: u64) {
        let next = self.call_code(target, code);
        self.continue_at(next, back);
    }

    /// Goes on at `back` if that is `next`, and else leaves.
    fn continue_at(&mut self, next: Value, back: u64) {
        let other = self.builder.ins().icmp_imm_s(IntCC::NotEqual, next, back as i64);
        self.leave_with(other, next);
        // Here control does come through a call: nothing is carried on.
        match self.region.node(self.region.nodes[self.index].frame, back) {
            Some(index) => {
                self.reload(self.live[index]);
                let block = self.blocks[index];
                self.builder.ins().jump(block, &[]);
            }
            None => self.go(back),
        }
    }

    /// A guest call to where a register points: most go where they went before.
    fn call_register(&mut self, target: Value, known: &[u64], back: u64) {
        self.flush();
        let &[known] = known else {
            let code = self.look_up(target);
            return self.call(target, code, back);
        };
        let (same, other, join) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let code = self.builder.append_block_param(join, I64);
        let expected = self.builder.ins().icmp_imm_s(IntCC::Equal, target, known as i64);
        self.builder.ins().brif(expected, same, &[], other, &[]);
        self.continue_in(same);
        let found = self.code_at(known);
        self.builder.ins().jump(join, &[found.into()]);
        self.continue_in(other);
        self.builder.set_cold_block(other);
        let found = self.look_up(target);
        self.builder.ins().jump(join, &[found.into()]);
        self.continue_in(join);
        self.call(target, code, back);
    }

    /// The first node of the function that is inlined here.
    fn inlined(&self) -> Option<usize> {
        let inner = self.region.nodes[self.index].inlined?;
        self.region.node(inner, self.region.frames[inner].entry)
    }

    /// A guest call to where a register points: to the inlined function, if it is that.
    fn call_inlined(&mut self, register: u8, target: Value, inner: usize, back: u64) {
        let known = self.region.frames[self.region.nodes[inner].frame].entry;
        let (same, other) = (self.builder.create_block(), self.builder.create_block());
        let exact = self.read(register);
        let expected = self.builder.ins().icmp_imm_s(IntCC::Equal, exact, known as i64);
        self.builder.ins().brif(expected, same, &[], other, &[]);
        let dirty = self.dirty;
        self.continue_in(other);
        self.builder.set_cold_block(other);
        self.flush();
        let code = self.look_up(target);
        self.call(target, code, back);
        self.dirty = dirty;
        self.continue_in(same);
        self.flush();
        self.poll(known);
        // What is computed from the register is known now, too.
        let known = self.constant(known);
        self.builder.def_var(self.variable((false, register)), known);
        self.go_to(inner);
    }

    /// The end of a function: of an inlined one, goes on behind the call.
    fn ret(&mut self, base: Value, target: Value) {
        let frame = self.region.frames[self.region.nodes[self.index].frame];
        let behind = frame.caller.and_then(|(caller, back)| Some((self.region.node(caller, back)?, back)));
        let Some((index, back)) = behind else {
            self.flush();
            self.settle_executed();
            self.builder.ins().return_(&[target]);
            return;
        };
        if self.is_constant(base, back) {
            return self.go_to(index);
        }
        let (here, elsewhere) = (self.builder.create_block(), self.builder.create_block());
        let expected = self.builder.ins().icmp_imm_s(IntCC::Equal, target, back as i64);
        self.builder.ins().brif(expected, here, &[], elsewhere, &[]);
        let dirty = self.dirty;
        self.continue_in(elsewhere);
        self.builder.set_cold_block(elsewhere);
        self.flush();
        self.builder.ins().jump(self.leave, &[target.into()]);
        self.dirty = dirty;
        self.continue_in(here);
        self.go_to(index);
    }

    fn is_constant(&self, value: Value, expected: u64) -> bool {
        let graph = &self.builder.func.dfg;
        let Some(instruction) = graph.value_def(graph.resolve_aliases(value)).inst() else { return false };
        matches!(
            graph.insts[instruction],
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } if imm.bits() as u64 == expected
        )
    }

    /// Leaves for `next` if something waits for the thread. Before transfers backwards, so that loops end;
    /// at the beginning of functions, for others may have written their instructions anew.
    pub(super) fn poll(&mut self, next: u64) {
        let flag = self.builder.ins().load(I64, state(), self.cpu, host_field!(pending));
        let pending = self.builder.ins().load(I8, MemFlagsData::new().with_notrap(), flag, 0);
        self.leave_if(pending, next);
    }

    /// A transfer of control, which ends the block; false if the instruction is none.
    pub(super) fn transfer(&mut self, step: &Step, at: usize, here: u64, block: &Block) -> bool {
        let (back, target) = (here + 4, step.immediate as u64);
        match step.op {
            Op::Br | Op::Bsr => {
                let link = self.constant(back);
                self.write(step.c, link);
                if step.op == Op::Br {
                    if target <= here {
                        self.flush();
                        self.poll(target);
                    }
                    self.go(target);
                } else if let Some(inner) = self.inlined() {
                    self.go_to(inner);
                } else {
                    self.flush();
                    let code = self.code_at(target);
                    let target = self.constant(target);
                    self.call(target, code, back);
                }
            }
            Op::Jmp | Op::Jsr | Op::Ret | Op::JsrCoroutine => {
                let base = self.read(step.b);
                let target = self.builder.ins().band_imm_s(base, !3);
                let link = self.constant(back);
                self.write(step.c, link);
                match (step.op, self.inlined()) {
                    (Op::Jsr, Some(inner)) => self.call_inlined(step.b, target, inner, back),
                    (Op::Jsr, None) => self.call_register(target, &block.jumps, back),
                    (Op::Ret, _) => self.ret(base, target),
                    _ => self.jump(target, &block.jumps),
                }
            }
            Op::CallPal if !matches!(step.immediate, pal::RDUNIQ | pal::WRUNIQ) => {
                self.flush();
                if step.immediate == pal::CALLSYS {
                    self.system_call(here, back);
                } else {
                    self.begin_segment(at);
                    self.builder.ins().trap(TRAP);
                }
            }
            op if op.is(Flags::CONDITIONAL) => self.branch(step, here, target),
            _ => return false,
        }
        true
    }

    /// Makes the system call, and all that may come of it.
    fn system_call(&mut self, here: u64, back: u64) {
        self.settle_executed();
        let from = self.constant(here);
        // The lowest bit says that it is one.
        let until = self.constant(back | 1);
        let go_on = self.builder.ins().load(I64, state(), self.cpu, host_field!(go_on));
        let arguments = [self.cpu, from, until];
        let done = self.builder.ins().call_indirect(self.go_on_signature, go_on, &arguments);
        let next = self.builder.inst_results(done)[0];
        self.continue_at(next, back);
    }

    fn branch(&mut self, step: &Step, here: u64, target: u64) {
        let condition = self.condition(step);
        let frame = self.region.nodes[self.index].frame;
        // Where nothing is to do on the way, there is no block of its own for it.
        let mut direct = |address: u64| {
            let index = self.region.node(frame, address)?;
            let nothing = self.dirty == Registers::default() || self.is_only_way_to(index);
            (address > here && nothing).then(|| self.carry_to(index))
        };
        let (taken, not) = (direct(target), direct(here + 4));
        let (taken_block, not_block) = (
            taken.unwrap_or_else(|| self.builder.create_block()),
            not.unwrap_or_else(|| self.builder.create_block()),
        );
        self.builder.ins().brif(condition, taken_block, &[], not_block, &[]);
        let dirty = self.dirty;
        if taken.is_none() {
            self.continue_in(taken_block);
            if target <= here {
                self.flush();
                self.poll(target);
            }
            self.go(target);
        }
        if not.is_none() {
            self.dirty = dirty;
            self.continue_in(not_block);
            self.go(here + 4);
        }
    }

    /// A jump within the function, by a table: to the places it went before without leaving.
    fn jump(&mut self, target: Value, known: &[u64]) {
        self.flush();
        let frame = self.region.nodes[self.index].frame;
        let other = self.builder.create_block();
        let mut switch = Switch::new();
        for address in known {
            if let Some(index) = self.region.node(frame, *address) {
                switch.set_entry(u128::from(*address), self.blocks[index]);
            }
        }
        switch.emit(&mut self.builder, target, other);
        self.continue_in(other);
        self.builder.ins().jump(self.elsewhere, &[target.into()]);
    }
}
