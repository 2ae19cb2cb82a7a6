//! Instrumented images: programs that count the executions of their blocks and edges themselves.
//!
//! `docs/design/spike-instrumentation.md` has the design. The plan of an image follows from the image alone, so that the
//! file with the counts needs no tables: who reads it makes the plan again.

mod code;
mod flow;
mod frequency;
mod insert;
mod points;
mod registers;
mod spanning_tree;
mod start;

use crate::assemble::{Fragment, Layout, assemble};
use crate::counts::{self, Header};
use crate::error::Problem;
use crate::layout;
use crate::output;
use crate::profile::IndirectCall;
use crate::program::{Anchor, BlockId, CounterSegment, Exit, Program, Reference};
use flow::{Flow, Meaning};
use insert::Inserter;
use spanning_tree::SpanningTree;

/// What counts a program's executions.
#[derive(Debug)]
pub struct Plan {
    program: Program,
    layout: Layout,
    procedures: Vec<Option<Measured>>,
    calls: Vec<(BlockId, u32)>,
    size: u64,
    summary: Summary,
}

/// How the executions of a procedure are measured.
#[derive(Debug)]
struct Measured {
    flow: Flow,
    tree: SpanningTree,
    /// Edges with counters, and the counters' offsets.
    counters: Vec<(usize, u32)>,
    /// Blocks that end with jumps by tables, by their number in the procedure, and the offsets of their counters.
    jumps: Vec<(usize, u32)>,
}

/// Numbers of an instrumented image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Procedures with counters.
    pub procedures: usize,
    /// Procedures that cannot be changed, and so have none.
    pub frozen: usize,
    /// Procedures whose flow cannot be measured.
    pub unmeasured: usize,
    /// Counters of blocks.
    pub block_counters: usize,
    /// Counters of edges.
    pub edge_counters: usize,
    /// Indirect jumps, with a counter for each target.
    pub jumps: usize,
    /// Indirect calls, with a place for the last target.
    pub calls: usize,
    /// Counters and places for which registers are saved on the stack.
    pub saved: usize,
    /// Instructions of the original image.
    pub original_instructions: usize,
    /// Instructions of the instrumented one.
    pub instructions: usize,
}

/// An instrumented image.
#[derive(Debug)]
pub struct Instrumented {
    /// The image.
    pub bytes: Vec<u8>,
    /// The file for its counts, with no executions.
    pub counts: Vec<u8>,
    /// What was inserted.
    pub summary: Summary,
}

/// Instruments a program. Its counts go to the file with this absolute path, which must exist when the program starts.
pub fn instrument(program: Program, counts_path: &[u8]) -> Result<Instrumented, Problem> {
    let mut plan = Plan::new(program)?;
    let header = plan.header()?;
    let entry = start::entry(&plan.program.elf)?;
    let original = plan.program.code.block(entry);
    let original = original.ok_or_else(|| Problem::Damaged(format!("no code at the entry {entry:#x}")))?;
    let start = start::add(&mut plan.program, original, &header, counts_path);
    let procedure = plan.program.blocks[start as usize].procedure;
    plan.layout.fragments.push(Fragment { procedure, blocks: vec![start], align: layout::ALIGN });
    plan.program.counters = Some(CounterSegment { size: header.size, entry, start });
    let (bytes, assembly) = output::write(&plan.program, &plan.layout)?;
    plan.summary.instructions = assembly.words.len();
    Ok(Instrumented { bytes, counts: header.empty_file(), summary: plan.summary })
}

impl Plan {
    /// Decides where counters go, and inserts them.
    pub fn new(program: Program) -> Result<Plan, Problem> {
        let original_instructions = program.instructions();
        let mut inserter = Inserter::new(program);
        let mut procedures = Vec::new();
        let mut fragments = Vec::new();
        for number in 0..inserter.program.procedures.len() as u32 {
            let (measured, blocks) = inserter.procedure(number);
            procedures.push(measured);
            fragments.push(Fragment { procedure: number, blocks, align: layout::ALIGN });
        }
        let Inserter { program, summary, calls, next, .. } = inserter;
        let size = u64::from(next).next_multiple_of(counts::PAGE);
        let summary = Summary { original_instructions, ..summary };
        Ok(Plan { program, layout: Layout { fragments }, procedures, calls, size, summary })
    }

    /// The first bytes of the file with the counts.
    fn header(&self) -> Result<Header, Problem> {
        let assembly = assemble(&self.program, &self.layout, output::code_base(&self.program.elf))?;
        Ok(Header::new(&self.program, &assembly.words, self.calls.len() as u64, self.size))
    }

