//! Instrumented images: programs that count the executions of their blocks and edges themselves.
//!
//! `docs/design/spike-instrumentation.md` has the design. The plan of an image follows from the image alone, so that the
//! file with the counts needs no tables: who reads it makes the plan again.

pub(crate) mod code;
pub(crate) mod editor;
mod flow;
mod frequency;
mod insert;
mod points;
pub(crate) mod registers;
mod routine;
mod spanning_tree;
pub(crate) mod start;
mod update;

use crate::assemble::{Assembly, CodeLayout, Fragment, NOP, assemble};
use crate::counts::{self, CountsHeader};
use crate::error::Problem;
use crate::layout;
use crate::optimize;
use crate::output;
use crate::profile::IndirectCall;
use crate::program::{Anchor, CodeBlockId, CodeExit, ExternalCall, LiftedInstruction, Program, Reference};
use editor::Editor;
use flow::{Meaning, ProcedureFlow};
use insert::Inserter;
use routine::CounterRoutines;
use spanning_tree::SpanningTree;
use start::MappedFile;
pub use update::Update;

/// The means by which a program's executions are counted.
#[derive(Debug)]
pub struct InstrumentationPlan {
    program: Program,
    layout: CodeLayout,
    procedures: Vec<Option<ProcedureMeasure>>,
    calls: Vec<(CodeBlockId, u32)>,
    /// The offset of the counters of calls of routines.
    call_counters: u32,
    size: u64,
    update: Update,
    summary: InstrumentationSummary,
}

/// How the executions of a procedure are measured.
#[derive(Debug)]
struct ProcedureMeasure {
    flow: ProcedureFlow,
    tree: SpanningTree,
    /// Edges with counters, and the counters.
    counters: Vec<(usize, CounterCell)>,
    /// Blocks that end with jumps by tables, by their number in the procedure, and the offsets of their counters.
    jumps: Vec<(usize, u32)>,
}

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterCell {
    /// The one at an offset.
    Offset(u32),
    /// The one of the call of a routine in a block.
    Call(CodeBlockId),
}

/// Numbers of an instrumented image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstrumentationSummary {
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
    /// Counters that a call of a routine increments.
    pub calls_of_routines: usize,
    /// Indirect jumps, with a counter for each target.
    pub jumps: usize,
    /// Indirect calls, with a slot for the last target.
    pub calls: usize,
    /// Counters and slots for which registers are saved on the stack.
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
    /// A summary of the insertions.
    pub summary: InstrumentationSummary,
}

/// Instruments a program. Its counts go to the file with this absolute path, which must exist when the program starts.
pub fn instrument(program: Program, counts_path: &[u8], update: Update) -> Result<Instrumented, Problem> {
    let mut plan = InstrumentationPlan::new(program, update)?;
    let header = plan.header()?;
    start::add(&mut plan.program, &mut plan.layout, &MappedFile::counts(&header, counts_path))?;
    let (bytes, assembly) = output::write(&plan.program, &plan.layout)?;
    plan.summary.instructions = assembly.words.len();
    Ok(Instrumented { bytes, counts: header.empty_file(), summary: plan.summary })
}

impl InstrumentationPlan {
    /// Decides where counters go, and inserts them.
    pub fn new(mut program: Program, update: Update) -> Result<InstrumentationPlan, Problem> {
        let original_instructions = program.code.words.len();
        let originals = program.procedures.len() as u32;
        optimize::strip_nops(&mut program);
        let mut inserter = Inserter::new(program, update);
        let (mut procedures, mut fragments, mut all_routines) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..originals {
            let (measured, blocks) = inserter.procedure(number);
            let routines = inserter.end_of_part(&blocks);
            procedures.push(measured);
            fragments.push(Fragment { procedure: number, blocks, align: layout::ALIGN });
            fragments.extend(routines.iter().map(CounterRoutines::fragment));
            all_routines.extend(routines);
        }
        let Inserter { editor: Editor { mut program, .. }, summary, calls, next, routines, .. } = inserter;
        fragments.push(routines.fragment());
        all_routines.push(routines);
        let layout = CodeLayout { fragments };
        all_routines.iter().for_each(|routines| routines.complete(&mut program, next, update));
        separate_calls(&mut program, &layout);
        let assembly = assemble(&program, &layout, output::code_base(&program.elf))?;
        let size = u64::from(next) + assembly.words.len() as u64 * 4 + 8;
        let size = size.next_multiple_of(counts::PAGE);
        let summary = InstrumentationSummary { original_instructions, ..summary };
        Ok(InstrumentationPlan {
            program,
            layout,
            procedures,
            calls,
            call_counters: next,
            size,
            update,
            summary,
        })
    }

