//! A model without a machine: it counts instructions, loads and stores, by block and by unit of work.

use events::record::{Entries, Entry, Mark, Shape};
use events::{Block, BlockId, Consumer, Thread};

use crate::observe::per_thread::{PerThread, Sums};
use crate::{MergeableModel, Model};

/// Executions of blocks, and the instructions, loads and stores of each unit of work.
#[derive(Default)]
pub struct InstructionCounts {
    shapes: Vec<Shape>,
    /// By block and instruction, whether it loads, and whether it stores.
    accesses: Vec<Box<[[bool; 2]]>>,
    /// By block, what one execution adds.
    sums: Vec<AccessSums>,
    executions: Vec<u64>,
    total: AccessSums,
    threads: PerThread<AccessSums>,
    units: Vec<UnitInstructions>,
}

/// The counts of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitInstructions {
    /// Its number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// Instructions executed.
    pub instructions: u64,
    /// Loads executed.
    pub loads: u64,
    /// Stores executed.
    pub stores: u64,
}

/// Instructions, loads and stores.
#[derive(Clone, Copy, Debug, Default)]
struct AccessSums([u64; 3]);

impl Sums for AccessSums {
    fn add(&mut self, other: &AccessSums) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    fn since(&self, earlier: &AccessSums) -> AccessSums {
        AccessSums(std::array::from_fn(|index| self.0[index] - earlier.0[index]))
    }
}

impl InstructionCounts {
    /// Nothing executed yet.
    pub fn new() -> InstructionCounts {
        InstructionCounts::default()
    }

    /// Executions of a block.
    pub fn executions(&self, block: BlockId) -> u64 {
        self.executions.get(block as usize).copied().unwrap_or(0)
    }

    /// For each instruction of a block, whether it loads, and whether it stores.
    pub fn accesses(&self, block: BlockId) -> &[[bool; 2]] {
        self.accesses.get(block as usize).map_or(&[], |accesses| accesses)
    }

    /// The units of work that ended, in the order of their ends, each with the counts of its own thread.
    pub fn units(&self) -> &[UnitInstructions] {
        &self.units
    }

    fn mark(&mut self, mark: Mark, thread: u32) {
        match mark {
            Mark::UnitBegins(number) => self.threads.begin_unit(number, &self.total),
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                let ended = self.threads.end_unit(number, &self.total);
                self.units.extend(ended.map(|AccessSums([instructions, loads, stores])| UnitInstructions {
                    number,
                    thread,
                    instructions,
                    loads,
                    stores,
                }));
            }
            Mark::UnitCut(number) => drop(self.threads.end_unit(number, &self.total)),
            _ => {}
        }
    }
}

/// Whether an instruction loads, and whether it stores.
fn accesses(block: &Block, word: u32) -> [bool; 2] {
    let summary = block.instruction_set.summary(word).unwrap_or_default();
    [false, true].map(|is_store| summary.accesses().any(|access| access.is_store == is_store))
}

impl Consumer for InstructionCounts {
    fn define(&mut self, block: &Block) {
        self.shapes.push(Shape::new(block.instruction_set, &block.words, false));
        let accesses: Box<[_]> = block.words.iter().map(|&word| accesses(block, word)).collect();
        let count = |kind: usize| accesses.iter().filter(|access| access[kind]).count() as u64;
        self.sums.push(AccessSums([block.words.len() as u64, count(0), count(1)]));
        self.accesses.push(accesses);
        self.executions.push(0);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.threads.enter(thread.number, self.total);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => {
                    let block = execution.block as usize;
                    self.executions[block] += 1;
                    self.total.add(&self.sums[block]);
                }
                Entry::Mark(mark) => self.mark(mark, thread.number),
            }
        }
        self.shapes = shapes;
    }
}

impl MergeableModel for InstructionCounts {
    fn merge(&mut self, ended: InstructionCounts) {
        self.executions.iter_mut().zip(ended.executions).for_each(|(own, ended)| *own += ended);
        self.total.add(&ended.total);
        self.units.extend(ended.units);
    }

    fn totals(&self) -> Vec<u64> {
        self.total.0.into()
    }
}

impl Model for InstructionCounts {
    fn reset_counts(&mut self) {
        self.executions.fill(0);
        self.total = AccessSums::default();
        self.threads.reset();
        self.units.clear();
    }
}
