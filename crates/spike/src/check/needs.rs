//! Which arguments procedures of the original read. What they do not read may differ when they are called, and is assumed
//! to differ where they are proved, so that nothing relies on this analysis being right.

use isa::{InstructionSet, Register};
use rustc_hash::FxHashMap as HashMap;

use super::convention::ARGUMENTS;
use crate::program::{BranchTarget, CodeBlock, CodeExit, LiftedInstruction, Program, Reference};

/// The registers with arguments that are read at or after the beginning of each block.
pub fn needs(program: &Program) -> Vec<u64> {
    let own: Vec<(u64, u64)> = program.blocks.iter().map(own).collect();
    let mut needs = vec![0; program.blocks.len()];
    let mut is_changed = true;
    while std::mem::take(&mut is_changed) {
        for (at, block) in program.blocks.iter().enumerate().rev() {
            let (reads, writes) = own[at];
            let after = after(program, block, &needs);
            let all = (reads | after & !writes) & ARGUMENTS;
            is_changed |= std::mem::replace(&mut needs[at], all) != all;
        }
    }
    needs
}

fn registers(all: &[Option<Register>]) -> u64 {
    let bit = |register: &Register| match register {
        Register::Integer(number) => 1u64 << number,
        Register::Float(number) => 1 << (number + 32),
    };
    all.iter().flatten().map(bit).fold(0, |set, one| set | one)
}

/// The registers that a block reads before it writes them, and those that it writes.
fn own(block: &CodeBlock) -> (u64, u64) {
    let branch = match &block.exit {
        CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
        _ => None,
    };
    let all = block.instructions.iter().chain(branch);
    all.fold((0, 0), |(reads, writes), one| match isa::Alpha.summary(one.word) {
        Some(summary) => (reads | registers(&summary.read) & !writes, writes | registers(&summary.written)),
        None => (u64::MAX, 0),
    })
}

/// The registers that are read after a block.
fn after(program: &Program, block: &CodeBlock, needs: &[u64]) -> u64 {
    let target = |target: &BranchTarget| target.block().map_or(ARGUMENTS, |block| needs[block as usize]);
    let called = block.instructions.last().map_or(0, |last| callee(program, last, needs));
    let next = match &block.exit {
        CodeExit::Next(next) => needs[*next as usize],
        CodeExit::Branch { target: to, .. } => target(to),
        CodeExit::Conditional { taken, next, .. } => target(taken) | needs[*next as usize],
        CodeExit::Jump { targets, .. } => targets.iter().fold(0, |set, &to| set | needs[to as usize]),
        CodeExit::Leave => 0,
    };
    called | next
}

/// The registers that the called procedure reads, if an instruction is a call or a jump to one.
fn callee(program: &Program, last: &LiftedInstruction, needs: &[u64]) -> u64 {
    let Some(one) = isa::decode(last.word) else { return ARGUMENTS };
    if !one.op.is(isa::Flags::BRANCH) || one.op.is(isa::Flags::RETURN) {
        return if one.op == isa::Op::CallPal { ARGUMENTS } else { 0 };
    }
    match last.reference {
        Reference::Branch(target) => target.block().map_or(ARGUMENTS, |block| needs[block as usize]),
        Reference::CallThrough(slot) => {
            program.data_at(slot).map_or(ARGUMENTS, |block| needs[block as usize])
        }
        _ => ARGUMENTS,
    }
}

/// The same by address.
pub fn by_address(program: &Program, address: impl Fn(u32) -> u64) -> HashMap<u64, u64> {
    needs(program).into_iter().zip(0..).map(|(needs, block)| (address(block), needs)).collect()
}
