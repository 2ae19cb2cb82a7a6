//! Translates a region to machine code. This file writes blocks, their counters and records; `control` transfers of
//! control; `memory` memory operands; `operands` register operands; `operate` integer operations; `out_of_line` code for rare cases, and exits to the
//! interpreter. What single instructions compute is the guest's ([`Emit`]).
//!
//! Instructions are translated one by one, and each is executed completely or not at all: when one faults, the
//! registers have the values from before it.

use events::UnfilteredAccess;
use guest::flow::FlowCounters;
use guest::{BlockCache, DecodedBlock, HostSide};
use guest_memory::Memory;

use crate::bounds_check_elimination;
use crate::code_map::{self, MappedCode, NO_INSTRUCTION};
use crate::host::arena::CodeTable;
use crate::host::assembler::*;
use crate::host::code::Label;
use crate::region::CodeRegion;
use crate::registers::{
    INSTRUCTIONS, RECORD, RegisterMap, TIME, beside_record, host_field, instructions, stack_limit,
};
use crate::site::FaultSite;
use crate::stubs::StubOffsets;
use crate::target::Target;

mod control;
mod filter_lookup;
mod memory;
mod operands;
mod operate;
mod out_of_line;

pub(crate) use control::CodePointer;
pub(crate) use filter_lookup::FilterLookup;
pub(crate) use operate::{OperateOperand, OperateOperands};
pub(crate) use out_of_line::{OutOfLine, interpret_one};

/// A guest whose instructions can be compiled.
pub trait Emit: Target {
    /// Out-of-line code that only this guest needs.
    type OutOfLine;
    /// Translates the instruction at an index of a block, possibly together with the next ones. Returns how many were
    /// translated; None after a transfer of control, which ends the block.
    fn emit(emitter: &mut Emitter<Self>, block: &DecodedBlock<Self>, at: usize) -> Option<usize>;
    /// Writes out-of-line code.
    fn emit_out_of_line(emitter: &mut Emitter<Self>, code: Self::OutOfLine);
    /// Executes an instruction that is no transfer of control. False if it did not complete: then everything is as
    /// before, so that the interpreter can execute it again and raise the exception.
    fn execute_or_undo(&mut self, instruction: &Self::GuestInstruction, memory: &Memory) -> bool;
}

/// A region's code, with its entries and sites of faults.
pub(crate) struct Emitted {
    pub(crate) code: Vec<u8>,
    /// Where faults may come from, by position, ascending.
    pub(crate) sites: Vec<FaultSite>,
    /// Where control may enter: index in the region and position.
    pub(crate) entries: Vec<(usize, usize)>,
    /// Where each instruction's code begins, if a [`CodeMap`] is kept.
    pub(crate) instructions: Vec<MappedCode>,
}

/// How executions of a region's blocks are counted.
#[derive(Clone, Copy)]
pub(crate) struct BlockCounting<'a> {
    pub(crate) flow: &'a FlowCounters,
    /// The number of the first counter.
    pub(crate) first: usize,
    /// Where the counter with number 0 is.
    pub(crate) base: u64,
}

/// Writes a region's code, for the address where the arena ends. None if there is no room in it.
pub(crate) fn emit<G: Emit>(
    region: &CodeRegion,
    cache: &BlockCache<G>,
    registers: &RegisterMap<G>,
    lookup: Option<FilterLookup>,
    stubs: &StubOffsets,
    counted: Option<BlockCounting>,
    code_table: &mut CodeTable,
) -> Option<Emitted> {
    let mut assembler = Assembler::new(code_table.arena.next());
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
        code_table,
        labels,
        is_loop,
        checked_at_entry: bounds_check_elimination::checked_at_block_entries(region, cache),
        checked_bases: 0,
        unextended: 0,
        flags: NO_FLAGS,
        accesses: 0,
        sites: Vec::new(),
        instructions: Vec::new(),
        is_mapped: code_map::is_kept(),
        out_of_line: Vec::new(),
        index: 0,
        is_full: false,
    };
    emitter.all()
}

