//! Stubs: code that enters and leaves compiled code, written once for each compiler.
//!
//! While compiled code runs, the host's stack holds two words for each active guest call: the host's return address, and
//! above it the guest's, which a guest return compares with its target. The `enter` stub pushes [`UNWIND`] instead, which
//! is no guest address.

use events::HitFilter;
use guest::HostSide;

use crate::enter::UNWIND;
use crate::host::arena::CodeTable;
use crate::host::assembler::*;
use crate::host::code::{Label, MachineCode};
use crate::registers::{CPU, RegisterMap, TIME, beside_record, bias, field, host_field};
use crate::target::Target;

/// Where each begins, in bytes behind the first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StubOffsets {
    /// `extern "C" fn(cpu, code, where to note the stack pointer) -> next`: runs code until it leaves.
    pub(crate) enter: u64,
    /// Leaves compiled code to continue at the guest's address in rax (masked), and drops all frames of active calls.
    pub(crate) leave: u64,
    /// The same after a fault.
    pub(crate) leave_by_fault: u64,
    /// Jumped to when there is no code for the guest's address in rax: has the interpreter continue there until the active
    /// call returns, and returns from the call.
    pub(crate) unresolved: u64,
    /// Jumped to with the guest's address in rax (masked here): jumps to its code.
    pub(crate) jump_indirect: u64,
    /// Called with the guest's address of a system call in rax: makes it.
    pub(crate) system_call: u64,
    /// Called with the address of a decoded instruction in rax: has the interpreter execute it. Clears the zero flag if it
    /// did not complete.
    pub(crate) interpret_one: u64,
    /// Called where there is no room for another record: makes room.
    pub(crate) flush_records: u64,
    /// Called with an unfiltered access in rax: reports it.
    pub(crate) unfiltered: u64,
}

impl StubOffsets {
    /// The stubs' addresses, from where they were written.
    pub(crate) fn at(self, origin: u64, code: &MachineCode) -> StubOffsets {
        let address = |written: u64| origin + code.position(written as usize) as u64;
        StubOffsets {
            enter: address(self.enter),
            leave: address(self.leave),
            leave_by_fault: address(self.leave_by_fault),
            unresolved: address(self.unresolved),
            jump_indirect: address(self.jump_indirect),
            system_call: address(self.system_call),
            interpret_one: address(self.interpret_one),
            flush_records: address(self.flush_records),
            unfiltered: address(self.unfiltered),
        }
    }
}

/// The registers that the host's calling convention wants preserved.
const PRESERVED: [HostRegister; 6] = [RBP, RBX, R12, R13, R14, R15];

/// The word above the host's return address: where the guest's call returns to.
pub(crate) const EXPECTED: MemoryOperand = MemoryOperand { base: RSP, displacement: 8 };

/// Everything to write the stubs.
pub(crate) struct StubWriter<'a, G> {
    pub(crate) assembler: &'a mut Assembler,
    pub(crate) registers: &'a RegisterMap<G>,
    /// If only unfiltered accesses are reported.
    pub(crate) hit_filter: Option<&'a HitFilter>,
    /// `extern "C" fn(cpu, step) -> failed`.
    pub(crate) interpret_one: u64,
}

