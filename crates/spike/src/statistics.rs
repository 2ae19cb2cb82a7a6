//! Statistics of the procedures of a profiled program: how large, how branched, how they loop and call (the paper's Figures 1 to
//! 6, 17 and 20).

mod loops;

use std::collections::HashSet;

use isa::{Flags, Op};

use crate::program::{CodeBlock, CodeBlockId, CodeExit, LiftedInstruction, ProcedureId, Program, RA, SP};

/// A procedure, or its hot part, in the profiled run.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcedureStatistics {
    /// The name of its symbol.
    pub name: String,
    /// Its instructions.
    pub size: u64,
    /// The instructions that were executed.
    pub executed: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Those of them that are executed more often than the program's threshold says.
    pub frequent_blocks: u64,
    /// The average trip count of its most frequently executed loop; 1 without an executed loop.
    pub trip_count: f64,
    /// Whether it makes no call.
    pub is_leaf: bool,
    /// Executed instructions that make or remove the frame, save or restore preserved registers.
    pub overhead: u64,
}

/// The statistics of a procedure. Of the blocks only those count that `is_counted` says.
pub fn of_procedure(
    program: &Program,
    procedure: ProcedureId,
    threshold: u64,
    is_counted: impl Fn(CodeBlockId) -> bool,
) -> ProcedureStatistics {
    let own = &program.procedures[procedure as usize];
    let ids: Vec<CodeBlockId> = own.blocks.iter().copied().filter(|&id| is_counted(id)).collect();
    let blocks = || ids.iter().map(|&id| &program.blocks[id as usize]);
    ProcedureStatistics {
        name: own.name.clone(),
        size: blocks().map(length).sum(),
        executed: blocks().map(executed).fold(0, u64::saturating_add),
        blocks: ids.len() as u64,
        frequent_blocks: blocks().filter(|block| block.count > threshold).count() as u64,
        trip_count: loops::trip_count(program, &ids).unwrap_or(1.0),
        is_leaf: !blocks().any(makes_call),
        overhead: overhead(program, &ids),
    }
}

/// The statistics of all procedures that were executed.
pub fn of_program(program: &Program, threshold: u64) -> Vec<ProcedureStatistics> {
    let all = 0..program.procedures.len() as ProcedureId;
    let all = all.map(|procedure| of_procedure(program, procedure, threshold, |_| true));
    all.filter(|one| one.executed > 0).collect()
}

/// The instructions of a block, its branch included.
pub fn length(block: &CodeBlock) -> u64 {
    let has_branch = matches!(block.exit, CodeExit::Branch { .. } | CodeExit::Conditional { .. });
    block.instructions.len() as u64 + u64::from(has_branch)
}

/// The instructions of a block that were executed.
fn executed(block: &CodeBlock) -> u64 {
    block.count.saturating_mul(length(block))
}

fn makes_call(block: &CodeBlock) -> bool {
    let branch = match &block.exit {
        CodeExit::Branch { branch, .. } => Some(branch),
        _ => None,
    };
    block.instructions.iter().chain(branch).any(LiftedInstruction::is_call)
}

/// A save or a restore: the register, the offset in the frame, and whether it is a save.
fn access(instruction: &LiftedInstruction) -> Option<(u8, i32, bool)> {
    let one = isa::decode(instruction.word)?;
    let is_preserved = match one.op {
        Op::Stq | Op::Ldq => (9..=15).contains(&one.ra()) || one.ra() == RA,
        Op::Stt | Op::Ldt => (2..=9).contains(&one.ra()),
        _ => false,
    };
    let register = one.ra() + if one.op.is_float() { 32 } else { 0 };
    (is_preserved && one.rb() == SP).then(|| (register, one.displacement(), one.op.is(Flags::STORE)))
}

fn overhead(program: &Program, blocks: &[CodeBlockId]) -> u64 {
    let instructions = || {
        blocks.iter().flat_map(|&id| {
            let block = &program.blocks[id as usize];
            block.instructions.iter().map(move |one| (one, block.count))
        })
    };
    // A register that is stored but never loaded from the same slot is no saved one.
    let accessed: HashSet<(u8, i32, bool)> = instructions().filter_map(|(one, _)| access(one)).collect();
    let is_overhead = |one: &LiftedInstruction| match access(one) {
        Some((register, offset, is_save)) => accessed.contains(&(register, offset, !is_save)),
        None => {
            isa::decode(one.word).is_some_and(|one| one.op == Op::Lda && one.ra() == SP && one.rb() == SP)
        }
    };
    instructions().filter(|(one, _)| is_overhead(one)).map(|(_, count)| count).fold(0, u64::saturating_add)
}
