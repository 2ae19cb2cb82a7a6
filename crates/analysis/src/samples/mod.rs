//! Samples of what programs execute: by function, line, instruction and chain of calls, with their statistical error, and beside
//! exact counts of the same run.

mod error;
mod tables;

use std::collections::HashMap;

use events::{Block, BlockId, Consumer, Thread};

pub use error::{interval, standard_error};
pub use tables::{SampleSummary, summary, system_calls, with_errors, without_calls};

use crate::call_tree::WithCallTree;
use crate::models::InstructionResults;
use table::{Column, Kind};

/// Counts samples by chain of calls. Its blocks are those of single instructions.
#[derive(Debug, Default)]
pub struct SampleCounts {
    /// By block.
    samples: Vec<u64>,
}

impl Consumer for SampleCounts {
    fn define(&mut self, _: &Block) {
        self.samples.push(0);
    }

    /// Samples come as chains of calls, not as executions.
    fn executed(&mut self, _: Thread, _: &[u64]) {}
}

impl WithCallTree<SampleCounts> {
    /// Adds a sample that stands for so many: the block with the instruction of each open call, the outermost first, and the one
    /// that is executed last.
    pub fn add_sample(&mut self, chain: &[BlockId], weight: u64) {
        let Some(instance) = self.instance_of_chain(chain) else { return };
        self.model.samples[instance as usize] += weight;
    }
}

/// The columns of samples.
const SAMPLES: &str = "samples";

impl InstructionResults for SampleCounts {
    const WHAT: &str = "Samples";

    fn columns(&self) -> Vec<Column> {
        vec![Column { name: SAMPLES.into(), kind: Kind::Count }]
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[0]
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        self.samples.get(block as usize).filter(|&&samples| samples > 0).map(|&samples| vec![vec![samples]])
    }
}

/// Samples of instructions, and how often each instruction was executed in the same run.
#[derive(Debug, Default)]
pub struct SampledInstructions {
    /// By block of a single instruction.
    samples: HashMap<BlockId, u64>,
    /// By block, executions and number of instructions; empty if the run was not counted.
    executions: HashMap<BlockId, (u64, usize)>,
}

impl SampledInstructions {
    /// Adds samples of the instruction that is the only one of a block.
    pub fn add_samples(&mut self, block: BlockId, samples: u64) {
        *self.samples.entry(block).or_default() += samples;
    }

    /// Adds executions of a block.
    pub fn add_executions(&mut self, block: BlockId, length: usize, executions: u64) {
        self.executions.entry(block).or_insert((0, length)).0 += executions;
    }

    /// All samples.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// Whether the run was counted.
    pub fn is_counted(&self) -> bool {
        !self.executions.is_empty()
    }
}

/// The column of executed instructions.
const INSTRUCTIONS: &str = "instructions";

impl InstructionResults for SampledInstructions {
    const WHAT: &str = "Samples";

    fn columns(&self) -> Vec<Column> {
        let names: &[&str] = if self.is_counted() { &[SAMPLES, INSTRUCTIONS] } else { &[SAMPLES] };
        names.iter().map(|&name| Column { name: name.into(), kind: Kind::Count }).collect()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[0]
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let samples = self.samples.get(&block).copied();
        let executed = self.executions.get(&block).copied();
        if samples.is_none() && executed.is_none() {
            return None;
        }
        let (executions, length) = executed.unwrap_or((0, 1));
        let row = |index: usize| {
            // A block with samples is that of its first instruction.
            let samples = if index == 0 { samples.unwrap_or(0) } else { 0 };
            if self.is_counted() { vec![samples, executions] } else { vec![samples] }
        };
        Some((0..length).map(row).collect())
    }
}
