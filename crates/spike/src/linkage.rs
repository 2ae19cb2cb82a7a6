//! Overhead of calls that a whole image does not need.
//!
//! A procedure that is called through pointers only need not leave the global pointer as it was: its callers compute it
//! again. So computations after its last call go, and a call that is the last thing that a procedure does becomes a jump.

use std::collections::HashSet;

use isa::{Op, encode};

use crate::dataflow::{Liveness, RegisterSet, Summaries, effects};
use crate::program::{
    BranchTarget, CodeBlockId, CodeExit, GP, LiftedInstruction, ProcedureId, Program, RA, Reference, SP,
    branch_word,
};

/// Executions that were removed from the profiled run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkageReduction {
    /// Computations of the global pointer.
    pub global_pointers: u64,
    /// Returns of calls that became jumps.
    pub tail_calls: u64,
}

/// Optimizes all procedures.
pub fn optimize(program: &mut Program) -> LinkageReduction {
    let summaries = Summaries::new(program);
    let entered = entered(program);
    let mut reduction = LinkageReduction::default();
    for procedure in 0..program.procedures.len() as ProcedureId {
        if program.may_change(procedure) {
            let returns = summaries.returned(procedure);
            reduction.global_pointers += remove_global_pointers(program, procedure, returns);
            reduction.tail_calls += make_tail_calls(program, procedure, returns, &entered);
        }
    }
    reduction
}

/// Removes computations of the global pointer after which nothing reads it.
fn remove_global_pointers(program: &mut Program, procedure: ProcedureId, returns: RegisterSet) -> u64 {
    let blocks = program.procedures[procedure as usize].blocks.clone();
    let is_computed = |id: &CodeBlockId| pair(&program.blocks[*id as usize].instructions).is_some();
    if !blocks.iter().any(is_computed) {
        return 0;
    }
    let liveness = Liveness::new(program, &blocks, returns, |_| RegisterSet::ALL);
    let mut removed = 0;
    for id in blocks {
        let Some((high, low)) = pair(&program.blocks[id as usize].instructions) else { continue };
        let block = &program.blocks[id as usize];
        // From the end of the block back to the second instruction of the pair.
        let mut live = liveness.after(program, id, |_| RegisterSet::ALL);
        for instruction in block.instructions[low + 1..].iter().rev() {
            let one = effects(program, instruction);
            live = one.reads | (live - one.kills);
        }
        let is_read = |one: &LiftedInstruction| effects(program, one).reads.has(GP);
        if !live.has(GP) && !block.instructions[high + 1..low].iter().any(is_read) {
            let block = &mut program.blocks[id as usize];
            block.instructions.remove(low);
            block.instructions.remove(high);
            removed += 2 * block.count;
        }
    }
    removed
}

/// The instructions of a computation of the global pointer after a call.
fn pair(instructions: &[LiftedInstruction]) -> Option<(usize, usize)> {
    let high =
        instructions.iter().position(|one| matches!(one.reference, Reference::GlobalPointerHigh(_)))?;
    let Reference::GlobalPointerHigh(pair) = instructions[high].reference else { return None };
    let low = instructions.iter().position(|one| one.reference == Reference::GlobalPointerLow(pair))?;
    let is_after_call = isa::decode(instructions[high].word).is_some_and(|one| one.rb() == RA);
    (is_after_call && high < low).then_some((high, low))
}