/// The flags hold no comparison.
const NO_FLAGS: (u8, usize) = (u8::MAX, 0);

/// Writes a region's code.
pub struct Emitter<'a, G: Emit> {
    pub(crate) assembler: Assembler,
    pub(crate) region: &'a CodeRegion,
    pub(crate) cache: &'a BlockCache<G>,
    pub(crate) registers: &'a RegisterMap<G>,
    /// If only unfiltered accesses are reported.
    pub(crate) lookup: Option<FilterLookup<'a>>,
    pub(crate) stubs: &'a StubOffsets,
    pub(crate) counted: Option<BlockCounting<'a>>,
    pub(crate) code_table: &'a mut CodeTable,
    /// Of the blocks.
    pub(crate) labels: Vec<Label>,
    /// Whether control comes back to a block.
    pub(crate) is_loop: Vec<bool>,
    /// `checked_bases` at the beginning of each block.
    pub(crate) checked_at_entry: Vec<u32>,
    /// Bit mask of the registers whose value was compared with the address limit since it was written.
    pub(crate) checked_bases: u32,
    /// Bit mask of the registers with a deferred sign extension: the host's register is valid in the low half only.
    pub(crate) unextended: u32,
    /// The register whose comparison with zero the host's flags hold, and the position in the code at which they do.
    pub(crate) flags: (u8, usize),
    /// Accesses in the block's record so far.
    pub(crate) accesses: i32,
    pub(crate) sites: Vec<FaultSite>,
    pub(crate) instructions: Vec<MappedCode>,
    /// Whether a map of the code is kept.
    pub(crate) is_mapped: bool,
    pub(crate) out_of_line: Vec<OutOfLine<G>>,
    /// Index of the block that is being translated.
    pub(crate) index: usize,
    /// Whether the arena has no room for another link slot.
    pub(crate) is_full: bool,
}

