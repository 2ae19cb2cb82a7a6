//! Inserts counters.

use isa::Op;

use super::code::{InsertedAction, InsertedState, code};
use super::editor::{Editor, Insertion, PartLength, ProcedureFacts};
use super::flow::{Meaning, ProcedureFlow, ReturningProcedures};
use super::routine::CounterRoutines;
use super::spanning_tree::SpanningTree;
use super::{CounterCell, InstrumentationSummary, ProcedureMeasure, Update};
use crate::assemble;
use crate::counts::HEADER_BYTES;
use crate::program::{
    CodeBlock, CodeBlockId, CodeExit, LENGTH, LiftedInstruction, ProcedureId, Program, Reference,
};

/// The most instructions that are inserted before an indirect jump.
const MOST_BEFORE_JUMP: u64 = 14;

/// A program to which counters are added.
pub struct Inserter {
    /// The program.
    pub editor: Editor,
    /// A summary of the insertions.
    pub summary: InstrumentationSummary,
    /// The routines of this part of the code.
    pub routines: CounterRoutines,
    part: PartLength,
    /// Indirect calls, and the offsets of their last targets.
    pub calls: Vec<(CodeBlockId, u32)>,
    /// The offset of the next counter.
    pub next: u32,
    next_call: u32,
    returning: ReturningProcedures,
    update: Update,
}

impl Inserter {
    /// Analyses a program.
    pub fn new(mut program: Program, update: Update) -> Inserter {
        let routines = CounterRoutines::new(&mut program);
        let is_kept = |block: &&CodeBlock| program.may_change(block.procedure) && is_indirect_call(block);
        let calls = program.blocks.iter().filter(is_kept).count() as u32;
        Inserter {
            summary: InstrumentationSummary::default(),
            routines,
            part: PartLength::default(),
            calls: Vec::new(),
            next: HEADER_BYTES + 8 * calls,
            next_call: HEADER_BYTES,
            returning: ReturningProcedures::new(&program),
            editor: Editor::new(program),
            update,
        }
    }

    /// Inserts the counters of a procedure. Returns how it is measured, and its blocks in their new order.
    pub fn procedure(&mut self, number: ProcedureId) -> (Option<ProcedureMeasure>, Vec<CodeBlockId>) {
        let program = &self.editor.program;
        if !program.may_change(number) {
            self.summary.frozen += 1;
            return (None, program.procedures[number as usize].blocks.clone());
        }
        let facts = self.editor.analyse(number);
        let flow = self.flow(&facts);
        let Some(tree) = SpanningTree::new(flow.vertices, &flow.edges) else {
            self.summary.unmeasured += 1;
            return (None, facts.blocks);
        };
        self.summary.procedures += 1;
        let (mut insertions, mut ways) = (Vec::new(), Vec::new());
        let mut measured = ProcedureMeasure { flow, tree, counters: Vec::new(), jumps: Vec::new() };
        for edge in 0..measured.flow.edges.len() {
            if !measured.tree.has_counter(&measured.flow.edges, edge) {
                continue;
            }
            let is_frequent = measured.flow.is_frequent(edge);
            let cell = match measured.flow.meanings[edge] {
                Meaning::Block(at) => {
                    let (insertion, cell) = self.count_block(&facts, at, is_frequent);
                    insertions.push(insertion);
                    cell
                }
                Meaning::Way { from, successor, .. } => {
                    let (block, cell) = self.count_way(&facts, from, successor, is_frequent);
                    ways.push((from, successor, block));
                    cell
                }
                Meaning::Entry | Meaning::Leave => unreachable!("these have no counters"),
            };
            measured.counters.push((edge, cell));
        }
        self.last_targets(&facts, &mut insertions);
        let order = self.editor.insert_ways(&facts, ways);
        self.jumps(&facts, &order, &mut measured, &mut insertions);
        self.editor.insert(insertions);
        (Some(measured), order)
    }

    fn flow(&self, facts: &ProcedureFacts) -> ProcedureFlow {
        let Editor { program, entries, .. } = &self.editor;
        let local = self.editor.local(facts.procedure);
        ProcedureFlow::new(program, facts.procedure, entries, &self.returning, &facts.points, &local)
    }

    fn count_block(
        &mut self,
        facts: &ProcedureFacts,
        at: usize,
        is_frequent: bool,
    ) -> (Insertion, CounterCell) {
        self.summary.block_counters += 1;
        let states = self.editor.states(facts, at);
        let position = (0..states.len()).min_by_key(|&position| states[position].cost()).unwrap_or(0);
        let block = facts.blocks[at];
        let (instructions, cell) = self.count(states[position], is_frequent, block);
        (Insertion { block, position, instructions }, cell)
    }

