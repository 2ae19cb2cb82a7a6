//! Branch logs: patched images that write, wherever they run, which way control goes, and the reconstruction of all executed
//! instructions from that, as DIGITAL's PatchWrx did.
//!
//! `docs/design/branch-log.md` has the design. What is patched follows from the original image alone, so that the log needs no
//! tables: who reads it plans again.

mod files;
pub mod log;
mod profile;
mod reconstruct;
mod record_points;
mod routine;

use crate::assemble::{Assembly, CodeLayout, Fragment, assemble};
use crate::counts::{self, PAGE};
use crate::error::Problem;
use crate::instrument::code::{InsertedState, saving};
use crate::instrument::editor::{Editor, Insertion, PartLength, ProcedureFacts};
use crate::instrument::start::{self, MappedFile};
use crate::layout;
use crate::optimize;
use crate::output;
use crate::program::{CodeBlock, CodeBlockId, CodeExit, LiftedInstruction, NO_ORIGIN, ProcedureId, Program};
pub use files::{LogFile, plan};
pub use profile::BlockCounts;
pub use reconstruct::{LoggedImage, ReconstructedStep, Reconstruction, reconstruct};
use record_points::{ProcedureRecords, RecordMeaning};
use routine::{LogRoutines, RoutineRegisters};

/// Numbers of a patched image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchSummary {
    /// Procedures that log their branches.
    pub procedures: usize,
    /// Procedures that cannot be changed, or whose paths a log could not tell apart: what they execute is not in the log.
    pub unpatched: usize,
    /// Points at which records are written.
    pub record_points: usize,
    /// Instructions of the original image.
    pub original_instructions: usize,
    /// Instructions of the patched one.
    pub instructions: usize,
}

/// An image of a log, patched or to be reconstructed.
#[derive(Debug)]
pub struct LogImage {
    program: Program,
    layout: CodeLayout,
    /// The original addresses of the blocks, and their numbers of instructions.
    extents: Vec<(u64, u32)>,
    capacity: u32,
    /// The record points of each procedure that is patched.
    record_points: Vec<Option<ProcedureRecords>>,
    /// The blocks with calls that write records, and what they are for.
    calls: Vec<(CodeBlockId, RecordMeaning)>,
    summary: PatchSummary,
}

impl LogImage {
    /// Decides where records are written, and inserts the calls. The image has this number in a log with two to the power of `capacity`
    /// records.
    pub fn new(mut program: Program, image: usize, capacity: u32) -> LogImage {
        let extents = extents(&program);
        let original_instructions = program.code.words.len();
        let originals = program.procedures.len() as ProcedureId;
        optimize::strip_nops(&mut program);
        let routines = LogRoutines::new(&mut program, image as u32, capacity);
        let mut patcher = LogPatcher {
            editor: Editor::new(program),
            routines,
            part: PartLength::default(),
            calls: Vec::new(),
        };
        let (mut record_points, mut fragments) = (Vec::new(), Vec::new());
        for number in 0..originals {
            let (own, blocks) = patcher.procedure(number);
            fragments.extend(patcher.end_of_part(&blocks));
            fragments.push(Fragment { procedure: number, blocks, align: layout::ALIGN });
            record_points.push(own);
        }
        let LogPatcher { editor: Editor { program, .. }, routines, calls, .. } = patcher;
        fragments.push(routines.fragment());
        let procedures = record_points.iter().flatten().count();
        let summary = PatchSummary {
            procedures,
            unpatched: record_points.len() - procedures,
            record_points: calls.len(),
            original_instructions,
            instructions: 0,
        };
        LogImage {
            program,
            layout: CodeLayout { fragments },
            extents,
            capacity,
            record_points,
            calls,
            summary,
        }
    }

    /// A summary of the insertions.
    pub fn summary(&self) -> PatchSummary {
        self.summary
    }

    /// A hash of the original code and what was inserted, and of the images `before`, by their hash.
    pub fn hash(&self, before: u64) -> Result<u64, Problem> {
        let assembly = assemble(&self.program, &self.layout, output::code_base(&self.program.elf))?;
        Ok(counts::hash(before, self.program.code.words.iter().chain(&assembly.words)))
    }

