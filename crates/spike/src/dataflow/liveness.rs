//! Live registers of some blocks of a procedure.

use std::collections::HashMap;

use isa::Op;

use super::{RegisterSet, effects, unwound};
use crate::program::{BranchTarget, CodeBlock, CodeBlockId, CodeExit, LiftedInstruction, Program};

/// The registers that are live at the beginning of blocks.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    live: HashMap<CodeBlockId, RegisterSet>,
    /// The registers that are live when the procedure returns.
    returns: RegisterSet,
}

impl Liveness {
    /// Computes what is live in these blocks. `returns` are the registers that are live when the procedure returns, and
    /// `outside` those at the beginning of another block.
    pub fn new(
        program: &Program,
        blocks: &[CodeBlockId],
        returns: RegisterSet,
        outside: impl Fn(CodeBlockId) -> RegisterSet,
    ) -> Liveness {
        let live = blocks.iter().map(|&block| (block, RegisterSet::NONE)).collect();
        let mut liveness = Liveness { live, returns };
        let effects: HashMap<CodeBlockId, (RegisterSet, RegisterSet)> =
            blocks.iter().map(|&block| (block, whole(program, &program.blocks[block as usize]))).collect();
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            for block in blocks.iter().rev() {
                let (reads, kills) = effects[block];
                let after = liveness.after(program, *block, &outside);
                let live = reads | (after - kills);
                is_changed |= liveness.live.insert(*block, live) != Some(live);
            }
        }
        liveness
    }

    /// The registers that are live at the beginning of a block.
    pub fn before(&self, block: CodeBlockId) -> Option<RegisterSet> {
        self.live.get(&block).copied()
    }

    /// The registers that are live at the end of a block, before its branch.
    pub fn after(
        &self,
        program: &Program,
        block: CodeBlockId,
        outside: impl Fn(CodeBlockId) -> RegisterSet,
    ) -> RegisterSet {
        let block = &program.blocks[block as usize];
        let at = |target: CodeBlockId| self.before(target).unwrap_or_else(|| outside(target));
        let target = |target: BranchTarget| target.block().map_or(RegisterSet::ALL, at);
        match &block.exit {
            CodeExit::Next(next) => at(*next),
            CodeExit::Branch { branch, target: to } => unwound(program, branch) | target(*to),
            CodeExit::Conditional { branch, taken, next, .. } => {
                effects(program, branch).reads | target(*taken) | at(*next)
            }
            CodeExit::Jump { targets, .. } => targets.iter().fold(RegisterSet::NONE, |set, &to| set | at(to)),
            CodeExit::Leave => self.leaving(block.instructions.last()),
        }
    }

    /// The registers that are live when control leaves the procedure.
    fn leaving(&self, last: Option<&LiftedInstruction>) -> RegisterSet {
        match last.and_then(LiftedInstruction::op) {
            Some(Op::Ret) => self.returns,
            // A tail call, or a call that does not return.
            _ => RegisterSet::ALL,
        }
    }
}

/// The registers that a block reads before it writes them, and those that it writes.
fn whole(program: &Program, block: &CodeBlock) -> (RegisterSet, RegisterSet) {
    block.instructions.iter().rev().fold(
        (RegisterSet::NONE, RegisterSet::NONE),
        |(reads, kills), instruction| {
            let one = effects(program, instruction);
            (one.reads | (reads - one.kills), kills | one.kills)
        },
    )
}