impl<G: Emit> Emitter<'_, G> {
    fn all(mut self) -> Option<Emitted> {
        for index in 0..self.labels.len() {
            self.block(index);
        }
        while !self.out_of_line.is_empty() {
            for code in std::mem::take(&mut self.out_of_line) {
                self.write_out_of_line(code);
            }
        }
        if self.is_full {
            return None;
        }
        let code = self.assembler.finish();
        for site in &mut self.sites {
            site.position = code.position(site.position as usize) as u32;
        }
        for mapped in &mut self.instructions {
            mapped.position = code.position(mapped.position as usize) as u32;
        }
        let entered = self.labels.iter().enumerate().filter(|(index, _)| self.region.is_entry[*index]);
        let entries = entered.filter_map(|(index, &label)| Some((index, code.label(label)?))).collect();
        Some(Emitted { code: code.bytes, sites: self.sites, entries, instructions: self.instructions })
    }

    fn block(&mut self, index: usize) {
        self.index = index;
        self.assembler.bind(self.labels[index]);
        self.map(self.cache.block(self.region.blocks[index]).address);
        self.checked_bases = self.checked_at_entry[index];
        self.flags = NO_FLAGS;
        debug_assert_eq!(self.unextended, 0);
        let cache = self.cache;
        let block: &DecodedBlock<G> = cache.block(self.region.blocks[index]);
        if self.is_loop[index] {
            let leave = self.leave_before();
            self.poll(leave);
        }
        self.count(block);
        let mut at = 0;
        while at < block.instructions.len() {
            self.map(block.address_of(at));
            match G::emit(self, block, at) {
                Some(instructions) => at += instructions,
                None => return,
            }
        }
        self.end_record(block);
        self.complete_sign_extensions();
        self.continue_at(block.end());
    }

    /// The code from here on is that of the guest instruction at an address, or leads to it.
    pub(crate) fn map(&mut self, address: u64) {
        if self.is_mapped {
            let position = self.assembler.position() as u32;
            self.instructions.push(MappedCode { position, address });
        }
    }

    /// Counts an execution of a block, or begins its record.
    pub(crate) fn count(&mut self, block: &DecodedBlock<G>) {
        if self.registers.traces() {
            let id = self.region.blocks[self.index];
            if self.lookup.is_none() {
                let (label, back) = (self.assembler.label(), self.assembler.label());
                self.out_of_line.push(OutOfLine::FlushRecords { label, back });
                let end = host_field::<G>(HostSide::RECORDS_END);
                self.assembler.alu(Alu::Cmp, OperandSize::Quad, RECORD, end);
                self.assembler.jump_if(Condition::Above, label);
                self.assembler.bind(back);
            }
            self.assembler.store_constant(MemoryOperand { base: RECORD, displacement: 0 }, !(id as i32));
            self.accesses = 0;
        }
        if self.registers.is_limited() {
            let leave = self.leave_before();
            let limit = host_field::<G>(HostSide::INSTRUCTION_LIMIT);
            self.assembler.alu(Alu::Cmp, OperandSize::Quad, INSTRUCTIONS, limit);
            self.assembler.jump_if(Condition::Above, leave);
        }
        if self.registers.counts_blocks() {
            self.count_execution();
        }
        if self.registers.counts_instructions() {
            let count = block.instructions.len() as i32;
            if self.registers.is_timed() {
                self.assembler.alu_constant(Alu::Add, OperandSize::Quad, instructions::<G>(), count);
            } else {
                let sum = MemoryOperand { base: INSTRUCTIONS, displacement: count };
                self.assembler.address(OperandSize::Quad, INSTRUCTIONS, sum);
            }
        }
    }

    /// The number of one of the region's counters, if the region is counted and has it.
    pub(crate) fn counter(&self, select: impl FnOnce(&FlowCounters) -> Option<usize>) -> Option<usize> {
        let BlockCounting { flow, first, .. } = self.counted?;
        Some(first + select(flow)?)
    }

    /// The counter of exits behind the block.
    pub(crate) fn exit_after(&self) -> Option<usize> {
        self.counter(|flow| flow.exit_after(self.index))
    }

    /// Adds one to a counter, if there is one.
    pub(crate) fn increment(&mut self, counter: Option<usize>) {
        if let Some(BlockCounting { base, .. }) = self.counted
            && let Some(counter) = counter
        {
            self.assembler.increment(Operand::Near(base + 8 * counter as u64));
        }
    }

    /// Writes the address of an access into the block's record. May take rcx.
    pub(crate) fn record_address(&mut self, operand: MemoryOperand) {
        if self.registers.traces() {
            self.accesses += 1;
            let address = if operand.displacement == 0 { operand.base } else { RCX };
            if address == RCX {
                self.assembler.address(OperandSize::Quad, RCX, operand);
            }
            let word = MemoryOperand { base: RECORD, displacement: 8 * self.accesses };
            self.assembler.store(OperandSize::Quad, word, address);
        }
    }

    /// Counts an execution of the block, if it has a counter.
    pub(crate) fn count_execution(&mut self) {
        self.increment(self.counter(|flow| flow.counter(self.index)));
    }

    /// Ends the block's record. Does not change the flags, unless accesses are looked up in the hit filter, which also
    /// uses rax and rcx.
    pub(crate) fn end_record(&mut self, block: &DecodedBlock<G>) {
        if let Some(lookup) = self.lookup {
            self.look_up_accesses(block, lookup);
        } else if self.registers.traces() {
            let next = MemoryOperand { base: RECORD, displacement: 8 * (1 + block.accesses as i32) };
            self.assembler.address(OperandSize::Quad, RECORD, next);
        }
    }

    /// Jumps if the thread must leave compiled code, or the host's stack is full.
    pub(crate) fn poll(&mut self, there: Label) {
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RSP, stack_limit::<G>());
        self.assembler.jump_if(Condition::Below, there);
    }
}
