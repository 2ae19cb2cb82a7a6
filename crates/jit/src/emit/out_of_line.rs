//! What is written behind the blocks of a region, as it is rare; and what leaves to the interpreter.

use super::*;

/// What is written behind the blocks, as it is rare.
pub(crate) enum OutOfLine<G: Emit> {
    /// The interpreter is to execute an instruction of a block.
    Fault { label: Label, block: usize, at: usize, narrow: u32 },
    /// Leave for an address of the guest; add one to a counter first.
    Leave { label: Label, address: u64, lost: Option<usize> },
    /// Go on in a stub: the address is in rax.
    Stub { label: Label, stub: u64 },
    /// Go on in other code; add one to a counter first.
    Elsewhere { label: Label, address: u64, lost: Option<usize> },
    /// There is no room for another record.
    FlushRecords { label: Label, back: Label },
    /// Reports an unfiltered access; for a fetch, from this address.
    UnfilteredAccess { label: Label, what: UnfilteredAccess, fetched: Option<u64>, back: Label },
    /// The interpreter is to execute an instruction of a block, after which compiled code goes on.
    One { label: Label, step: *const G::Instruction, fault: Label, back: Label },
    /// Call what a register points to: the address is in rax.
    Call { label: Label, back: Label },
    /// What the guest has.
    Guest(G::Rare),
}

impl<G: Emit> Emitter<'_, G> {
    /// Where to jump so that the interpreter executes an instruction of this block.
    pub(crate) fn fault(&mut self, at: usize) -> Label {
        let label = self.assembler.label();
        self.behind.push(OutOfLine::Fault { label, block: self.index, at, narrow: self.narrow });
        label
    }

    /// Where to jump to leave for an address.
    pub(crate) fn leave_for(&mut self, address: u64) -> Label {
        let label = self.assembler.label();
        self.behind.push(OutOfLine::Leave { label, address, lost: None });
        label
    }

    /// Where to jump to leave before the block, which is not counted yet.
    pub(crate) fn leave_before(&mut self) -> Label {
        let label = self.assembler.label();
        let address = self.cache.block(self.region.blocks[self.index]).address;
        let lost = self.counter(|flow| flow.lost_before(self.index));
        self.behind.push(OutOfLine::Leave { label, address, lost });
        label
    }

    /// Where to jump to go on in a stub with the address in rax.
    pub(crate) fn stub(&mut self, stub: u64) -> Label {
        let label = self.assembler.label();
        self.behind.push(OutOfLine::Stub { label, stub });
        label
    }

    /// What is written next may fault: the interpreter takes over at an instruction of a block.
    pub(crate) fn may_fault(&mut self, block: usize, at: usize, narrow: u32) {
        let position = self.assembler.position() as u32;
        // The block is counted where it begins, or else where it ends.
        let is_counted = self.registers.counts_blocks();
        let lost =
            self.counter(|flow| if is_counted { flow.lost_behind(block) } else { flow.lost_before(block) });
        let lost = lost.map(|counter| counter as u32);
        let (block, index) = (self.region.blocks[block], at as u32);
        self.sites.push(Site { position, block, index, narrow, lost });
    }

    pub(crate) fn rare(&mut self, rare: OutOfLine<G>) {
        match rare {
            OutOfLine::Fault { label, block, at, narrow } => {
                self.assembler.place(label);
                self.may_fault(block, at, narrow);
                self.assembler.halt();
            }
            OutOfLine::Leave { label, address, lost } => {
                self.assembler.place(label);
                self.increment(lost);
                self.assembler.constant(RAX, address);
                self.assembler.jump_to(self.stubs.leave);
            }
            OutOfLine::Stub { label, stub } => {
                self.assembler.place(label);
                self.assembler.jump_to(stub);
            }
            OutOfLine::Elsewhere { label, address, lost } => {
                self.assembler.place(label);
                self.increment(lost);
                self.elsewhere(address);
            }
            OutOfLine::UnfilteredAccess { label, what, fetched, back } => {
                self.assembler.place(label);
                if let Some(address) = fetched {
                    self.assembler.constant(RCX, address);
                    self.assembler.store(Size::Quad, Place { base: RECORD, displacement: 0 }, RCX);
                }
                self.assembler.constant(RAX, what.word());
                self.assembler.call_to(self.stubs.unfiltered);
                self.assembler.jump(back);
            }
            OutOfLine::FlushRecords { label, back } => {
                self.assembler.place(label);
                self.assembler.call_to(self.stubs.flush_records);
                self.assembler.jump(back);
            }
            OutOfLine::One { label, step, fault, back } => {
                self.assembler.place(label);
                self.one(step, fault);
                self.assembler.jump(back);
            }
            OutOfLine::Guest(rare) => G::emit_rare(self, rare),
            OutOfLine::Call { label, back } => {
                self.assembler.place(label);
                self.assembler.call_to(self.stubs.find);
                self.assembler.jump(back);
            }
        }
    }

    /// Lets the interpreter execute one instruction; it executes it again if it does not complete.
    pub(crate) fn by_interpreter(&mut self, step: &G::Instruction, at: usize) {
        self.widen_all();
        if let Some(access) = G::access(step) {
            let base = self.read(Size::Quad, access.base, RAX);
            self.note(Place { base, displacement: access.displacement });
        }
        let fault = self.fault(at);
        self.one(step, fault);
        if let Some(register) = G::changed(step) {
            self.forget(register);
        }
    }

    /// Calls the interpreter for one instruction.
    pub(crate) fn one(&mut self, step: *const G::Instruction, fault: Label) {
        self.assembler.constant(RAX, step as u64);
        self.assembler.call_to(self.stubs.one);
        self.assembler.jump_if(Condition::NotEqual, fault);
    }

    /// Where to jump so that the interpreter executes an instruction that was only looked at so far and that
    /// changes no integer register; and the label to place behind its code.
    pub(crate) fn rarely(&mut self, step: &G::Instruction, at: usize) -> (Label, Label) {
        let (label, back, fault) = (self.assembler.label(), self.assembler.label(), self.fault(at));
        self.behind.push(OutOfLine::One { label, step, fault, back });
        (label, back)
    }
}

/// Executes one instruction for compiled code. Returns 1 if it did not complete.
pub(crate) extern "C" fn one<G: Emit>(guest: *mut G, instruction: *const G::Instruction) -> u64 {
    // SAFETY: compiled code passes its processor, and an instruction of a block that lives as long as the code;
    // whoever entered it noted the memory for as long as compiled code runs.
    let (guest, instruction, memory) = unsafe {
        let guest = &mut *guest;
        let memory = &*guest.host().memory;
        (guest, &*instruction, memory)
    };
    u64::from(!guest.execute_or_undo(instruction, memory))
}
