//! Basic blocks, to which counts and records refer.

use isa::InstructionSet;
use serde::{Deserialize, Serialize};

/// Index of a block in [`Counts::blocks`](crate::Counts::blocks).
pub type BlockId = u32;

/// A straight run of instructions with one entry, ended by a transfer of control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Run-time address of the first instruction.
    pub address: u64,
    /// The instruction words, in order; a short one in the low half.
    pub words: Vec<u32>,
    /// Index into [`Counts::images`](crate::Counts::images), if the block lies in an image.
    pub image: Option<u32>,
}

impl Block {
    /// A block outside images.
    pub fn new(address: u64, words: impl Into<Vec<u32>>) -> Block {
        Block { address, words: words.into(), image: None }
    }

    /// The run-time address of each instruction. Those of a damaged trace may wrap around.
    pub fn addresses<'a>(&'a self, set: &'a dyn InstructionSet) -> impl Iterator<Item = u64> + use<'a> {
        self.words.iter().scan(self.address, |next, &word| {
            let address = *next;
            *next = address.wrapping_add(set.length(word));
            Some(address)
        })
    }

    /// The address after the last instruction.
    pub fn end(&self, set: &dyn InstructionSet) -> u64 {
        self.words.iter().fold(self.address, |address, &word| address.wrapping_add(set.length(word)))
    }
}
