//! What procedures may change, all that they call included.

use super::{RegisterSet, effects};
use crate::program::{ProcedureId, Program, Reference, Target};

/// Registers that each procedure may write.
#[derive(Clone, Debug)]
pub struct Summaries {
    writes: Vec<RegisterSet>,
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
                    Reference::Branch(Target::Block(target)) if instruction.is_call() => {
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
        Summaries { writes }
    }

    /// The registers that a call of the procedure may change, so that it is free to change them.
    pub fn clobbered(&self, procedure: ProcedureId) -> RegisterSet {
        self.writes[procedure as usize] & RegisterSet::CLOBBERED
    }
}