    /// Gives the blocks of a program the counts of a file, made by runs of its instrumented image. Returns the indirect
    /// calls.
    pub fn apply(&self, file: &[u8], program: &mut Program) -> Result<Vec<IndirectCall>, String> {
        let header = self.header().map_err(|problem| problem.to_string())?;
        header.check(file)?;
        let cell = |offset: u32| counts::cell(file, offset);
        let assembly = assemble(&self.program, &self.layout, output::code_base(&self.program.elf));
        let assembly = assembly.map_err(|problem| problem.to_string())?;
        for (procedure, measured) in program.procedures.iter().zip(&self.procedures) {
            let Some(measured) = measured else { continue };
            let entry = assembly.block_addresses[procedure.blocks[0] as usize];
            let flow = measured.read(&procedure.blocks, &self.program, cell, |block| {
                (assembly.block_addresses[block as usize] - entry) as u32
            });
            for (meaning, &times) in measured.flow.meanings.iter().zip(&flow) {
                match *meaning {
                    Meaning::Block(at) => program.blocks[procedure.blocks[at] as usize].count = times,
                    Meaning::Way { from, successor, .. } => {
                        let exit = &mut program.blocks[procedure.blocks[from] as usize].exit;
                        let is_same = exit.successors().windows(2).all(|pair| pair[0] == pair[1]);
                        match exit {
                            Exit::Conditional { taken, count, .. } if successor == 0 && taken.block().is_some() => *count += times,
                            Exit::Conditional { count, .. } if is_same => *count += times,
                            Exit::Jump { counts, .. } => counts[successor] = times,
                            _ => {}
                        }
                    }
                    Meaning::Entry | Meaning::Leave => {}
                }
            }
        }
        Ok(self.calls(program, &assembly, cell))
    }

    /// The indirect calls: each called its last target always.
    fn calls(&self, program: &Program, assembly: &crate::assemble::Assembly, cell: impl Fn(u32) -> u64) -> Vec<IndirectCall> {
        let entries = program.procedures.iter().zip(0..).map(|(procedure, number)| {
            (assembly.block_addresses[procedure.blocks[0] as usize], number)
        });
        let entries: std::collections::HashMap<u64, u32> = entries.collect();
        let mut calls: Vec<IndirectCall> = Vec::new();
        for &(block, offset) in &self.calls {
            let anchor = self.program.blocks[block as usize].instructions.iter().position(|one| {
                matches!(one.reference, Reference::CounterHigh(counter) if counter.offset == offset && counter.anchor == Anchor::Instruction(0))
            });
            let (Some(at), distance) = (anchor, cell(offset)) else { continue };
            let address = (assembly.block_addresses[block as usize] + at as u64 * 4).wrapping_add(distance);
            let count = program.blocks[block as usize].count;
            if let Some(&procedure) = entries.get(&address).filter(|_| distance != 0 && count > 0) {
                calls.push(IndirectCall { block, procedure, count });
            }
        }
        for (block, id) in program.blocks.iter().zip(0..) {
            let slot = block.call().filter(|_| block.count > 0).map(|call| call.reference);
            let Some(Reference::CallThrough(slot)) = slot else { continue };
            if let Some(target) = program.data_at(slot) {
                calls.push(IndirectCall { block: id, procedure: program.blocks[target as usize].procedure, count: block.count });
            }
        }
        calls.sort_by_key(|call| (call.block, call.procedure));
        calls
    }
}

impl Measured {
    /// The flow of all edges. `distance` gives a block's address relative to the procedure's entry.
    fn read(&self, blocks: &[BlockId], program: &Program, cell: impl Fn(u32) -> u64, distance: impl Fn(BlockId) -> u32) -> Vec<u64> {
        let mut flow = vec![0; self.flow.edges.len()];
        self.counters.iter().for_each(|&(edge, offset)| flow[edge] = cell(offset));
        for (meaning, place) in self.flow.meanings.iter().zip(&mut flow) {
            let Meaning::Way { from, successor, .. } = *meaning else { continue };
            let Some(&(_, offset)) = self.jumps.iter().find(|jump| jump.0 == from) else { continue };
            let target = program.blocks[blocks[from] as usize].exit.successors()[successor];
            *place = cell(offset + 4 * distance(target));
        }
        self.tree.complete(&self.flow.edges, &mut flow);
        flow
    }
}
