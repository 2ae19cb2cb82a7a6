//! Exact counts of executions, whole and by unit of work.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Index of a block in [`Counts::blocks`].
pub type BlockId = u32;

/// An image as it was mapped into the running program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedImage {
    /// The file on the host.
    pub path: PathBuf,
    /// Lowest run-time address.
    pub start: u64,
    /// First run-time address behind it.
    pub end: u64,
    /// Run-time address minus link-time address (wrapping).
    pub bias: u64,
}

/// A straight run of instructions with one entry, ended by a transfer of control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Run-time address of the first instruction.
    pub address: u64,
    /// The instruction words, in order.
    pub words: Vec<u32>,
    /// Index into [`Counts::images`], if the block lies in an image.
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

/// Exact execution counts of a whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Every image that was mapped, in the order of mapping.
    pub images: Vec<LoadedImage>,
    /// The blocks that ran. Blocks may overlap; each executed instruction was counted in one.
    pub blocks: Vec<Block>,
    /// How often each block ran from its first to its last instruction, by [`BlockId`].
    pub executions: Vec<u64>,
    /// How often each system call was made, by Alpha's number, ascending.
    pub system_calls: Vec<(u32, u64)>,
}

impl Counts {
    /// Instructions executed in the whole run.
    pub fn instructions(&self) -> u64 {
        self.blocks.iter().zip(&self.executions).map(|(block, n)| block.words.len() as u64 * n).sum()
    }
}

/// What one unit of work did, from the entry of the unit's function to its return, everything it
/// called included. A call of the function from within itself belongs to the outer call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Which call of the function this was, from 0, in the order in which the calls of all threads began.
    pub number: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Executions of each block that ran at least once, in the order of first execution.
    pub blocks: Vec<(BlockId, u64)>,
    /// System calls made, by Alpha's number, in the order of first call.
    pub system_calls: Vec<(u32, u64)>,
    /// The values of the watched variables at the unit's end, in the order asked for.
    pub gauges: Vec<u64>,
    /// False if the function was left by other means than its return (longjmp, exit).
    pub returned: bool,
}
