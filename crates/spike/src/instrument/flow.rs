//! The flow graph of a procedure, as far as counters measure it.
//!
//! A block is an edge, from the vertex at which it begins to the one at which it ends, so that it can have a counter of its
//! own; so is each way from a block to another one. One more vertex stands for all that is outside the procedure.

use super::frequency::{ENTRY, Frequencies};
use super::points::Points;
use super::spanning_tree::{FlowEdge, FlowMeasure};
use crate::program::{CodeBlockId, CodeExit, DataForm, Procedure, ProcedureId, Program, Reference};

/// The vertex outside the procedure.
const OUTSIDE: usize = 0;
/// The instructions of a counter. One on a branch that is taken has another branch.
const COUNTER_COST: u64 = 5;

/// The meaning of an edge of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The executions of a block.
    Block(usize),
    /// The way from a block to its successor with this number ([`CodeExit::successors`]), or if `is_outside` by its branch out
    /// of the procedure.
    Way {
        /// The block.
        from: usize,
        /// The number of the successor.
        successor: usize,
        /// Whether the branch leaves the procedure.
        is_outside: bool,
    },
    /// Control that comes from outside.
    Entry,
    /// Control that leaves, or does not return from a call.
    Leave,
}

/// The estimate from which on an edge is frequent, chosen so that code grows by 30 %.
const FREQUENT: u64 = ENTRY / 5;

/// The flow graph of a procedure.
#[derive(Clone, Debug)]
pub struct ProcedureFlow {
    /// The edges.
    pub edges: Vec<FlowEdge>,
    /// The meaning of each.
    pub meanings: Vec<Meaning>,
    /// The number of vertices.
    pub vertices: usize,
}

/// The blocks that control can enter from outside their procedures.
#[derive(Clone, Debug)]
pub struct EntryBlocks(Vec<bool>);

impl EntryBlocks {
    /// Finds them. Targets of jumps by tables are none, as the jumps are counted.
    pub fn new(program: &Program) -> EntryBlocks {
        let mut entries = vec![false; program.blocks.len()];
        let mut enter =
            |block: Option<CodeBlockId>| block.into_iter().for_each(|block| entries[block as usize] = true);
        program.procedures.iter().for_each(|procedure| enter(procedure.blocks.first().copied()));
        for symbol in program.elf.symbols.iter().filter(|symbol| symbol.section != 0) {
            enter(program.code.block(symbol.value));
        }
        enter(program.code.block(program.elf.entry));
        for reference in &program.data {
            let has_jump = || {
                let procedure =
                    &program.procedures[program.blocks[reference.target as usize].procedure as usize];
                procedure.blocks.iter().any(|&block| matches!(&program.blocks[block as usize].exit, CodeExit::Jump { targets, .. } if targets.contains(&reference.target)))
            };
            if reference.form == DataForm::Absolute || !has_jump() {
                enter(Some(reference.target));
            }
        }
        for block in &program.blocks {
            for instruction in &block.instructions {
                match instruction.reference {
                    Reference::Branch(target) => enter(target.block()),
                    Reference::CodeHigh(block) | Reference::CodeLow(block) => enter(Some(block)),
                    _ => {}
                }
            }
            let others = block.exit.successors().into_iter();
            others
                .filter(|&to| program.blocks[to as usize].procedure != block.procedure)
                .for_each(|to| enter(Some(to)));
        }
        EntryBlocks(entries)
    }

    /// Whether control can enter this block.
    pub fn has(&self, block: CodeBlockId) -> bool {
        self.0[block as usize]
    }
}

/// The procedures that certainly return to their callers: they call none but such ones, and make no system calls.
#[derive(Clone, Debug)]
pub struct ReturningProcedures(Vec<bool>);

impl ReturningProcedures {
    /// Finds them. Recursive ones are not among them.
    pub fn new(program: &Program) -> ReturningProcedures {
        let mut returning = ReturningProcedures(vec![false; program.procedures.len()]);
        loop {
            let mut is_changed = false;
            for (procedure, number) in program.procedures.iter().zip(0..) {
                if !returning.0[number]
                    && program.may_change(number as ProcedureId)
                    && returning.follows(program, procedure)
                {
                    returning.0[number] = true;
                    is_changed = true;
                }
            }
            if !is_changed {
                return returning;
            }
        }
    }

    fn follows(&self, program: &Program, procedure: &Procedure) -> bool {
        procedure.blocks.iter().map(|&block| &program.blocks[block as usize]).all(|block| {
            let is_quiet = |one: &crate::program::LiftedInstruction| {
                one.op() != Some(isa::Op::CallPal) && (!one.is_call() || self.returns(program, one))
            };
            let stays = |to: CodeBlockId| {
                program.blocks[to as usize].procedure
                    == program.blocks[procedure.blocks[0] as usize].procedure
            };
            let is_end = match &block.exit {
                CodeExit::Leave => {
                    block.instructions.last().is_some_and(|last| last.op() == Some(isa::Op::Ret))
                }
                CodeExit::Branch { target, .. } => target.block().is_some_and(stays),
                CodeExit::Conditional { taken, next, .. } => taken.block().is_some_and(stays) && stays(*next),
                CodeExit::Next(next) => stays(*next),
                CodeExit::Jump { .. } => true,
            };
            is_end && block.instructions.iter().all(is_quiet)
        })
    }