    /// Adds a block for the way from a block to its successor.
    fn count_way(
        &mut self,
        facts: &ProcedureFacts,
        from: usize,
        successor: usize,
        is_frequent: bool,
    ) -> (CodeBlockId, CounterCell) {
        self.summary.edge_counters += 1;
        let (id, state) = self.editor.add_way(facts, from, successor);
        let (instructions, cell) = self.count(state, is_frequent, id);
        self.editor.program.blocks[id as usize].instructions = instructions;
        (id, cell)
    }

    /// A counter in this block: by its instructions if control often comes here, otherwise by a call.
    fn count(
        &mut self,
        state: InsertedState,
        is_frequent: bool,
        block: CodeBlockId,
    ) -> (Vec<LiftedInstruction>, CounterCell) {
        let routine = match is_frequent {
            true => None,
            false => self.routines.call(&mut self.editor.program, state.live, state.frame),
        };
        if let Some((call, is_saving)) = routine {
            self.summary.calls_of_routines += 1;
            self.summary.saved += usize::from(is_saving);
            return (vec![call], CounterCell::Call(block));
        }
        let offset = self.next;
        self.next += 8;
        (self.code(InsertedAction::Count(offset), state), CounterCell::Offset(offset))
    }

    fn code(&mut self, action: InsertedAction, state: InsertedState) -> Vec<LiftedInstruction> {
        self.summary.saved += usize::from(state.cost().0 > 0);
        code(action, self.update, state, &mut self.editor.program.frames)
    }

    fn last_targets(&mut self, facts: &ProcedureFacts, insertions: &mut Vec<Insertion>) {
        for (at, &block) in facts.blocks.iter().enumerate() {
            if !is_indirect_call(&self.editor.program.blocks[block as usize]) {
                continue;
            }
            let offset = self.next_call;
            let instructions = self.before_last(facts, at, |register| InsertedAction::Keep(offset, register));
            self.next_call += 8;
            self.summary.calls += 1;
            self.calls.push((block, offset));
            insertions.extend(instructions);
        }
    }

    /// Code before the jump or the call through a register at the end of a block.
    fn before_last(
        &mut self,
        facts: &ProcedureFacts,
        at: usize,
        action: impl Fn(u8) -> InsertedAction,
    ) -> Option<Insertion> {
        let id = facts.blocks[at];
        let (position, state) = self.editor.state_before_last(facts, at)?;
        let last = self.editor.program.blocks[id as usize].instructions[position];
        let register = isa::decode(last.word)?.rb();
        let instructions = self.code(action(register), state);
        Some(Insertion { block: id, position, instructions })
    }

    /// Counters for each target of jumps by tables.
    fn jumps(
        &mut self,
        facts: &ProcedureFacts,
        order: &[CodeBlockId],
        measured: &mut ProcedureMeasure,
        insertions: &mut Vec<Insertion>,
    ) {
        let is_jump = |program: &Program, block: CodeBlockId| {
            matches!(&program.blocks[block as usize].exit, CodeExit::Jump { .. })
        };
        let jumps: Vec<usize> =
            (0..facts.blocks.len()).filter(|&at| is_jump(&self.editor.program, facts.blocks[at])).collect();
        let own = |&block: &CodeBlockId| assemble::size(&self.editor.program, block, None);
        let inserted: usize = insertions.iter().map(|one| one.instructions.len()).sum();
        let size =
            order.iter().map(own).sum::<u64>() + inserted as u64 + MOST_BEFORE_JUMP * jumps.len() as u64;
        for at in jumps {
            let offset = self.next;
            // Four times the procedure's bytes: an address has its counter at four times its distance from the entry.
            self.next += (4 * size * LENGTH) as u32;
            measured.jumps.push((at, offset));
            self.summary.jumps += 1;
            let entry = facts.blocks[0];
            insertions.extend(
                self.before_last(facts, at, |register| InsertedAction::CountTarget(offset, register, entry)),
            );
        }
    }

    /// The routines that follow a procedure with these blocks, if the next ones are too far away.
    pub fn end_of_part(&mut self, blocks: &[CodeBlockId]) -> Option<CounterRoutines> {
        self.part.add(&self.editor.program, blocks).then(|| {
            let next = CounterRoutines::new(&mut self.editor.program);
            std::mem::replace(&mut self.routines, next)
        })
    }
}

/// Whether a block ends with a call of an address that only its execution shows.
fn is_indirect_call(block: &CodeBlock) -> bool {
    block.call().is_some_and(|call| call.op() == Some(Op::Jsr) && call.reference == Reference::None)
}
