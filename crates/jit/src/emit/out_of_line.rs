//! Cold code, which is written behind the blocks of a region, and exits to the interpreter.

use super::*;

/// Code for a rare case, which is written behind the blocks.
pub(crate) enum OutOfLine<G: Emit> {
    /// Leave compiled code; the interpreter resumes at an instruction of a block.
    Fault { label: Label, block: usize, at: usize, unextended: u32 },
    /// Increment the exit counter and leave compiled code, to continue at a guest address.
    Leave { label: Label, address: u64, exit_counter: Option<usize> },
    /// Jump to a stub with the guest address in rax.
    Stub { label: Label, stub: u64 },
    /// Increment the exit counter and jump to another region.
    OtherRegion { label: Label, address: u64, exit_counter: Option<usize> },
    /// Call the observer, as there is no room for another record.
    FlushRecords { label: Label, back: Label },
    /// Reports an unfiltered access; for a fetch, from this address.
    UnfilteredAccess { label: Label, what: UnfilteredAccess, fetched: Option<u64>, back: Label },
    /// Call the interpreter for one instruction, then continue in compiled code.
    Interpret { label: Label, step: *const G::GuestInstruction, address: u64, fault: Label, back: Label },
    /// Call the guest address in rax, which is not the predicted one.
    Call { label: Label, back: Label },
    /// Code that only this guest needs.
    Guest(G::OutOfLine),
}

