//! Executions of single units of work: those of blocks in the slowest one, the median one, and those asked for.
//!
//! They are counted in the same pass as everything else: a program that changes its files does something else when it is
//! run again.

mod kept;
mod tables;

use std::collections::HashMap;
use std::io;

use events::record::{Entries, Entry, Mark, RecordShape};
use events::{Block, BlockId, Consumer, MappedImage, Thread};
use machine::{Model, ModelNeeds};

pub use kept::{KeptUnits, NoSuchUnit, UnitBlocks};
pub use tables::{ComparedUnits, UnitChoice, difference_tables};

/// A model that also keeps the executions of blocks in some units of work.
pub struct WithUnitBlocks<M> {
    /// The model.
    pub model: M,
    shapes: Vec<RecordShape>,
    /// By block, its number of instructions.
    lengths: Vec<u64>,
    /// A unit belongs to the thread in which it began.
    threads: HashMap<u32, ThreadUnit>,
    kept: KeptUnits,
}

/// The executions of blocks in a thread's unit of work. Its memory is used again by the thread's next unit.
#[derive(Default)]
struct ThreadUnit {
    /// The number of the unit that has begun and not ended.
    open: Option<u64>,
    instructions: u64,
    /// By block.
    executions: Vec<u64>,
    /// The blocks that were executed, in the order of their first execution.
    executed: Vec<BlockId>,
}

impl ThreadUnit {
    fn begin(&mut self, number: u64) {
        self.end(0);
        self.open = Some(number);
    }

    #[inline]
    fn add(&mut self, block: BlockId, length: u64) {
        if self.open.is_none() {
            return;
        }
        let index = block as usize;
        if index >= self.executions.len() {
            self.executions.resize((index + 1).next_power_of_two(), 0);
        }
        if self.executions[index] == 0 {
            self.executed.push(block);
        }
        self.executions[index] += 1;
        self.instructions += length;
    }

    /// Ends the unit of this thread, if there is one.
    fn end(&mut self, thread: u32) -> Option<UnitBlocks> {
        let executions = &mut self.executions;
        let times = |block: BlockId| (block, std::mem::take(&mut executions[block as usize]));
        let blocks = self.executed.drain(..).map(times).collect();
        let (number, instructions) = (self.open.take()?, std::mem::take(&mut self.instructions));
        Some(UnitBlocks { number, thread, instructions, blocks })
    }
}

impl<M> WithUnitBlocks<M> {
    /// A model that has consumed nothing. The units with these numbers are kept in any case.
    pub fn new(model: M, requested: Vec<u64>) -> WithUnitBlocks<M> {
        WithUnitBlocks {
            model,
            shapes: Vec::new(),
            lengths: Vec::new(),
            threads: HashMap::new(),
            kept: KeptUnits::new(requested),
        }
    }

    /// The units that were kept.
    pub fn kept(&self) -> &KeptUnits {
        &self.kept
    }

    fn mark(&mut self, mark: Mark, thread: u32) {
        let unit = self.threads.entry(thread).or_default();
        match mark {
            Mark::UnitBegins(number) => unit.begin(number),
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                if let Some(ended) = unit.end(thread).filter(|ended| ended.number == number) {
                    self.kept.add(ended);
                }
            }
            Mark::UnitCut(_) => drop(unit.end(thread)),
            _ => {}
        }
    }
}

impl<M: Consumer> Consumer for WithUnitBlocks<M> {
    fn map(&mut self, image: &MappedImage) {
        self.model.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        self.lengths.push(block.words.len() as u64);
        self.model.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => {
                    let unit = self.threads.entry(thread.number).or_default();
                    unit.add(execution.block, self.lengths[execution.block as usize]);
                }
                Entry::Mark(mark) => self.mark(mark, thread.number),
            }
        }
        self.shapes = shapes;
        self.model.executed(thread, records);
    }

    fn process_ended(&mut self, process: u32) {
        self.model.process_ended(process);
    }
}

impl<M: Model> Model for WithUnitBlocks<M> {
    fn reset_counts(&mut self) {
        self.threads.clear();
        self.kept.clear();
        self.model.reset_counts();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.model.use_worker_thread()
    }

    fn needs(&self) -> ModelNeeds {
        self.model.needs()
    }
}
