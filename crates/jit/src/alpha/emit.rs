//! From a region to machine code. Here: blocks, registers, and what leaves to the interpreter; in
//! `control` transfers of control, in `memory` loads and stores, in `operate` and `floats` what single
//! instructions compute.
//!
//! Instructions are translated one by one, and each is either executed or not: where one faults, the
//! registers are as they were before it.

use std::mem::offset_of;

use events::UnfilteredAccess;

use super::bounds_check_elimination;
use super::region::Region;
use super::registers::{
    INSTRUCTIONS, RECORD, Registers, TIME, address_limit, beside_record, float, host_field, instructions,
    integer, stack_limit,
};
use super::stubs::Stubs;
use crate::host::arena::Entries;
use crate::host::assembler::*;
use crate::host::code::Label;
use crate::site::Site;
use alpha::block::{Block, BlockCache};
use alpha::cpu::{Cpu, HostSide, register::SINK};
use alpha::flow::Flow;
use alpha::semantics::{Break, DecodedInstruction, execute};

mod bytes;
mod control;
mod filter_lookup;
mod floats;
mod memory;
mod operate;

pub(crate) use filter_lookup::FilterLookup;

/// A region's code, and what to know of it.
pub(crate) struct Emitted {
    pub(crate) code: Vec<u8>,
    /// Where faults may come from, by position, ascending.
    pub(crate) sites: Vec<Site>,
    /// Where control may enter: index in the region and position.
    pub(crate) entries: Vec<(usize, usize)>,
}

/// How executions of a region's blocks are counted.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    pub(crate) flow: &'a Flow,
    /// The number of the first counter.
    pub(crate) first: usize,
    /// Where the counter with number 0 is.
    pub(crate) base: u64,
}

/// Writes a region's code, for the place where the arena ends. None if there is no room in it.
pub(crate) fn emit(
    region: &Region,
    cache: &BlockCache,
    registers: &Registers,
    lookup: Option<FilterLookup>,
    stubs: &Stubs,
    counted: Option<Counted>,
    entries: &mut Entries,
) -> Option<Emitted> {
    let mut assembler = Assembler::new(entries.arena.next());
    let labels = region.blocks.iter().map(|_| assembler.label()).collect();
    let count = region.blocks.len();
    let mut is_loop = vec![false; count];
    for (index, edges) in region.edges.iter().enumerate() {
        edges.iter().filter(|edge| edge.to <= index).for_each(|edge| is_loop[edge.to] = true);
    }
    let emitter = Emitter {
        assembler,
        region,
        cache,
        registers,
        lookup,
        stubs,
        counted,
        entries,
        labels,
        is_loop,
        beginnings: bounds_check_elimination::at_beginnings(region, cache),
        known: 0,
        narrow: 0,
        flags: NO_FLAGS,
        accesses: 0,
        sites: Vec::new(),
        behind: Vec::new(),
        index: 0,
        is_full: false,
    };
    emitter.all()
}

/// What is written behind the blocks, as it is rare.
enum Behind {
    /// The interpreter is to execute an instruction of a block.
    Fault { label: Label, block: usize, at: usize, narrow: u32 },
    /// Leave for an address of the guest; add one to a counter first.
    Leave { label: Label, address: u64, lost: Option<usize> },
    /// Go on in a stub: the address is in rax.
    Stub { label: Label, stub: u64 },
    /// Go on in other code; add one to a counter first.
    Elsewhere { label: Label, address: u64, lost: Option<usize> },
    /// There is no room for another record.
    HandOn { label: Label, back: Label },
    /// Reports an unfiltered access; for a fetch, from this address.
    UnfilteredAccess { label: Label, what: UnfilteredAccess, fetched: Option<u64>, back: Label },
    /// The interpreter is to execute an instruction of a block, after which compiled code goes on.
    One { label: Label, step: *const DecodedInstruction, fault: Label, back: Label },
    /// Compute, and record if the result is inexact.
    Noted { label: Label, step: DecodedInstruction, operation: Vector, back: Label, rare: Label },
    /// Call what a register points to: the address is in rax.
    Call { label: Label, back: Label },
}