impl<G: Emit> Emitter<'_, G> {
    /// The label to jump to so that the interpreter resumes at an instruction of this block.
    pub(crate) fn fault(&mut self, at: usize) -> Label {
        let label = self.assembler.label();
        self.out_of_line.push(OutOfLine::Fault { label, block: self.index, at, unextended: self.unextended });
        label
    }

    /// The label to jump to in order to leave compiled code and continue at a guest address.
    pub(crate) fn leave_for(&mut self, address: u64) -> Label {
        let label = self.assembler.label();
        self.out_of_line.push(OutOfLine::Leave { label, address, exit_counter: None });
        label
    }

    /// The label to jump to in order to leave before the block, which is not counted yet.
    pub(crate) fn leave_before(&mut self) -> Label {
        let label = self.assembler.label();
        let address = self.cache.block(self.region.blocks[self.index]).address;
        let exit_counter = self.counter(|flow| flow.exit_before(self.index));
        self.out_of_line.push(OutOfLine::Leave { label, address, exit_counter });
        label
    }

    /// The label to jump to for a stub, with the guest address in rax.
    pub(crate) fn stub(&mut self, stub: u64) -> Label {
        let label = self.assembler.label();
        self.out_of_line.push(OutOfLine::Stub { label, stub });
        label
    }

    /// Records a site: the next host instruction may fault, and the interpreter then resumes at an instruction of a block.
    pub(crate) fn may_fault(&mut self, block: usize, at: usize, unextended: u32) {
        let position = self.assembler.position() as u32;
        // The block is counted where it begins, or else where it ends.
        let is_counted = self.registers.counts_blocks();
        let exit_counter =
            self.counter(|flow| if is_counted { flow.exit_after(block) } else { flow.exit_before(block) });
        let exit_counter = exit_counter.map(|counter| counter as u32);
        let (block, index) = (self.region.blocks[block], at as u32);
        self.sites.push(FaultSite { position, block, index, unextended, exit_counter });
    }

    pub(crate) fn write_out_of_line(&mut self, code: OutOfLine<G>) {
        self.map(match &code {
            OutOfLine::Leave { address, .. }
            | OutOfLine::OtherRegion { address, .. }
            | OutOfLine::Interpret { address, .. } => *address,
            OutOfLine::Fault { block, at, .. } => {
                self.cache.block(self.region.blocks[*block]).address_of(*at)
            }
            _ => NO_INSTRUCTION,
        });
        match code {
            OutOfLine::Fault { label, block, at, unextended } => {
                self.assembler.bind(label);
                self.may_fault(block, at, unextended);
                self.assembler.halt();
            }
            OutOfLine::Leave { label, address, exit_counter } => {
                self.assembler.bind(label);
                self.increment(exit_counter);
                self.assembler.constant(RAX, address);
                self.assembler.jump_to(self.stubs.leave);
            }
            OutOfLine::Stub { label, stub } => {
                self.assembler.bind(label);
                self.assembler.jump_to(stub);
            }
            OutOfLine::OtherRegion { label, address, exit_counter } => {
                self.assembler.bind(label);
                self.increment(exit_counter);
                self.jump_to_other_region(address);
            }
            OutOfLine::UnfilteredAccess { label, what, fetched, back } => {
                self.assembler.bind(label);
                if let Some(address) = fetched {
                    self.assembler.constant(RCX, address);
                    self.assembler.store(
                        OperandSize::Quad,
                        MemoryOperand { base: RECORD, displacement: 0 },
                        RCX,
                    );
                }
                self.assembler.constant(RAX, what.word());
                self.assembler.call_to(self.stubs.unfiltered);
                self.assembler.jump(back);
            }
            OutOfLine::FlushRecords { label, back } => {
                self.assembler.bind(label);
                self.assembler.call_to(self.stubs.flush_records);
                self.assembler.jump(back);
            }
            OutOfLine::Interpret { label, step, fault, back, .. } => {
                self.assembler.bind(label);
                self.interpret_one(step, fault);
                self.assembler.jump(back);
            }
            OutOfLine::Guest(code) => G::emit_out_of_line(self, code),
            OutOfLine::Call { label, back } => {
                self.assembler.bind(label);
                self.assembler.call_to(self.stubs.jump_indirect);
                self.assembler.jump(back);
            }
        }
    }

    /// Calls the interpreter for an instruction. If it does not complete, leaves compiled code before it.
    pub(crate) fn by_interpreter(&mut self, step: &G::GuestInstruction, at: usize) {
        self.complete_sign_extensions();
        if let Some(access) = G::access(step) {
            let base = self.read(OperandSize::Quad, access.base, RAX);
            self.record_address(MemoryOperand { base, displacement: access.displacement });
        }
        let fault = self.fault(at);
        self.interpret_one(step, fault);
        if let Some(register) = G::changed(step) {
            self.clobber(register);
        }
    }

    /// Calls the interpreter for one instruction.
    pub(crate) fn interpret_one(&mut self, step: *const G::GuestInstruction, fault: Label) {
        self.assembler.constant(RAX, step as u64);
        self.assembler.call_to(self.stubs.interpret_one);
        self.assembler.jump_if(Condition::NotEqual, fault);
    }

    /// The label of a slow path that calls the interpreter for an instruction, and the label to place behind the fast path.
    /// The instruction must change no integer register, and the fast path must have had no effect before the jump.
    pub(crate) fn interpret_out_of_line(&mut self, step: &G::GuestInstruction, at: usize) -> (Label, Label) {
        let (label, back, fault) = (self.assembler.label(), self.assembler.label(), self.fault(at));
        let address = self.cache.block(self.region.blocks[self.index]).address_of(at);
        self.out_of_line.push(OutOfLine::Interpret { label, step, address, fault, back });
        (label, back)
    }
}

/// Executes one instruction for compiled code. Returns 1 if it did not complete.
pub(crate) extern "C" fn interpret_one<G: Emit>(
    guest: *mut G,
    instruction: *const G::GuestInstruction,
) -> u64 {
    // SAFETY: compiled code passes its processor, and an instruction of a block that lives as long as the code;
    // the caller of `enter` set the memory, which outlives the run of compiled code.
    let (guest, instruction, memory) = unsafe {
        let guest = &mut *guest;
        let memory = &*guest.host().memory();
        (guest, &*instruction, memory)
    };
    u64::from(!guest.execute_or_undo(instruction, memory))
}
