//! From a region to machine code. Here: blocks, registers, and what leaves to the interpreter; in
//! `control` transfers of control, in `memory` loads and stores, in `operate` and `floats` what single
//! instructions compute.
//!
//! Instructions are translated one by one, and each is either executed or not: where one faults, the
//! registers are as they were before it.

use std::mem::offset_of;

use ::memory::Memory;
use events::UnfilteredAccess;
use guest::flow::Flow;
use guest::{Block, BlockCache, HostSide};

use crate::bounds_check_elimination;
use crate::host::arena::Entries;
use crate::host::assembler::*;
use crate::host::code::Label;
use crate::region::Region;
use crate::registers::{
    INSTRUCTIONS, RECORD, Registers, TIME, beside_record, host_field, instructions, stack_limit,
};
use crate::site::Site;
use crate::stubs::Stubs;
use crate::target::Target;

mod control;
mod filter_lookup;
mod memory;
mod operands;
mod out_of_line;

pub(crate) use filter_lookup::FilterLookup;
pub(crate) use out_of_line::{OutOfLine, one};

/// A guest whose instructions can be compiled.
pub trait Emit: Target {
    /// What of its instructions is written out of line.
    type Rare;
    /// Writes the instruction at an index of a block, or several that are better done together. Returns how many;
    /// None behind a transfer of control, which ends the block.
    fn emit(emitter: &mut Emitter<Self>, block: &Block<Self>, at: usize) -> Option<usize>;
    /// Writes what is out of line.
    fn emit_rare(emitter: &mut Emitter<Self>, rare: Self::Rare);
    /// Executes an instruction that is no transfer of control. False if it did not complete: then everything is as
    /// before, so that the interpreter can execute it again and raise the exception.
    fn execute_or_undo(&mut self, instruction: &Self::Instruction, memory: &Memory) -> bool;
}

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
pub(crate) fn emit<G: Emit>(
    region: &Region,
    cache: &BlockCache<G>,
    registers: &Registers<G>,
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

/// Flags that tell of no register.
const NO_FLAGS: (u8, usize) = (u8::MAX, 0);

/// Writes a region's code.
pub struct Emitter<'a, G: Emit> {
    pub(crate) assembler: Assembler,
    pub(crate) region: &'a Region,
    pub(crate) cache: &'a BlockCache<G>,
    pub(crate) registers: &'a Registers<G>,
    /// If only unfiltered accesses are reported.
    pub(crate) lookup: Option<FilterLookup<'a>>,
    pub(crate) stubs: &'a Stubs,
    pub(crate) counted: Option<Counted<'a>>,
    pub(crate) entries: &'a mut Entries,
    /// Of the blocks.
    pub(crate) labels: Vec<Label>,
    /// Whether control comes back to a block.
    pub(crate) is_loop: Vec<bool>,
    /// For each block: `known`.
    pub(crate) beginnings: Vec<u32>,
    /// Registers, a bit each, that hold addresses in the guest's address space.
    pub(crate) known: u32,
    /// Registers, a bit each, of which the host's hold the low half only: what lies above is its sign.
    pub(crate) narrow: u32,
    /// The register that the host's flags tell of, compared with zero; and up to where.
    pub(crate) flags: (u8, usize),
    /// Accesses in the block's record so far.
    pub(crate) accesses: i32,
    pub(crate) sites: Vec<Site>,
    pub(crate) behind: Vec<OutOfLine<G>>,
    /// The block that is written.
    pub(crate) index: usize,
    /// The arena has no room for another cell.
    pub(crate) is_full: bool,
}

impl<G: Emit> Emitter<'_, G> {
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
        let block: &Block<G> = cache.block(self.region.blocks[index]);
        if self.is_loop[index] {
            let leave = self.leave_before();
            self.poll(leave);
        }
        self.count(block);
        let mut at = 0;
        while at < block.steps.len() {
            match G::emit(self, block, at) {
                Some(instructions) => at += instructions,
                None => return,
            }
        }
        self.end_record(block);
        self.widen_all();
        self.go(block.end());
    }

    /// Counts an execution of a block, or begins its record.
    pub(crate) fn count(&mut self, block: &Block<G>) {
        if self.registers.traces() {
            let id = self.region.blocks[self.index];
            if self.lookup.is_none() {
                let (label, back) = (self.assembler.label(), self.assembler.label());
                self.behind.push(OutOfLine::FlushRecords { label, back });
                let end = host_field::<G>(offset_of!(HostSide, records_end));
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
            let limit = host_field::<G>(offset_of!(HostSide, instruction_limit));
            self.assembler.alu(Alu::Cmp, Size::Quad, INSTRUCTIONS, limit);
            self.assembler.jump_if(Condition::Above, leave);
        }
        if self.registers.counts_instructions() {
            let count = block.steps.len() as i32;
            if self.registers.is_timed() {
                self.assembler.alu_constant(Alu::Add, Size::Quad, instructions::<G>(), count);
            } else {
                let sum = Place { base: INSTRUCTIONS, displacement: count };
                self.assembler.address(Size::Quad, INSTRUCTIONS, sum);
            }
        }
    }

    /// The number of a counter of the region's, if it counts and has that.
    pub(crate) fn counter(&self, cell: impl FnOnce(&Flow) -> Option<usize>) -> Option<usize> {
        let Counted { flow, first, .. } = self.counted?;
        Some(first + cell(flow)?)
    }

    /// The counter of losses of control behind the block.
    pub(crate) fn lost_behind(&self) -> Option<usize> {
        self.counter(|flow| flow.lost_behind(self.index))
    }

    /// Adds one to a counter, if there is one.
    pub(crate) fn increment(&mut self, counter: Option<usize>) {
        if let Some(Counted { base, .. }) = self.counted
            && let Some(counter) = counter
        {
            self.assembler.increment(Operand::Near(base + 8 * counter as u64));
        }
    }

    /// Notes the address of an access in the block's record. May take rcx.
    pub(crate) fn note(&mut self, place: Place) {
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
    pub(crate) fn count_execution(&mut self) {
        self.increment(self.counter(|flow| flow.counter(self.index)));
    }

    /// Ends the block's record. Flags stay as they are, unless accesses are looked up in the hit filter; that takes rax and rcx, too.
    pub(crate) fn end_record(&mut self, block: &Block<G>) {
        if let Some(lookup) = self.lookup {
            self.look_up_accesses(block, lookup);
        } else if self.registers.traces() {
            let next = Place { base: RECORD, displacement: 8 * (1 + block.accesses as i32) };
            self.assembler.address(Size::Quad, RECORD, next);
        }
    }

    /// Jumps if something waits for the thread, or the host's stack is full.
    pub(crate) fn poll(&mut self, there: Label) {
        self.assembler.alu(Alu::Cmp, Size::Quad, RSP, stack_limit::<G>());
        self.assembler.jump_if(Condition::Below, there);
    }
}
