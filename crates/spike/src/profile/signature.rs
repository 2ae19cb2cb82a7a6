//! What tells procedures and images apart.

use std::collections::HashMap;

use crate::program::{BlockId, Exit, Procedure, Program};

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

/// The signature of a procedure: a hash of its flow graph, not of its instructions, so that small changes leave it as it is.
pub fn signature(program: &Program, procedure: &Procedure) -> u64 {
    let number: HashMap<BlockId, u32> = procedure.blocks.iter().copied().zip(0..).collect();
    let mut hash = Fnv::NEW;
    for &block in &procedure.blocks {
        let block = &program.blocks[block as usize];
        let kind = match block.exit {
            Exit::Next(_) => 0,
            Exit::Branch { .. } => 1,
            Exit::Conditional { .. } => 2,
            Exit::Jump { .. } => 3,
            Exit::Leave => 4,
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
