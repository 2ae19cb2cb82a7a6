//! Signatures that tell procedures and images apart.

use std::collections::HashMap;

use super::BlockShape;
use crate::program::{CodeBlockId, CodeExit, GP, LiftedInstruction, Procedure, Program, Reference};

/// A 64-bit FNV-1a hash: files hold it, so that it must not change with the compiler.
struct Fnv(u64);

impl Fnv {
    const NEW: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl Fnv {
    fn short(&self) -> u32 {
        (self.0 ^ self.0 >> 32) as u32
    }
}

/// The signature of a procedure: a hash of its flow graph, not of its instructions, so that small changes leave it as it is.
pub fn signature(program: &Program, procedure: &Procedure) -> u64 {
    let number: HashMap<CodeBlockId, u32> = procedure.blocks.iter().copied().zip(0..).collect();
    let mut hash = Fnv::NEW;
    for &block in &procedure.blocks {
        let block = &program.blocks[block as usize];
        let kind = match block.exit {
            CodeExit::Next(_) => 0,
            CodeExit::Branch { .. } => 1,
            CodeExit::Conditional { .. } => 2,
            CodeExit::Jump { .. } => 3,
            CodeExit::Leave => 4,
        };
        hash.add(kind << 1 | u32::from(block.call().is_some()));
        for successor in block.exit.successors() {
            hash.add(number.get(&successor).copied().unwrap_or(u32::MAX));
        }
    }
    hash.0
}

/// A hash of all instructions.
pub fn code(program: &Program) -> String {
    let mut hash = Fnv::NEW;
    program.code.words.iter().for_each(|&word| hash.add(word));
    format!("{:016x}", hash.0)
}

/// The shapes of the blocks of a procedure.
pub fn shapes(program: &Program, procedure: &Procedure) -> Vec<BlockShape> {
    let number: HashMap<CodeBlockId, u32> = procedure.blocks.iter().copied().zip(0..).collect();
    let shape = |&id: &CodeBlockId| {
        let block = &program.blocks[id as usize];
        let branch = match &block.exit {
            CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
            _ => None,
        };
        let (mut strict, mut loose, mut length) = (Fnv::NEW, Fnv::NEW, 0);
        for one in block.instructions.iter().chain(branch).filter(|one| !one.is_nop()) {
            strict.add(one.word & !variable_bits(one));
            loose.add(one.op().map_or(u32::MAX, |op| op as u32));
            length += 1;
        }
        let next = block.exit.successors().iter().filter_map(|next| number.get(next).copied()).collect();
        BlockShape { strict: strict.short(), loose: loose.short(), length, next }
    };
    procedure.blocks.iter().map(shape).collect()
}

/// The bits of an instruction that depend on where code and data are.
fn variable_bits(instruction: &LiftedInstruction) -> u32 {
    let Some(one) = isa::decode(instruction.word) else { return 0 };
    match one.op.format() {
        isa::InstructionFormat::Branch => 0x1f_ffff,
        isa::InstructionFormat::MemoryJump => 0x3fff,
        isa::InstructionFormat::Memory
            if one.rb() == GP || one.ra() == GP || instruction.reference != Reference::None =>
        {
            0xffff
        }
        _ => 0,
    }
}
