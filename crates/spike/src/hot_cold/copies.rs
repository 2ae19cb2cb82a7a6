//! Copy propagation, and the removal of instructions that copy a register to itself.

use std::collections::HashMap;

use isa::{Op, Operands};

use super::region::{HotRegion, only_predecessors};
use crate::dataflow::{RegisterSet, effects};
use crate::program::{CodeBlockId, CodeExit, LiftedInstruction, Program, Reference, ZERO};

/// Where register fields are in a word.
const RA: u32 = 21;
const RB: u32 = 16;
const RC: u32 = 0;

/// The fields of integer registers of an instruction: those that it reads only, and the one that it writes.
fn fields(word: u32) -> Option<(Vec<u32>, Option<u32>)> {
    let one = isa::decode(word)?;
    let rb = || if one.literal().is_some() { vec![] } else { vec![RB] };
    let is_store = one.op.is(isa::Flags::STORE);
    Some(match one.op.row().operands {
        Operands::RaMemory if one.op.is(isa::Flags::LOCKED) => return None,
        Operands::RaMemory if is_store => (vec![RA, RB], None),
        Operands::RaMemory => (vec![RB], Some(RA)),
        Operands::FaMemory => (vec![RB], None),
        Operands::RaBranch if one.op.is(isa::Flags::CONDITIONAL) => (vec![RA], None),
        Operands::RaRbRc | Operands::RegistersRaRbRc => {
            let mut read = rb();
            read.push(RA);
            (read, Some(RC))
        }
        Operands::RbRc | Operands::RegisterRbRc => (rb(), Some(RC)),
        Operands::Rc | Operands::FaRc => (vec![], Some(RC)),
        Operands::RaFc => (vec![RA], None),
        Operands::FaFbFc | Operands::FbFc | Operands::FaBranch | Operands::Nothing => (vec![], None),
        _ => return None,
    })
}

fn replace(word: u32, field: u32, from: u8, to: u8) -> u32 {
    if word >> field & 31 == u32::from(from) { word & !(31 << field) | u32::from(to) << field } else { word }
}

/// The word with every field of an integer register `from` changed; none if that is not all that names the register.
pub fn rename_fields(word: u32, from: u8, to: u8) -> Option<u32> {
    let (read, written) = fields(word)?;
    Some(read.into_iter().chain(written).fold(word, |word, field| replace(word, field, from, to)))
}

/// The copy that an instruction makes: from, to.
fn copy(instruction: &LiftedInstruction) -> Option<(u8, u8)> {
    let one = isa::decode(instruction.word)?;
    if one.op != Op::Bis || one.literal().is_some() || instruction.reference != Reference::None {
        return None;
    }
    let from = match (one.ra(), one.rb()) {
        (ZERO, rb) => rb,
        (ra, ZERO) => ra,
        (ra, rb) if ra == rb => ra,
        _ => return None,
    };
    (from != ZERO && one.rc() != ZERO).then(|| (from, one.rc()))
}

/// Makes instructions read what a copy was made of, instead of the copy, as long as both are the same. Copies are followed
/// from a block to those that only it goes on to.
pub fn propagate(program: &mut Program, region: &HotRegion) {
    let before = only_predecessors(program, region);
    let mut ends: HashMap<CodeBlockId, HashMap<u8, u8>> = HashMap::new();
    for block in region.blocks() {
        let earlier = before.get(&block).copied().flatten();
        let mut copies = earlier.and_then(|earlier| ends.get(&earlier)).cloned().unwrap_or_default();
        propagate_in(program, block, &mut copies);
        ends.insert(block, copies);
    }
}

fn propagate_in(program: &mut Program, id: CodeBlockId, copies: &mut HashMap<u8, u8>) {
    for at in 0..program.blocks[id as usize].instructions.len() {
        let mut instruction = program.blocks[id as usize].instructions[at];
        read_originals(&mut instruction, copies);
        program.blocks[id as usize].instructions[at] = instruction;
        let writes = effects(program, &instruction).writes;
        copies.retain(|&to, &mut from| !writes.meets(RegisterSet::integer(to) | RegisterSet::integer(from)));
        if let Some((from, to)) = copy(&instruction).filter(|(from, to)| from != to) {
            copies.insert(to, from);
        }
    }
    if let CodeExit::Conditional { branch, .. } = &mut program.blocks[id as usize].exit {
        read_originals(branch, copies);
    }
}

fn read_originals(instruction: &mut LiftedInstruction, copies: &HashMap<u8, u8>) {
    // An instruction with a reference names certain registers for a reason.
    if instruction.reference != Reference::None || instruction.is_call() {
        return;
    }
    let Some((read, _)) = fields(instruction.word) else { return };
    for field in read {
        let register = (instruction.word >> field & 31) as u8;
        if let Some(&from) = copies.get(&register) {
            instruction.word = replace(instruction.word, field, register, from);
        }
    }
}

/// Removes copies of a register to itself. Returns how many executions.
pub fn remove_self_copies(program: &mut Program, region: &HotRegion) -> u64 {
    let mut removed = 0;
    for &id in &region.hot {
        let block = &mut program.blocks[id as usize];
        let before = block.instructions.len();
        block.instructions.retain(|one| copy(one).is_none_or(|(from, to)| from != to));
        removed += (before - block.instructions.len()) as u64 * block.count;
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::encode::{self, SecondOperand};

    #[test]
    fn fields_are_renamed() {
        let add = encode::operate(Op::Addq, 1, SecondOperand::Register(2), 1).unwrap();
        assert_eq!(
            rename_fields(add, 1, 9),
            Some(encode::operate(Op::Addq, 9, SecondOperand::Register(2), 9).unwrap())
        );
        let literal = encode::operate(Op::Addq, 1, SecondOperand::Literal(0x42), 2).unwrap();
        assert_eq!(
            rename_fields(literal, 2, 3),
            Some(encode::operate(Op::Addq, 1, SecondOperand::Literal(0x42), 3).unwrap())
        );
        let store = encode::memory(Op::Stq, 9, 30, 8).unwrap();
        assert_eq!(rename_fields(store, 9, 2), Some(encode::memory(Op::Stq, 2, 30, 8).unwrap()));
        assert_eq!(rename_fields(encode::memory(Op::LdqL, 1, 2, 0).unwrap(), 1, 3), None);
    }
}
