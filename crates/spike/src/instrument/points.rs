//! Facts at the beginnings of a procedure's blocks: whether the global pointer is in its register, and whether code may be
//! inserted there.

use isa::{Flags, InstructionSet, Op, Register};

use crate::program::{
    CodeBlock, CodeBlockId, CodeExit, GP, LiftedInstruction, Procedure, ProcedureId, Program, Reference,
};

use super::registers::callee;

/// The procedures that return with the global pointer that they were called with.
#[derive(Clone, Debug)]
pub struct Preserving(Vec<bool>);

impl Preserving {
    /// Finds them: the largest set of procedures that restore the pointer after calls of others, before they return.
    pub fn new(program: &Program) -> Preserving {
        let first = program.global_pointers.first().map(|one| one.value);
        let is_one = program.global_pointers.iter().all(|one| Some(one.value) == first);
        let mut preserving = Preserving(vec![is_one; program.procedures.len()]);
        let numbers = local_numbers(program);
        let mut is_changed = is_one;
        while std::mem::take(&mut is_changed) {
            for number in 0..program.procedures.len() {
                if preserving.0[number] && !preserving.returns_with(program, number, &numbers) {
                    preserving.0[number] = false;
                    is_changed = true;
                }
            }
        }
        preserving
    }

    fn returns_with(&self, program: &Program, number: usize, numbers: &[usize]) -> bool {
        let procedure = &program.procedures[number];
        if !program.may_change(number as u32) {
            return false;
        }
        let local = |block: CodeBlockId| {
            (program.blocks[block as usize].procedure == number as u32).then(|| numbers[block as usize])
        };
        let (_, after) = valid_pointer(program, self, procedure, local, |_| true);
        procedure.blocks.iter().zip(after).all(|(&block, after)| {
            let block = &program.blocks[block as usize];
            let leaves = match &block.exit {
                CodeExit::Leave => block
                    .instructions
                    .last()
                    .is_some_and(|last| last.op().is_some_and(|op| op.is(Flags::BRANCH))),
                exit => {
                    let is_tail = |to: &CodeBlockId| {
                        let other = program.blocks[*to as usize].procedure;
                        other != number as u32 && !self.0[other as usize]
                    };
                    return !exit.successors().iter().any(is_tail)
                        && (after || !leaves_by_branch(exit, &local));
                }
            };
            after || !leaves
        })
    }
}

fn leaves_by_branch(exit: &CodeExit, local: &impl Fn(CodeBlockId) -> Option<usize>) -> bool {
    let is_outside = |target: &crate::program::BranchTarget| target.block().and_then(local).is_none();
    match exit {
        CodeExit::Branch { target, .. } | CodeExit::Conditional { taken: target, .. } => is_outside(target),
        _ => false,
    }
}

/// The number of each block within its procedure.
pub fn local_numbers(program: &Program) -> Vec<usize> {
    let mut numbers = vec![0; program.blocks.len()];
    for procedure in &program.procedures {
        procedure.blocks.iter().zip(0..).for_each(|(&block, number)| numbers[block as usize] = number);
    }
    numbers
}

/// Whether the global pointer is in its register at the beginning and at the end of each block. `at_entry` says whether it
/// is at a block's beginning when control comes from elsewhere.
fn valid_pointer(
    program: &Program,
    preserving: &Preserving,
    procedure: &Procedure,
    local: impl Fn(CodeBlockId) -> Option<usize>,
    at_entry: impl Fn(usize) -> bool,
) -> (Vec<bool>, Vec<bool>) {
    let count = procedure.blocks.len();
    let mut before: Vec<bool> = (0..count).map(at_entry).collect();
    let mut after = vec![true; count];
    loop {
        let mut is_changed = false;
        for at in 0..count {
            let block = &program.blocks[procedure.blocks[at] as usize];
            let now = block
                .instructions
                .iter()
                .fold(before[at], |valid, one| pointer_after(program, preserving, one, valid));
            is_changed |= std::mem::replace(&mut after[at], now) != now;
            for to in block.exit.successors().into_iter().filter_map(&local) {
                if !now && std::mem::replace(&mut before[to], false) {
                    is_changed = true;
                }
            }
        }
        if !is_changed {
            return (before, after);
        }
    }
}

/// Whether the global pointer is in its register behind an instruction.
pub fn pointer_after(
    program: &Program,
    preserving: &Preserving,
    instruction: &LiftedInstruction,
    before: bool,
) -> bool {
    if instruction.is_call() {
        return before
            && instruction.op() == Some(Op::Bsr)
            && callee(program, instruction).is_some_and(|callee| preserving.0[callee as usize]);
    }
    match instruction.reference {
        Reference::GlobalPointerLow(_) => return true,
        Reference::GlobalPointerHigh(_) => return false,
        _ => {}
    }
    // What is addressed by the pointer finds it there.
    let is_base = |one: isa::Instruction| {
        one.op.format() == isa::InstructionFormat::Memory && one.rb() == GP && one.ra() != GP
    };
    if isa::decode(instruction.word).is_some_and(is_base) {
        return true;
    }
    let writes = isa::Alpha
        .summary(instruction.word)
        .is_none_or(|one| one.written.contains(&Some(Register::Integer(GP))));
    before && !writes
}