    /// Whether control certainly comes back from a call.
    pub fn returns(&self, program: &Program, call: &crate::program::LiftedInstruction) -> bool {
        super::registers::callee(program, call).is_some_and(|callee| self.0[callee as usize])
    }
}

impl ProcedureFlow {
    /// The graph of a procedure.
    pub fn new(
        program: &Program,
        number: ProcedureId,
        entries: &EntryBlocks,
        returning: &ReturningProcedures,
        points: &Points,
        local: impl Fn(CodeBlockId) -> Option<usize>,
    ) -> ProcedureFlow {
        let procedure = &program.procedures[number as usize];
        let frequencies = Frequencies::new(program, &procedure.blocks, &local);
        let (begin, end) = (|at: usize| 1 + 2 * at, |at: usize| 2 + 2 * at);
        let mut flow = ProcedureFlow {
            edges: Vec::new(),
            meanings: Vec::new(),
            vertices: 1 + 2 * procedure.blocks.len(),
        };
        let mut predecessors = vec![0u32; procedure.blocks.len()];
        let mut ways = Vec::new();
        for (&id, at) in procedure.blocks.iter().zip(0..) {
            let block = &program.blocks[id as usize];
            let measure = match points.is_open(at) {
                true => FlowMeasure::Counter(frequencies.block(at).saturating_mul(COUNTER_COST)),
                false => FlowMeasure::Derived,
            };
            flow.push(begin(at), end(at), measure, Meaning::Block(at));
            let mut leaves = block.call().is_some_and(|call| !returning.returns(program, call));
            let mut own = Vec::new();
            for (to, successor) in block.exit.successors().into_iter().zip(0..) {
                match local(to) {
                    Some(to) => own.push((Some(to), successor)),
                    None if is_taken(&block.exit, successor) => own.push((None, successor)),
                    None => leaves = true,
                }
            }
            leaves |= matches!(block.exit, CodeExit::Leave | CodeExit::Branch { .. }) && own.is_empty();
            if let CodeExit::Conditional { taken: crate::program::BranchTarget::Address(_), .. } = block.exit
            {
                leaves = true;
            }
            if leaves {
                flow.push(end(at), OUTSIDE, FlowMeasure::Derived, Meaning::Leave);
            }
            own.iter().for_each(|&(to, _)| to.into_iter().for_each(|to| predecessors[to] += 1));
            let count = own.len() + usize::from(leaves);
            ways.extend(own.into_iter().map(|(to, successor)| (at, to, successor, count)));
        }
        for (&id, at) in procedure.blocks.iter().zip(0..) {
            if entries.has(id) || predecessors[at] == 0 {
                predecessors[at] += 1;
                flow.push(OUTSIDE, begin(at), FlowMeasure::Derived, Meaning::Entry);
            }
        }
        for (from, to, successor, count) in ways {
            let exit = &program.blocks[procedure.blocks[from] as usize].exit;
            let is_critical = count > 1 && to.is_none_or(|to| predecessors[to] > 1);
            let measure = if matches!(exit, CodeExit::Jump { .. }) {
                FlowMeasure::Known
            } else if is_critical && points.is_open_between(from, to) {
                let is_taken = is_taken(exit, successor);
                let is_backward = to.is_some_and(|to| to <= from);
                let frequency = frequencies.edge(from, exit, is_taken, is_backward);
                FlowMeasure::Counter(frequency.saturating_mul(COUNTER_COST + u64::from(is_taken)))
            } else {
                FlowMeasure::Derived
            };
            let meaning = Meaning::Way { from, successor, is_outside: to.is_none() };
            flow.push(end(from), to.map_or(OUTSIDE, begin), measure, meaning);
        }
        flow
    }

    /// Whether an edge is estimated to be executed often, in comparison with its procedure.
    pub fn is_frequent(&self, edge: usize) -> bool {
        matches!(self.edges[edge].measure, FlowMeasure::Counter(cost) if cost >= FREQUENT * COUNTER_COST)
    }

    fn push(&mut self, from: usize, to: usize, measure: FlowMeasure, meaning: Meaning) {
        self.edges.push(FlowEdge { from, to, measure });
        self.meanings.push(meaning);
    }
}

/// Whether a successor is the target of a conditional branch.
pub fn is_taken(exit: &CodeExit, successor: usize) -> bool {
    successor == 0
        && matches!(exit, CodeExit::Conditional { taken: crate::program::BranchTarget::Block(_), .. })
}
