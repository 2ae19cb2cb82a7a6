//! Exact counts of executions, whole and by unit of work.

use isa::{INSTRUCTION_SETS, InstructionSet};
use serde::{Deserialize, Serialize};

use crate::{Block, BlockId, LoadedImage};

/// Exact execution counts of a whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Every image that was mapped, in the order of mapping.
    pub images: Vec<LoadedImage>,
    /// The blocks that ran. Blocks may overlap; each executed instruction was counted in one.
    pub blocks: Vec<Block>,
    /// How often each block ran from its first to its last instruction, by [`BlockId`].
    pub executions: Vec<u64>,
    /// How often each system call was made, by the number of the guest's kernel, ascending.
    pub system_calls: Vec<(u32, u64)>,
}

impl Counts {
    /// Instructions executed in the whole run.
    pub fn instructions(&self) -> u64 {
        self.blocks.iter().zip(&self.executions).map(|(block, n)| block.words.len() as u64 * n).sum()
    }

    /// The instruction set of the program that ran first; of Alpha if none ran.
    pub fn instruction_set(&self) -> &'static dyn InstructionSet {
        self.blocks.first().map_or(INSTRUCTION_SETS[0], |block| block.instruction_set)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessEnd {
    /// With this status.
    Exited(i32),
    /// By a signal, of the guest's number.
    Killed(i32),
}

/// Counts of one unit of work, from the entry of the unit's function to its return, everything it called included. A call of the
/// function from within itself belongs to the outer call.
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