/// Makes calls that are followed by a return only jumps. Returns how often a return was executed there.
fn make_tail_calls(
    program: &mut Program,
    procedure: ProcedureId,
    returns: RegisterSet,
    entered: &HashSet<CodeBlockId>,
) -> u64 {
    let blocks = program.procedures[procedure as usize].blocks.clone();
    let ends = |id: &CodeBlockId| match &program.blocks[*id as usize].exit {
        CodeExit::Next(next) if program.blocks[*id as usize].call().is_some() => {
            epilogue(program, *next).is_some()
        }
        _ => false,
    };
    let calls: Vec<CodeBlockId> = blocks.iter().copied().filter(ends).collect();
    if calls.is_empty() || !has_private_frame(program, &blocks) {
        return 0;
    }
    let mut removed = 0;
    for id in calls {
        let CodeExit::Next(next) = program.blocks[id as usize].exit else { continue };
        let Some(epilogue) = epilogue(program, next) else { continue };
        let Some(call) = program.blocks[id as usize].call().copied() else { continue };
        let Some(one) = isa::decode(call.word).filter(|one| one.ra() == RA) else { continue };
        let local = match call.reference {
            Reference::Branch(BranchTarget::Block(target)) => Some(BranchTarget::Block(target)),
            _ => None,
        };
        // Another image's procedure leaves a global pointer of its own.
        if local.is_none() && (returns.has(GP) || one.op != Op::Jsr) {
            continue;
        }
        let block = &mut program.blocks[id as usize];
        block.instructions.pop();
        block.instructions.extend(epilogue);
        match local {
            Some(target) => {
                let word = branch_word();
                block.exit = CodeExit::Branch {
                    branch: LiftedInstruction { word, reference: Reference::None, ..call },
                    target,
                };
            }
            None => {
                let word = encode::jump(Op::Jmp, 31, one.rb(), 0).unwrap_or(call.word);
                block.instructions.push(LiftedInstruction { word, ..call });
                block.exit = CodeExit::Leave;
            }
        }
        removed += block.count;
    }
    if removed > 0 {
        prune(program, procedure, entered);
    }
    removed
}

/// The restores and the adjustment of the stack pointer of a block that does nothing else before it returns.
fn epilogue(program: &Program, block: CodeBlockId) -> Option<Vec<LiftedInstruction>> {
    let block = &program.blocks[block as usize];
    let (last, rest) = block.instructions.split_last()?;
    let is_return = isa::decode(last.word).is_some_and(|one| one.op == Op::Ret && one.rb() == RA);
    if block.exit != CodeExit::Leave || !is_return {
        return None;
    }
    let does_restore = |one: &&LiftedInstruction| {
        let Some(decoded) = isa::decode(one.word) else { return false };
        let is_restore = decoded.op == Op::Ldq
            && decoded.rb() == SP
            && (decoded.ra() == RA || (9..=15).contains(&decoded.ra()));
        let is_adjustment = decoded.op == Op::Lda && decoded.ra() == SP && decoded.rb() == SP;
        is_restore || is_adjustment || one.is_nop()
    };
    rest.iter()
        .all(|one| does_restore(&one))
        .then(|| rest.iter().copied().filter(|one| !one.is_nop()).collect())
}

/// Whether the stack frame holds saved registers only, so that the called procedure cannot use it.
fn has_private_frame(program: &Program, blocks: &[CodeBlockId]) -> bool {
    blocks.iter().flat_map(|&id| &program.blocks[id as usize].instructions).all(|one| {
        let Some(decoded) = isa::decode(one.word) else { return false };
        if one.is_call() || decoded.op == Op::Ret || !effects(program, one).reads.has(SP) {
            return true;
        }
        let is_saved = decoded.ra() == RA || (9..=15).contains(&decoded.ra());
        match decoded.op {
            Op::Stq | Op::Ldq => decoded.rb() == SP && is_saved,
            Op::Lda => decoded.ra() == SP && decoded.rb() == SP,
            _ => false,
        }
    })
}

/// Removes blocks of a procedure that nothing leads to.
fn prune(program: &mut Program, procedure: ProcedureId, entered: &HashSet<CodeBlockId>) {
    let blocks = &program.procedures[procedure as usize].blocks;
    let mut open: Vec<CodeBlockId> = blocks.iter().copied().take(1).collect();
    let is_entered = |id: &CodeBlockId| program.blocks[*id as usize].is_address_taken || entered.contains(id);
    open.extend(blocks.iter().copied().filter(is_entered));
    let mut found: HashSet<CodeBlockId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for next in program.blocks[id as usize].exit.successors() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    program.procedures[procedure as usize].blocks.retain(|id| found.contains(id));
}

/// The blocks that control enters from other procedures, by calls and branches.
fn entered(program: &Program) -> HashSet<CodeBlockId> {
    let mut all = HashSet::new();
    for block in &program.blocks {
        for instruction in &block.instructions {
            if let Reference::Branch(BranchTarget::Block(target)) = instruction.reference {
                all.insert(target);
            }
        }
        let is_other = |next: &CodeBlockId| program.blocks[*next as usize].procedure != block.procedure;
        all.extend(block.exit.successors().into_iter().filter(is_other));
    }
    all
}