/// Where the global pointer is in its register, and where a load that is locked waits for its store.
#[derive(Clone, Debug)]
pub struct Points {
    pointer_before: Vec<bool>,
    pointer_after: Vec<bool>,
    locked_before: Vec<bool>,
    locked_after: Vec<bool>,
    stores_before: Vec<bool>,
}

impl Points {
    /// Analyses a procedure.
    pub fn new(
        program: &Program,
        preserving: &Preserving,
        number: ProcedureId,
        is_entry: impl Fn(usize) -> bool,
        local: impl Fn(CodeBlockId) -> Option<usize>,
    ) -> Points {
        let procedure = &program.procedures[number as usize];
        let has_pointer = instructions(program, procedure)
            .any(|one| matches!(one.reference, Reference::GlobalPointerLow(_)));
        let starts_with_pair = procedure.blocks.first().is_some_and(|&first| {
            let block = &program.blocks[first as usize];
            block.instructions.len() == 2
                && matches!(block.instructions[1].reference, Reference::GlobalPointerLow(_))
        });
        // Callers that skip the pair have the same pointer.
        let at_entry = |at: usize| has_pointer && (!is_entry(at) || at == 1 && starts_with_pair);
        let (pointer_before, pointer_after) = if has_pointer {
            valid_pointer(program, preserving, procedure, &local, at_entry)
        } else {
            (vec![false; procedure.blocks.len()], vec![false; procedure.blocks.len()])
        };
        let (locked_before, locked_after, stores_before) = locks(program, procedure, local);
        Points { pointer_before, pointer_after, locked_before, locked_after, stores_before }
    }

    /// Whether the global pointer is in its register where a block begins.
    pub fn has_pointer(&self, at: usize) -> bool {
        self.pointer_before[at]
    }

    /// The same where one ends.
    pub fn has_pointer_after(&self, at: usize) -> bool {
        self.pointer_after[at]
    }

    /// Whether code may be inserted where a block begins.
    pub fn is_open(&self, at: usize) -> bool {
        !(self.locked_before[at] && self.stores_before[at])
    }

    /// Whether code may be inserted between two blocks.
    pub fn is_open_between(&self, from: usize, to: Option<usize>) -> bool {
        !self.locked_after[from] || to.is_some_and(|to| !self.stores_before[to])
    }
}

fn instructions<'a>(
    program: &'a Program,
    procedure: &'a Procedure,
) -> impl Iterator<Item = &'a LiftedInstruction> {
    procedure.blocks.iter().flat_map(|&block| &program.blocks[block as usize].instructions)
}

/// The effect of a block on a lock: `Some(true)` if its last such instruction is a locked load.
fn lock_effect<'a>(instructions: impl Iterator<Item = &'a LiftedInstruction>) -> Option<bool> {
    let mut effects = instructions.filter_map(|one| match one.op()? {
        Op::LdlL | Op::LdqL => Some(true),
        Op::StlC | Op::StqC => Some(false),
        _ if one.is_call() => Some(false),
        _ => None,
    });
    effects.next()
}

fn locks(
    program: &Program,
    procedure: &Procedure,
    local: impl Fn(CodeBlockId) -> Option<usize>,
) -> (Vec<bool>, Vec<bool>, Vec<bool>) {
    let count = procedure.blocks.len();
    let block = |at: usize| -> &CodeBlock { &program.blocks[procedure.blocks[at] as usize] };
    let last: Vec<Option<bool>> =
        (0..count).map(|at| lock_effect(block(at).instructions.iter().rev())).collect();
    let first: Vec<Option<bool>> = (0..count).map(|at| lock_effect(block(at).instructions.iter())).collect();
    let is_call_first = |at: usize| {
        block(at)
            .instructions
            .iter()
            .find(|one| lock_effect(std::iter::once(*one)).is_some())
            .is_some_and(LiftedInstruction::is_call)
    };
    let (mut before, mut after, mut stores) = (vec![false; count], vec![false; count], vec![false; count]);
    if last.iter().all(Option::is_none) {
        return (before, after, stores);
    }
    loop {
        let mut is_changed = false;
        for at in 0..count {
            after[at] = last[at].unwrap_or(before[at]);
            let next: Vec<usize> = block(at).exit.successors().into_iter().filter_map(&local).collect();
            for &to in &next {
                is_changed |= after[at] && !before[to];
                before[to] |= after[at];
            }
            let ahead = match first[at] {
                Some(is_load) => !is_load && !is_call_first(at),
                None => next.iter().any(|&to| stores[to]),
            };
            is_changed |= std::mem::replace(&mut stores[at], ahead) != ahead;
        }
        if !is_changed {
            return (before, after, stores);
        }
    }
}
