//! The targets of indirect jumps.
//!
//! Tables of switches hold distances from the global pointer, which the jump adds; tables of labels hold addresses. The
//! words of both have relocations, so that a jump by such a table goes to one of the blocks of its procedure that words of
//! the data refer to.

use std::collections::HashMap;

use isa::{InstructionSet, Op, Register};

use crate::lift::relocations::FoundRelocations;
use crate::program::{
    CodeBlockId, CodeExit, Frozen, GP, LiftedInstruction, PV, ProcedureId, Program, Reference,
};

/// The definition of the register of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definition {
    /// A table, by its contents or by its distance from the global pointer.
    Table,
    /// The address of a procedure.
    Procedure,
    /// Anything else.
    Unknown,
}

/// Gives indirect jumps their targets, makes tail calls leave their procedure, and freezes the procedures in which neither
/// is certain.
pub fn resolve(program: &mut Program, found: &FoundRelocations) {
    let mut targets: HashMap<ProcedureId, Vec<CodeBlockId>> = HashMap::new();
    for reference in &program.data {
        let procedure = program.blocks[reference.target as usize].procedure;
        if program.procedures[procedure as usize].blocks.first() != Some(&reference.target) {
            targets.entry(procedure).or_default().push(reference.target);
        }
    }
    targets.values_mut().for_each(|all| {
        all.sort_unstable();
        all.dedup();
    });
    for procedure in 0..program.procedures.len() {
        let own = targets.get(&(procedure as ProcedureId)).map(Vec::as_slice).unwrap_or_default();
        for block in program.procedures[procedure].blocks.clone() {
            if !matches!(program.blocks[block as usize].exit, CodeExit::Jump { .. }) {
                continue;
            }
            let definition = definition(program, procedure as ProcedureId, block, found);
            program.blocks[block as usize].exit = match definition {
                Definition::Procedure => CodeExit::Leave,
                Definition::Table if !own.is_empty() => {
                    CodeExit::Jump { targets: own.to_vec(), counts: vec![0; own.len()] }
                }
                Definition::Table | Definition::Unknown => {
                    program.procedures[procedure].frozen.get_or_insert(Frozen::Jump);
                    CodeExit::Jump { targets: own.to_vec(), counts: vec![0; own.len()] }
                }
            };
        }
    }
}

fn definition(
    program: &Program,
    procedure: ProcedureId,
    block: CodeBlockId,
    found: &FoundRelocations,
) -> Definition {
    let instructions = &program.blocks[block as usize].instructions;
    let Some((jump, before)) = instructions.split_last() else { return Definition::Unknown };
    let is_hinted = found.hints.binary_search(&jump.origin).is_ok();
    if is_hinted || matches!(jump.reference, Reference::CallThrough(_)) {
        return Definition::Procedure;
    }
    let Some(register) = isa::decode(jump.word).map(|one| one.rb()) else { return Definition::Unknown };
    let within = before.iter().rev().find(|one| writes(one, register));
    let classified = within.map(|one| classify(one, register));
    let all = &program.procedures[procedure as usize].blocks;
    classified.unwrap_or_else(|| {
        if register == PV {
            return Definition::Procedure;
        }
        // The register was loaded in an earlier block: all that write it must load it from tables.
        let instructions = all.iter().flat_map(|&block| &program.blocks[block as usize].instructions);
        let is_added = |one: &&LiftedInstruction| writes(one, register) && one.op() == Some(Op::Addq);
        let mut sums = instructions.filter(is_added);
        let is_table = sums.all(|one| classify(one, register) == Definition::Table);
        if is_table { Definition::Table } else { Definition::Unknown }
    })
}

fn classify(instruction: &LiftedInstruction, register: u8) -> Definition {
    let Some(one) = isa::decode(instruction.word) else { return Definition::Unknown };
    match one.op {
        Op::Addq if one.ra() == GP || one.literal().is_none() && one.rb() == GP => Definition::Table,
        _ if register == PV => Definition::Procedure,
        Op::Ldq if matches!(instruction.reference, Reference::Slot(_)) => Definition::Procedure,
        Op::Ldq => Definition::Table,
        _ => Definition::Unknown,
    }
}

fn writes(instruction: &LiftedInstruction, register: u8) -> bool {
    let summary = isa::Alpha.summary(instruction.word);
    summary.is_some_and(|one| one.written.contains(&Some(Register::Integer(register))))
}
