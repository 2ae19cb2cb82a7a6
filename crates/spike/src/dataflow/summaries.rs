//! The registers that procedures may change, with all that they call.

use super::{RegisterSet, effects};
use crate::program::{BranchTarget, GP, ProcedureId, Program, Reference};

/// Registers that each procedure may write.
#[derive(Clone, Debug)]
pub struct Summaries {
    writes: Vec<RegisterSet>,
    /// Whether a caller relies on the global pointer after the procedure has returned.
    keeps_global_pointer: Vec<bool>,
}

impl Summaries {
    /// Computes them for all procedures at once, as the least fixed point.
    pub fn new(program: &Program) -> Summaries {
        let mut writes = vec![RegisterSet::NONE; program.procedures.len()];
        let mut callers: Vec<Vec<ProcedureId>> = vec![Vec::new(); program.procedures.len()];
        for block in &program.blocks {
            let own = block.procedure as usize;
            for instruction in &block.instructions {
                let callee = match instruction.reference {
                    Reference::Branch(BranchTarget::Block(target)) if instruction.is_call() => {
                        Some(program.blocks[target as usize].procedure)
                    }
                    _ => None,
                };
                match callee {
                    Some(callee) => {
                        callers[callee as usize].push(block.procedure);
                        let link = isa::decode(instruction.word)
                            .map_or(RegisterSet::ALL, |one| RegisterSet::integer(one.ra()));
                        writes[own] |= link;
                    }
                    None => writes[own] |= effects(program, instruction).writes,
                }
            }
            // What control goes to without a call is a part of the procedure.
            for target in block.exit.successors() {
                let other = program.blocks[target as usize].procedure;
                if other != block.procedure {
                    callers[other as usize].push(block.procedure);
                }
            }
        }
        let mut changed: Vec<ProcedureId> = (0..program.procedures.len() as ProcedureId).collect();
        while let Some(procedure) = changed.pop() {
            let own = writes[procedure as usize];
            for &caller in &callers[procedure as usize] {
                // Registers that the procedure saves and restores are not changed for its caller.
                let sum = writes[caller as usize] | (own & RegisterSet::CLOBBERED);
                if sum != writes[caller as usize] {
                    writes[caller as usize] = sum;
                    changed.push(caller);
                }
            }
        }
        Summaries { writes, keeps_global_pointer: keep_global_pointer(program) }
    }

    /// The registers that a call of the procedure may change, so that it is free to change them.
    pub fn clobbered(&self, procedure: ProcedureId) -> RegisterSet {
        self.writes[procedure as usize] & RegisterSet::CLOBBERED
    }

    /// The registers that are live when the procedure returns.
    pub fn returned(&self, procedure: ProcedureId) -> RegisterSet {
        match self.keeps_global_pointer[procedure as usize] {
            true => RegisterSet::RETURN,
            false => RegisterSet::RETURN - RegisterSet::integer(GP),
        }
    }
}

/// Procedures that are called directly keep the global pointer. Who calls through a pointer computes it again.
fn keep_global_pointer(program: &Program) -> Vec<bool> {
    let mut keeps: Vec<bool> =
        program.procedures.iter().map(|procedure| procedure.frozen.is_some()).collect();
    let mut jumps: Vec<(ProcedureId, ProcedureId)> = Vec::new();
    for block in &program.blocks {
        for instruction in &block.instructions {
            let target = match instruction.reference {
                Reference::Branch(BranchTarget::Block(target)) => Some(target),
                Reference::CallThrough(slot) => {
                    let found = program.data.binary_search_by_key(&slot, |one| one.address);
                    found.ok().map(|at| program.data[at].target)
                }
                _ => None,
            };
            if let Some(target) = target {
                keeps[program.blocks[target as usize].procedure as usize] = true;
            }
        }
        let others = block.exit.successors().into_iter().map(|next| program.blocks[next as usize].procedure);
        jumps.extend(others.filter(|&other| other != block.procedure).map(|other| (block.procedure, other)));
    }
    let mut is_changed = true;
    while std::mem::take(&mut is_changed) {
        for &(from, to) in &jumps {
            if keeps[from as usize] && !keeps[to as usize] {
                keeps[to as usize] = true;
                is_changed = true;
            }
        }
    }
    keeps
}