impl<G: Target> StubWriter<'_, G> {
    /// Writes all; where they were written.
    pub(crate) fn write(mut self) -> StubOffsets {
        let enter = self.begin();
        self.enter();
        let leave = self.begin();
        self.assembler.alu_constant(Alu::And, OperandSize::Quad, RAX, G::ADDRESS_MASK);
        self.leave(|_| {});
        let leave_by_fault = self.begin();
        self.leave(|code| code.constant(RAX, u64::MAX));
        let unresolved = self.begin();
        let unresolved_label = self.assembler.label();
        self.assembler.bind(unresolved_label);
        self.unresolved();
        let jump_indirect = self.begin();
        self.jump_indirect(unresolved_label);
        let system_call = self.begin();
        self.system_call();
        let interpret_one = self.begin();
        self.interpret_one();
        let flush_records = self.begin();
        self.flush_records();
        let unfiltered = self.begin();
        if let Some(hit_filter) = self.hit_filter {
            self.unfiltered(hit_filter);
        }
        StubOffsets {
            enter,
            leave,
            leave_by_fault,
            unresolved,
            jump_indirect,
            system_call,
            interpret_one,
            flush_records,
            unfiltered,
        }
    }

    fn begin(&mut self) -> u64 {
        self.assembler.position() as u64
    }

    fn enter(&mut self) {
        let code = &mut *self.assembler;
        PRESERVED.iter().for_each(|&register| code.push(register));
        code.address(OperandSize::Quad, CPU, MemoryOperand { base: RDI, displacement: bias::<G>() });
        // A dummy return address, so that code is called with the stack as any call leaves it.
        code.constant(RAX, UNWIND);
        code.store(OperandSize::Quad, MemoryOperand { base: RDX, displacement: 0 }, RSP);
        code.push(RAX);
        code.push(RAX);
        code.load(OperandSize::Quad, RAX, RSI);
        self.reload();
        self.assembler.jump_through(RAX);
    }

    fn leave(&mut self, result: impl FnOnce(&mut Assembler)) {
        self.spill();
        let code = &mut *self.assembler;
        result(code);
        code.load(OperandSize::Quad, RSP, host_field::<G>(HostSide::STACK_POINTER));
        PRESERVED.iter().rev().for_each(|&register| code.pop(register));
        code.ret();
    }

    /// Calls [`guest::Callbacks::interpret_until`] with rsi and rdx; the result is in rax.
    fn call_interpreter(&mut self) {
        let code = &mut *self.assembler;
        code.address(OperandSize::Quad, RDI, field::<G>(0));
        code.call_through(host_field::<G>(HostSide::INTERPRET_UNTIL));
    }

    fn unresolved(&mut self) {
        let leave = self.assembler.label();
        self.assembler.alu_constant(Alu::Cmp, OperandSize::Quad, EXPECTED, UNWIND as i32);
        self.assembler.jump_if(Condition::Equal, leave);
        self.spill();
        let code = &mut *self.assembler;
        code.load(OperandSize::Quad, RSI, RAX);
        code.load(OperandSize::Quad, RDX, EXPECTED);
        // Calls want the stack aligned to 16 bytes.
        code.push(RAX);
        self.call_interpreter();
        self.assembler.pop(RCX);
        self.reload();
        let code = &mut *self.assembler;
        code.alu(Alu::Cmp, OperandSize::Quad, RAX, EXPECTED);
        code.jump_if(Condition::NotEqual, leave);
        code.ret();
        code.bind(leave);
        self.leave(|_| {});
    }

    fn jump_indirect(&mut self, unresolved: Label) {
        let code = &mut *self.assembler;
        code.alu_constant(Alu::And, OperandSize::Quad, RAX, G::ADDRESS_MASK);
        jump_by_table::<G>(code, unresolved);
    }

    fn system_call(&mut self) {
        self.spill();
        let code = &mut *self.assembler;
        code.load(OperandSize::Quad, RSI, RAX);
        // Where it returns to; the lowest bit says that it is a system call.
        code.address(OperandSize::Quad, RDX, MemoryOperand { base: RAX, displacement: 5 });
        code.push(RDX);
        code.push(RDX);
        self.call_interpreter();
        self.assembler.pop(RCX);
        self.assembler.pop(RCX);
        self.reload();
        let code = &mut *self.assembler;
        code.alu_constant(Alu::And, OperandSize::Quad, RCX, G::ADDRESS_MASK);
        code.alu(Alu::Cmp, OperandSize::Quad, RCX, RAX);
        let leave = code.label();
        code.jump_if(Condition::NotEqual, leave);
        code.ret();
        code.bind(leave);
        self.leave(|_| {});
    }

    fn interpret_one(&mut self) {
        self.spill();
        let code = &mut *self.assembler;
        code.address(OperandSize::Quad, RDI, field::<G>(0));
        code.load(OperandSize::Quad, RSI, RAX);
        code.constant(RAX, self.interpret_one);
        code.call_through(RAX);
        self.reload();
        self.assembler.test(OperandSize::Quad, RAX);
        self.assembler.ret();
    }

    fn flush_records(&mut self) {
        self.spill();
        let code = &mut *self.assembler;
        code.address(OperandSize::Quad, RDI, field::<G>(0));
        code.call_through(host_field::<G>(HostSide::FLUSH_RECORDS));
        self.reload();
        self.assembler.ret();
    }

    /// The consumer does not read the guest's registers, so callee-saved host registers need not be stored.
    fn unfiltered(&mut self, hit_filter: &HitFilter) {
        let code = &mut *self.assembler;
        let held = self.registers.all().map(|(host, _)| host).filter(|host| !PRESERVED.contains(host));
        let mut kept: Vec<HostRegister> = held.collect();
        // Calls want the stack aligned to 16 bytes.
        if kept.len() % 2 == 1 {
            kept.push(RAX);
        }
        kept.iter().for_each(|&register| code.push(register));
        let now = beside_record(hit_filter, hit_filter.now);
        code.store(OperandSize::Quad, now, TIME);
        code.load(OperandSize::Quad, RSI, RAX);
        code.load(OperandSize::Quad, RDI, beside_record(hit_filter, hit_filter.consumer));
        code.constant(RAX, hit_filter.on_unfiltered as usize as u64);
        code.call_through(RAX);
        code.load(OperandSize::Quad, TIME, now);
        kept.iter().rev().for_each(|&register| code.pop(register));
        code.ret();
    }

    /// Stores all guest registers that are in host registers to the guest's state.
    fn spill(&mut self) {
        self.check_alignment(false);
        self.registers.all().for_each(|(host, slot)| self.assembler.store(OperandSize::Quad, slot, host));
    }

    /// Loads them again.
    fn reload(&mut self) {
        self.registers.all().for_each(|(host, slot)| self.assembler.load(OperandSize::Quad, host, slot));
        self.check_alignment(true);
    }

    /// Turns the host's alignment check on or off (bit 18 of the flags), by which unaligned accesses raise SIGBUS, so that
    /// they can be counted.
    fn check_alignment(&mut self, on: bool) {
        if self.registers.checks_alignment() {
            let code = &mut *self.assembler;
            let (operation, bits) = if on { (Alu::Or, 4) } else { (Alu::And, !4) };
            code.push_flags();
            code.alu_constant(
                operation,
                OperandSize::Byte,
                MemoryOperand { base: RSP, displacement: 2 },
                bits,
            );
            code.pop_flags();
        }
    }
}

/// Jumps to the code for the guest's address in rax by the table of computed jumps. Uses rcx.
pub(crate) fn jump_by_table<G: Target>(code: &mut Assembler, unresolved: Label) {
    code.load(OperandSize::Long, RCX, RAX);
    code.alu_constant(Alu::And, OperandSize::Long, RCX, CodeTable::INDEX_MASK as i32);
    code.shift(Shift::Left, OperandSize::Long, RCX, 2);
    code.alu(Alu::Add, OperandSize::Quad, RCX, host_field::<G>(HostSide::TABLE));
    code.alu(Alu::Cmp, OperandSize::Quad, RAX, MemoryOperand { base: RCX, displacement: 0 });
    code.jump_if(Condition::NotEqual, unresolved);
    code.jump_through(MemoryOperand { base: RCX, displacement: 8 });
}