    /// The first bytes of the file with the counts.
    fn header(&self) -> Result<CountsHeader, Problem> {
        let assembly = assemble(&self.program, &self.layout, output::code_base(&self.program.elf))?;
        let id = counts::hash(0, self.program.code.words.iter().chain(&assembly.words));
        Ok(CountsHeader { id, calls: self.calls.len() as u64, size: self.size, update: self.update })
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
            let flow = measured.read(&procedure.blocks, self, &assembly, cell);
            for (meaning, &times) in measured.flow.meanings.iter().zip(&flow) {
                match *meaning {
                    Meaning::Block(at) => program.blocks[procedure.blocks[at] as usize].count = times,
                    Meaning::Way { from, successor, .. } => {
                        let exit = &mut program.blocks[procedure.blocks[from] as usize].exit;
                        let is_same = exit.successors().windows(2).all(|pair| pair[0] == pair[1]);
                        match exit {
                            CodeExit::Conditional { taken, count, .. }
                                if successor == 0 && taken.block().is_some() =>
                            {
                                *count += times
                            }
                            CodeExit::Conditional { count, .. } if is_same => *count += times,
                            CodeExit::Jump { counts, .. } => counts[successor] = times,
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
    fn calls(
        &self,
        program: &mut Program,
        assembly: &Assembly,
        cell: impl Fn(u32) -> u64,
    ) -> Vec<IndirectCall> {
        let entries = program
            .procedures
            .iter()
            .zip(0..)
            .map(|(procedure, number)| (assembly.block_addresses[procedure.blocks[0] as usize], number));
        let entries: std::collections::HashMap<u64, u32> = entries.collect();
        let mut calls: Vec<IndirectCall> = Vec::new();
        for &(block, offset) in &self.calls {
            let anchor = self.program.blocks[block as usize].instructions.iter().position(|one| {
                matches!(one.reference, Reference::CounterHigh(counter) if counter.offset == offset && counter.anchor == Anchor::Instruction(0))
            });
            let (Some(at), distance) = (anchor, cell(offset)) else { continue };
            let address = (assembly.block_addresses[block as usize] + at as u64 * 4).wrapping_add(distance);
            let count = program.blocks[block as usize].count;
            if distance == 0 || count == 0 {
                continue;
            }
            match entries.get(&address) {
                Some(&procedure) => calls.push(IndirectCall { block, procedure, count }),
                None => program.external_calls.push(ExternalCall { block, low: address as u16, count }),
            }
        }
        for (block, id) in program.blocks.iter().zip(0..) {
            let slot = block.call().filter(|_| block.count > 0).map(|call| call.reference);
            let Some(Reference::CallThrough(slot)) = slot else { continue };
            if let Some(target) = program.data_at(slot) {
                calls.push(IndirectCall {
                    block: id,
                    procedure: program.blocks[target as usize].procedure,
                    count: block.count,
                });
            }
        }
        calls.sort_by_key(|call| (call.block, call.procedure));
        calls
    }
}

impl ProcedureMeasure {
    /// The flow of all edges of the procedure with these blocks.
    fn read(
        &self,
        blocks: &[CodeBlockId],
        plan: &InstrumentationPlan,
        assembly: &Assembly,
        cell: impl Fn(u32) -> u64,
    ) -> Vec<u64> {
        let mut flow = vec![0; self.flow.edges.len()];
        let address = |block: CodeBlockId| assembly.block_addresses[block as usize];
        for &(edge, counter) in &self.counters {
            flow[edge] = cell(match counter {
                CounterCell::Offset(offset) => offset,
                CounterCell::Call(block) => {
                    let calls =
                        plan.program.blocks[block as usize].instructions.iter().position(routine::is_call);
                    let back = address(block) + 4 * (calls.unwrap_or_default() as u64 + 1);
                    plan.call_counters + ((back - assembly.base) & !7) as u32
                }
            });
        }
        for (meaning, executions) in self.flow.meanings.iter().zip(&mut flow) {
            let Meaning::Way { from, successor, .. } = *meaning else { continue };
            let Some(&(_, offset)) = self.jumps.iter().find(|jump| jump.0 == from) else { continue };
            let target = plan.program.blocks[blocks[from] as usize].exit.successors()[successor];
            *executions = cell(offset + 4 * (address(target) - address(blocks[0])) as u32);
        }
        self.tree.complete(&self.flow.edges, &mut flow);
        flow
    }
}

/// Two calls of routines must not follow each other at once, as the counter of an address is that of 8 bytes.
fn separate_calls(program: &mut Program, layout: &CodeLayout) {
    let mut last: Option<CodeBlockId> = None;
    for &block in layout.fragments.iter().flat_map(|fragment| &fragment.blocks) {
        let begins = program.blocks[block as usize].instructions.first().is_some_and(routine::is_call);
        if let Some(last) = last.filter(|_| begins) {
            let instructions = &mut program.blocks[last as usize].instructions;
            if let Some(call) = instructions.last().copied().filter(routine::is_call) {
                instructions.push(LiftedInstruction::new(NOP, call.frame));
            }
        }
        if !program.blocks[block as usize].instructions.is_empty() {
            last = Some(block);
        }
    }
}
