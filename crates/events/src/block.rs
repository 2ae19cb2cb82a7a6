//! Basic blocks, to which counts and records refer.

use serde::{Deserialize, Serialize};

/// Index of a block in [`Counts::blocks`](crate::Counts::blocks).
pub type BlockId = u32;

/// A straight run of instructions with one entry, ended by a transfer of control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Run-time address of the first instruction.
    pub address: u64,
    /// The instruction words, in order.
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
    pub fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let start = self.address;
        (0..self.words.len() as u64).map(move |index| start.wrapping_add(4 * index))
    }
}