    /// The patched image, which maps the log with this [`LogImage::hash`] and absolute path, and the link-time address of the log's switch.
    pub fn write(&mut self, id: u64, path: &[u8]) -> Result<(Vec<u8>, u64), Problem> {
        let file = MappedFile {
            id,
            size: log::size(self.capacity),
            path,
            first_counter: None,
            has_own_page: true,
            message: ": is missing, cannot be written, or is not that of this patched image; this run is not logged. Patch the image again\n",
        };
        start::add(&mut self.program, &mut self.layout, &file)?;
        let (bytes, assembly) = output::write(&self.program, &self.layout)?;
        self.summary.instructions = assembly.words.len();
        Ok((bytes, assembly.counters + PAGE + log::SWITCH as u64))
    }

    /// The return addresses of the calls in the patched image, and what they are for.
    fn returns<'a>(&'a self, assembly: &'a Assembly) -> impl Iterator<Item = (u64, RecordMeaning)> + 'a {
        let is_call = |one: &LiftedInstruction| one.origin == NO_ORIGIN && one.op() == Some(isa::Op::Bsr);
        self.calls.iter().filter_map(move |&(block, meaning)| {
            let at = self.program.blocks[block as usize].instructions.iter().position(is_call)?;
            Some((assembly.block_addresses[block as usize] + 4 * (at as u64 + 1), meaning))
        })
    }
}

struct LogPatcher {
    editor: Editor,
    routines: LogRoutines,
    part: PartLength,
    calls: Vec<(CodeBlockId, RecordMeaning)>,
}

impl LogPatcher {
    /// Inserts the calls of a procedure. Returns its record points, if it is patched, and its blocks in their new order.
    fn procedure(&mut self, number: ProcedureId) -> (Option<ProcedureRecords>, Vec<CodeBlockId>) {
        if !self.editor.program.may_change(number) {
            return (None, self.editor.program.procedures[number as usize].blocks.clone());
        }
        let facts = self.editor.analyse(number);
        let Some(record_points) = ProcedureRecords::new(&self.editor, &facts) else {
            return (None, facts.blocks);
        };
        let heads: Vec<Insertion> = record_points.heads().map(|at| self.head(&facts, at)).collect();
        let ways: Vec<(usize, usize)> = record_points.ways().collect();
        let way = |(from, successor)| (from, successor, self.way(&facts, from, successor));
        let ways = ways.into_iter().map(way).collect();
        let order = self.editor.insert_ways(&facts, ways);
        self.editor.insert(heads);
        (Some(record_points), order)
    }

    fn head(&mut self, facts: &ProcedureFacts, at: usize) -> Insertion {
        let states = self.editor.states(facts, at);
        // Where the fewest registers must be saved.
        let cost = |position: &usize| RoutineRegisters::new(states[*position].live).saves();
        let position = (0..states.len()).min_by_key(cost).unwrap_or(0);
        let block = facts.blocks[at];
        let state = states[position];
        self.calls.push((block, RecordMeaning::Head(block)));
        let instructions = self.call(state);
        Insertion { block, position, instructions }
    }

    fn way(&mut self, facts: &ProcedureFacts, from: usize, successor: usize) -> CodeBlockId {
        let (block, state) = self.editor.add_way(facts, from, successor);
        let to = self.editor.program.blocks[block as usize].exit.successors()[0];
        self.calls.push((block, RecordMeaning::Way(facts.blocks[from], to)));
        self.editor.program.blocks[block as usize].instructions = self.call(state);
        block
    }

    /// The call of a routine in a state.
    fn call(&mut self, state: InsertedState) -> Vec<LiftedInstruction> {
        let program = &mut self.editor.program;
        let (call, saved) = self.routines.call(program, state.live);
        saving(saved.as_slice(), vec![call], state.frame, &mut program.frames)
    }

    /// The routines that precede a procedure with these blocks, if the last ones are too far away.
    fn end_of_part(&mut self, blocks: &[CodeBlockId]) -> Option<Fragment> {
        self.part.add(&self.editor.program, blocks).then(|| {
            let next = self.routines.another(&mut self.editor.program);
            std::mem::replace(&mut self.routines, next).fragment()
        })
    }
}

/// The addresses of the blocks of a program, and their numbers of instructions.
fn extents(program: &Program) -> Vec<(u64, u32)> {
    let branch = |block: &CodeBlock| {
        u32::from(matches!(block.exit, CodeExit::Branch { .. } | CodeExit::Conditional { .. }))
    };
    let mut extents: Vec<(u64, u32)> =
        program.blocks.iter().map(|block| (0, block.instructions.len() as u32 + branch(block))).collect();
    for (block, index) in program.code.block_at.iter().zip(0..) {
        block.iter().for_each(|&block| extents[block as usize].0 = program.code.address(index));
    }
    extents
}
