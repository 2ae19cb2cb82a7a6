//! Inserts code into procedures without changing what they do.

use isa::Op;

use super::code::InsertedState;
use super::flow::{EntryBlocks, is_taken};
use super::points::{Points, Preserving, local_numbers, pointer_after};
use super::registers::{BlockLiveness, Overwritten};
use crate::assemble;
use crate::program::{
    BranchTarget, CodeBlock, CodeBlockId, CodeExit, LiftedInstruction, ProcedureId, Program,
};

/// A program, and what must be known of it to insert code.
#[derive(Debug)]
pub struct Editor {
    /// The program.
    pub program: Program,
    /// The blocks that control can enter from outside their procedures.
    pub entries: EntryBlocks,
    numbers: Vec<usize>,
    overwritten: Overwritten,
    preserving: Preserving,
}

/// The results of the analysis of a procedure.
#[derive(Debug)]
pub struct ProcedureFacts {
    /// The procedure.
    pub procedure: ProcedureId,
    /// Its blocks.
    pub blocks: Vec<CodeBlockId>,
    /// The registers that its blocks need.
    pub liveness: BlockLiveness,
    /// Where code may be inserted.
    pub points: Points,
}

/// Code to be inserted into a block.
#[derive(Debug)]
pub struct Insertion {
    /// The block.
    pub block: CodeBlockId,
    /// The number of its instruction before which it is inserted.
    pub position: usize,
    /// The code.
    pub instructions: Vec<LiftedInstruction>,
}

/// Instructions of a part of the code: far fewer than a branch spans, as one procedure may be large.
const PART: u64 = 1 << 18;

/// The length of the code since the last routines, which every part of the code has within its reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartLength(u64);

impl PartLength {
    /// Adds a procedure with these blocks. Returns whether the part ends with it.
    pub fn add(&mut self, program: &Program, blocks: &[CodeBlockId]) -> bool {
        self.0 += blocks.iter().map(|&block| assemble::size(program, block, None)).sum::<u64>();
        let ends = self.0 > PART;
        if ends {
            self.0 = 0;
        }
        ends
    }
}

impl Editor {
    /// Analyses a program.
    pub fn new(program: Program) -> Editor {
        Editor {
            entries: EntryBlocks::new(&program),
            numbers: local_numbers(&program),
            overwritten: Overwritten::new(&program),
            preserving: Preserving::new(&program),
            program,
        }
    }

    /// Analyses a procedure.
    pub fn analyse(&self, procedure: ProcedureId) -> ProcedureFacts {
        let blocks = self.program.procedures[procedure as usize].blocks.clone();
        let local = self.local(procedure);
        let liveness = BlockLiveness::new(&self.program, &self.overwritten, procedure, &local);
        let is_entry = |at: usize| self.entries.has(blocks[at]);
        let points = Points::new(&self.program, &self.preserving, procedure, is_entry, &local);
        ProcedureFacts { procedure, blocks, liveness, points }
    }

    /// The number of a block within this procedure.
    pub fn local(&self, procedure: ProcedureId) -> impl Fn(CodeBlockId) -> Option<usize> {
        move |block| {
            let is_own = self.program.blocks[block as usize].procedure == procedure;
            is_own.then(|| self.numbers[block as usize])
        }
    }

    /// The states at the positions of a block at which code that it executes once can be inserted.
    pub fn states(&self, facts: &ProcedureFacts, at: usize) -> Vec<InsertedState> {
        let block = &self.program.blocks[facts.blocks[at] as usize];
        let live =
            facts.liveness.within(&self.program, &self.overwritten, block, self.local(facts.procedure));
        let mut has_pointer = facts.points.has_pointer(at);
        let mut states = Vec::new();
        for (index, &live) in live.iter().enumerate() {
            states.push(InsertedState { live, has_pointer, frame: frame(block, index) });
            let Some(one) = block.instructions.get(index).filter(|one| !ends_insertion(one)) else { break };
            has_pointer = pointer_after(&self.program, &self.preserving, one, has_pointer);
        }
        states
    }

    /// The state before the last instruction of a block. The global pointer is not asked for.
    pub fn state_before_last(&self, facts: &ProcedureFacts, at: usize) -> Option<(usize, InsertedState)> {
        let block = &self.program.blocks[facts.blocks[at] as usize];
        let position = block.instructions.len().checked_sub(1)?;
        let live =
            facts.liveness.within(&self.program, &self.overwritten, block, self.local(facts.procedure));
        Some((
            position,
            InsertedState { live: live[position], has_pointer: false, frame: frame(block, position) },
        ))
    }

    /// Adds an empty block for the way from a block to its successor. Returns it, and the state in it.
    pub fn add_way(
        &mut self,
        facts: &ProcedureFacts,
        from: usize,
        successor: usize,
    ) -> (CodeBlockId, InsertedState) {
        let to = self.program.blocks[facts.blocks[from] as usize].exit.successors()[successor];
        let state = InsertedState {
            live: facts.liveness.at_block(self.local(facts.procedure)(to)),
            has_pointer: facts.points.has_pointer_after(from),
            frame: frame(&self.program.blocks[to as usize], 0),
        };
        let block = self.program.add_block(CodeBlock::new(facts.procedure, Vec::new(), CodeExit::Next(to)));
        (block, state)
    }

    /// Puts blocks between blocks. Returns all in their new order: those on branches that are taken come last.
    pub fn insert_ways(
        &mut self,
        facts: &ProcedureFacts,
        ways: Vec<(usize, usize, CodeBlockId)>,
    ) -> Vec<CodeBlockId> {
        let (mut behind, mut last) = (vec![None; facts.blocks.len()], Vec::new());
        for (from, successor, block) in ways {
            let exit = &mut self.program.blocks[facts.blocks[from] as usize].exit;
            let is_taken = is_taken(exit, successor);
            match exit {
                CodeExit::Conditional { taken, .. } if is_taken => *taken = BranchTarget::Block(block),
                CodeExit::Conditional { next, .. } | CodeExit::Next(next) => *next = block,
                _ => unreachable!("other ways have no code of their own"),
            }
            if is_taken { last.push(block) } else { behind[from] = Some(block) }
        }
        let each =
            facts.blocks.iter().zip(behind).flat_map(|(&block, behind)| std::iter::once(block).chain(behind));
        each.chain(last).collect()
    }

    /// Inserts code into blocks.
    pub fn insert(&mut self, mut insertions: Vec<Insertion>) {
        insertions.sort_by_key(|one| std::cmp::Reverse(one.position));
        for one in insertions {
            let instructions = &mut self.program.blocks[one.block as usize].instructions;
            instructions.splice(one.position..one.position, one.instructions);
        }
    }
}

/// Whether what is inserted behind an instruction may be executed otherwise than once, or between locked accesses.
fn ends_insertion(one: &LiftedInstruction) -> bool {
    one.is_call()
        || matches!(
            one.op(),
            Some(
                Op::CallPal
                    | Op::LdlL
                    | Op::LdqL
                    | Op::StlC
                    | Op::StqC
                    | Op::Jmp
                    | Op::Ret
                    | Op::JsrCoroutine
            )
        )
}

/// The frame at a position of a block.
fn frame(block: &CodeBlock, position: usize) -> u32 {
    let branch = match &block.exit {
        CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
        _ => None,
    };
    block.instructions.get(position).or(branch).or(block.instructions.last()).map_or(0, |one| one.frame)
}