/// Flags that tell of no register.
const NO_FLAGS: (u8, usize) = (u8::MAX, 0);

struct Emitter<'a> {
    assembler: Assembler,
    region: &'a Region,
    cache: &'a BlockCache,
    registers: &'a Registers,
    /// If only unfiltered accesses are reported.
    lookup: Option<FilterLookup<'a>>,
    stubs: &'a Stubs,
    counted: Option<Counted<'a>>,
    entries: &'a mut Entries,
    /// Of the blocks.
    labels: Vec<Label>,
    /// Whether control comes back to a block.
    is_loop: Vec<bool>,
    /// For each block: `known`.
    beginnings: Vec<u32>,
    /// Registers, a bit each, that hold addresses in the guest's address space.
    known: u32,
    /// Registers, a bit each, of which the host's hold the low half only: what lies above is its sign.
    narrow: u32,
    /// The register that the host's flags tell of, compared with zero; and up to where.
    flags: (u8, usize),
    /// Accesses in the block's record so far.
    accesses: i32,
    sites: Vec<Site>,
    behind: Vec<Behind>,
    /// The block that is written.
    index: usize,
    /// The arena has no room for another cell.
    is_full: bool,
}

impl Emitter<'_> {
    fn all(mut self) -> Option<Emitted> {
        for index in 0..self.labels.len() {
            self.block(index);
        }
        while !self.behind.is_empty() {
            for rare in std::mem::take(&mut self.behind) {
                self.rare(rare);
            }
        }
        if self.is_full {
            return None;
        }
        let code = self.assembler.finish();
        for site in &mut self.sites {
            site.position = code.position(site.position as usize) as u32;
        }
        let entered = self.labels.iter().enumerate().filter(|(index, _)| self.region.is_entry[*index]);
        let entries = entered.filter_map(|(index, &label)| Some((index, code.label(label)?))).collect();
        Some(Emitted { code: code.bytes, sites: self.sites, entries })
    }

    fn block(&mut self, index: usize) {
        self.index = index;
        self.assembler.place(self.labels[index]);
        self.known = self.beginnings[index];
        self.flags = NO_FLAGS;
        debug_assert_eq!(self.narrow, 0);
        let cache = self.cache;
        let block: &Block = cache.block(self.region.blocks[index]);
        if self.is_loop[index] {
            let leave = self.leave_before();
            self.poll(leave);
        }
        self.count(block);
        let mut at = 0;
        while let Some(step) = block.steps.get(at) {
            if self.compare_and_branch(block, at) || self.transfer(step, at, block) {
                return;
            }
            at += self.instruction(&block.steps[at..], at);
        }
        self.end_record(block);
        self.widen_all();
        self.go(block.end());
    }

    /// Writes an instruction, or two that are better done as one; how many.
    fn instruction(&mut self, steps: &[DecodedInstruction], at: usize) -> usize {
        if self.load_long_address(steps) {
            return 2;
        }
        let step = &steps[0];
        if !self.access(step, at) && !self.operate(step) && !self.float_operate(step, at) {
            self.by_interpreter(step, at);
        }
        1
    }

    /// Counts an execution of a block, or begins its record.
    fn count(&mut self, block: &Block) {
        if self.registers.traces() {
            let id = self.region.blocks[self.index];
            if self.lookup.is_none() {
                let (label, back) = (self.assembler.label(), self.assembler.label());
                self.behind.push(Behind::HandOn { label, back });
                let end = host_field(offset_of!(HostSide, records_end));
                self.assembler.alu(Alu::Cmp, Size::Quad, RECORD, end);
                self.assembler.jump_if(Condition::Above, label);
                self.assembler.place(back);
            }
            self.assembler.store_constant(Place { base: RECORD, displacement: 0 }, !(id as i32));
            self.accesses = 0;
        }
        if self.registers.counts_blocks() {
            self.count_execution();
        }
        if self.registers.is_limited() {
            let leave = self.leave_for(block.address);
            let limit = host_field(offset_of!(HostSide, instruction_limit));
            self.assembler.alu(Alu::Cmp, Size::Quad, INSTRUCTIONS, limit);
            self.assembler.jump_if(Condition::Above, leave);
        }
        if self.registers.counts_instructions() {
            let count = block.steps.len() as i32;
            if self.registers.is_timed() {
                self.assembler.alu_constant(Alu::Add, Size::Quad, instructions(), count);
            } else {
                let sum = Place { base: INSTRUCTIONS, displacement: count };
                self.assembler.address(Size::Quad, INSTRUCTIONS, sum);
            }
        }
    }

    /// The number of a counter of the region's, if it counts and has that.
    fn counter(&self, cell: impl FnOnce(&Flow) -> Option<usize>) -> Option<usize> {
        let Counted { flow, first, .. } = self.counted?;
        Some(first + cell(flow)?)
    }

    /// The counter of losses of control behind the block.
    fn lost_behind(&self) -> Option<usize> {
        self.counter(|flow| flow.lost_behind(self.index))
    }

    /// Adds one to a counter, if there is one.
    fn increment(&mut self, counter: Option<usize>) {
        if let Some(Counted { base, .. }) = self.counted
            && let Some(counter) = counter
        {
            self.assembler.increment(Operand::Near(base + 8 * counter as u64));
        }
    }

    /// Notes the address of an access in the block's record. May take rcx.
    fn note(&mut self, place: Place) {
        if self.registers.traces() {
            self.accesses += 1;
            let address = if place.displacement == 0 { place.base } else { RCX };
            if address == RCX {
                self.assembler.address(Size::Quad, RCX, place);
            }
            let word = Place { base: RECORD, displacement: 8 * self.accesses };
            self.assembler.store(Size::Quad, word, address);
        }
    }

    /// Counts an execution of the block, if that does not follow from others.
    fn count_execution(&mut self) {
        self.increment(self.counter(|flow| flow.counter(self.index)));
    }

    /// Ends the block's record. Flags stay as they are, unless accesses are looked up in the hit filter; that takes rax and rcx, too.
    fn end_record(&mut self, block: &Block) {
        if let Some(lookup) = self.lookup {
            self.look_up_accesses(block, lookup);
        } else if self.registers.traces() {
            let next = Place { base: RECORD, displacement: 8 * (1 + block.accesses as i32) };
            self.assembler.address(Size::Quad, RECORD, next);
        }
    }

    /// Jumps if something waits for the thread, or the host's stack is full.
    fn poll(&mut self, there: Label) {
        self.assembler.alu(Alu::Cmp, Size::Quad, RSP, stack_limit());
        self.assembler.jump_if(Condition::Below, there);
    }

    // Registers

    /// Where an integer register is; not for register 31.
    fn operand(&mut self, size: Size, register: u8) -> Operand {
        if size == Size::Quad {
            self.widen(register);
        }
        match self.registers.held(register) {
            Some(host) => host.into(),
            None => integer(register).into(),
        }
    }

    /// Gives a register its upper half.
    fn widen(&mut self, register: u8) {
        if self.narrow & 1 << register != 0
            && let Some(host) = self.registers.held(register)
        {
            self.assembler.load_sign_extended(Size::Long, host, host);
            self.narrow &= !(1 << register);
        }
    }

    /// Gives all registers their upper halves, as who goes on elsewhere expects it. Flags stay as they are.
    fn widen_all(&mut self) {
        (0..31).for_each(|register| self.widen(register));
    }

    /// Whether the low half of a register is known to tell all.
    fn is_narrow(&self, register: u8) -> bool {
        register == 31 || self.narrow & 1 << register != 0
    }

    /// An integer register in a register of the host: its own, or `scratch`. If less than a quadword is
    /// wanted, what lies above means nothing.
    fn read(&mut self, size: Size, register: u8, scratch: Register) -> Register {
        if register == 31 {
            self.assembler.constant(scratch, 0);
            return scratch;
        }
        if size == Size::Quad {
            self.widen(register);
        }
        match self.registers.held(register) {
            Some(host) => host,
            None => {
                self.assembler.load(Size::Quad, scratch, integer(register));
                scratch
            }
        }
    }

    /// An integer register in this register of the host.
    fn read_into(&mut self, size: Size, register: u8, to: Register) {
        let from = self.read(size, register, to);
        self.assembler.load(Size::Quad, to, from);
    }

    /// Where to compute what an instruction writes: [`Emitter::write`] follows.
    fn target(&self, register: u8) -> Register {
        self.held(register).unwrap_or(RAX)
    }

    /// The host's register that holds one of the guest's.
    fn held(&self, register: u8) -> Option<Register> {
        if register < 31 { self.registers.held(register) } else { None }
    }

    /// Sets an integer register.
    fn write(&mut self, register: u8, value: Register) {
        if usize::from(register) == SINK {
            return;
        }
        self.forget(register);
        match self.registers.held(register) {
            Some(host) => self.assembler.load(Size::Quad, host, value),
            None => self.assembler.store(Size::Quad, integer(register), value),
        }
    }

    /// Sets an integer register to a longword's value, sign-extended: at once only in memory.
    fn write_low(&mut self, register: u8, value: Register) {
        match self.held(register) {
            Some(host) => {
                if host != value {
                    self.assembler.load(Size::Long, host, value);
                }
                self.forget(register);
                self.narrow |= 1 << register;
            }
            None => {
                self.assembler.load_sign_extended(Size::Long, RAX, value);
                self.write(register, RAX);
            }
        }
    }

    /// A register gets another value.
    fn forget(&mut self, register: u8) {
        self.known &= !(1 << register);
        self.narrow &= !(1 << register);
    }

    fn write_constant(&mut self, register: u8, value: u64) {
        if usize::from(register) == SINK {
            return;
        }
        self.forget(register);
        match (self.registers.held(register), i32::try_from(value as i64)) {
            (Some(host), Ok(0)) => self.assembler.zero(host),
            (Some(host), _) => self.assembler.constant(host, value),
            (None, Ok(short)) => self.assembler.store_constant(integer(register), short),
            (None, Err(_)) => {
                self.assembler.constant(RCX, value);
                self.assembler.store(Size::Quad, integer(register), RCX);
            }
        }
    }

    fn read_float(&mut self, register: u8, to: Register) {
        if register == 31 {
            self.assembler.constant(to, 0);
        } else {
            self.assembler.load(Size::Quad, to, float(register));
        }
    }

    fn write_float(&mut self, register: u8, value: Register) {
        if usize::from(register) != SINK {
            self.assembler.store(Size::Quad, float(register), value);
        }
    }

    // What is rare

    /// Where to jump so that the interpreter executes an instruction of this block.
    fn fault(&mut self, at: usize) -> Label {
        let label = self.assembler.label();
        self.behind.push(Behind::Fault { label, block: self.index, at, narrow: self.narrow });
        label
    }

    /// Where to jump to leave for an address.
    fn leave_for(&mut self, address: u64) -> Label {
        let label = self.assembler.label();
        self.behind.push(Behind::Leave { label, address, lost: None });
        label
    }

    /// Where to jump to leave before the block, which is not counted yet.
    fn leave_before(&mut self) -> Label {
        let label = self.assembler.label();
        let address = self.cache.block(self.region.blocks[self.index]).address;
        let lost = self.counter(|flow| flow.lost_before(self.index));
        self.behind.push(Behind::Leave { label, address, lost });
        label
    }

    /// Where to jump to go on in a stub with the address in rax.
    fn stub(&mut self, stub: u64) -> Label {
        let label = self.assembler.label();
        self.behind.push(Behind::Stub { label, stub });
        label
    }

    /// What is written next may fault: the interpreter takes over at an instruction of a block.
    fn may_fault(&mut self, block: usize, at: usize, narrow: u32) {
        let position = self.assembler.position() as u32;
        // The block is counted where it begins, or else where it ends.
        let is_counted = self.registers.counts_blocks();
        let lost =
            self.counter(|flow| if is_counted { flow.lost_behind(block) } else { flow.lost_before(block) });
        let lost = lost.map(|counter| counter as u32);
        let (block, index) = (self.region.blocks[block], at as u32);
        self.sites.push(Site { position, block, index, narrow, lost });
    }

    fn rare(&mut self, rare: Behind) {
        match rare {
            Behind::Fault { label, block, at, narrow } => {
                self.assembler.place(label);
                self.may_fault(block, at, narrow);
                self.assembler.halt();
            }
            Behind::Leave { label, address, lost } => {
                self.assembler.place(label);
                self.increment(lost);
                self.assembler.constant(RAX, address);
                self.assembler.jump_to(self.stubs.leave);
            }
            Behind::Stub { label, stub } => {
                self.assembler.place(label);
                self.assembler.jump_to(stub);
            }
            Behind::Elsewhere { label, address, lost } => {
                self.assembler.place(label);
                self.increment(lost);
                self.elsewhere(address);
            }
            Behind::UnfilteredAccess { label, what, fetched, back } => {
                self.assembler.place(label);
                if let Some(address) = fetched {
                    self.assembler.constant(RCX, address);
                    self.assembler.store(Size::Quad, Place { base: RECORD, displacement: 0 }, RCX);
                }
                self.assembler.constant(RAX, what.word());
                self.assembler.call_to(self.stubs.unfiltered);
                self.assembler.jump(back);
            }
            Behind::HandOn { label, back } => {
                self.assembler.place(label);
                self.assembler.call_to(self.stubs.flush_records);
                self.assembler.jump(back);
            }
            Behind::One { label, step, fault, back } => {
                self.assembler.place(label);
                self.one(step, fault);
                self.assembler.jump(back);
            }
            Behind::Noted { label, step, operation, back, rare } => {
                self.assembler.place(label);
                self.compute_noted(&step, operation, back, rare);
            }
            Behind::Call { label, back } => {
                self.assembler.place(label);
                self.assembler.call_to(self.stubs.find);
                self.assembler.jump(back);
            }
        }
    }

    /// Lets the interpreter execute one instruction; it executes it again if it does not complete.
    fn by_interpreter(&mut self, step: &DecodedInstruction, at: usize) {
        self.widen_all();
        if step.is_access() {
            let base = self.read(Size::Quad, step.b, RAX);
            self.note(Place { base, displacement: step.immediate as i32 });
        }
        let fault = self.fault(at);
        self.one(step, fault);
        if step.c < 31 {
            self.forget(step.c);
        }
    }

    /// Calls the interpreter for one instruction.
    fn one(&mut self, step: *const DecodedInstruction, fault: Label) {
        self.assembler.constant(RAX, step as u64);
        self.assembler.call_to(self.stubs.one);
        self.assembler.jump_if(Condition::NotEqual, fault);
    }

    /// Where to jump so that the interpreter executes an instruction that was only looked at so far and that
    /// changes no integer register; and the label to place behind its code.
    fn rarely(&mut self, step: &DecodedInstruction, at: usize) -> (Label, Label) {
        let (label, back, fault) = (self.assembler.label(), self.assembler.label(), self.fault(at));
        self.behind.push(Behind::One { label, step, fault, back });
        (label, back)
    }
}

/// Executes one instruction that is no transfer of control. On an exception everything is as before,
/// so that the interpreter can execute it again and raise the exception.
pub(crate) extern "C" fn one(cpu: *mut Cpu, step: *const DecodedInstruction) -> u64 {
    // SAFETY: compiled code passes its Cpu, and a step of a block that lives as long as the code;
    // whoever entered it noted the memory and the model for as long as compiled code runs.
    let (cpu, step, memory, model) = unsafe {
        let cpu = &mut *cpu;
        let (memory, model) = (&*cpu.host.memory, cpu.host.model);
        (cpu, &*step, memory, model)
    };
    let before = (cpu.r[step.c as usize], cpu.f[step.c as usize], cpu.lock, cpu.fpcr, cpu.ieee_control);
    let pc = cpu.pc;
    match execute(step, cpu, memory, model) {
        Ok(()) => 0,
        Err(Break::Exception(_) | Break::SystemCall | Break::InstructionBarrier) => {
            (cpu.r[step.c as usize], cpu.f[step.c as usize], cpu.lock, cpu.fpcr, cpu.ieee_control) = before;
            cpu.pc = pc;
            1
        }
    }
}
