//! Totals of models by class of units of work, for models that do not count each unit by itself.

use std::io;

use events::record::{Entries, Entry, Mark, RecordShape};
use events::{Block, Consumer, MappedImage, Thread};
use machine::{MergeableModel, Model, ModelNeeds, PerProcess};

use super::{Addable, ClassSums, UnitClasses};

/// A model for each process, or one for all, whose totals are divided among the classes of units of work: what a model counts while a thread
/// executes is the class's of the unit that the thread is in.
pub struct TotalsByClass<M> {
    /// The models.
    pub models: PerProcess<M>,
    /// The classes.
    pub classes: UnitClasses,
    shapes: Vec<RecordShape>,
    sums: ClassSums<(), Vec<u64>>,
}

impl<M: MergeableModel> TotalsByClass<M> {
    /// With models that have observed nothing.
    pub fn new(models: PerProcess<M>) -> TotalsByClass<M> {
        TotalsByClass {
            models,
            classes: UnitClasses::default(),
            shapes: Vec::new(),
            sums: ClassSums::default(),
        }
    }

    /// The totals of each class, the one with the greatest first number first; and those of what was executed outside of units.
    pub fn parts(&self) -> Vec<(String, Vec<u64>)> {
        let totals = |part| {
            let mut totals = Vec::new();
            self.sums.of_part(part).for_each(|(_, sum)| totals.add(sum));
            totals
        };
        let parts = self.classes.parts(|part| totals(part).first().copied()).into_iter();
        parts.map(|(name, part)| (name, totals(part))).collect()
    }

    fn totals(&self, process: u32) -> Vec<u64> {
        self.models.models().get(&self.models.model_of(process)).map_or_else(Vec::new, M::totals)
    }

    /// Passes records on, all of the same unit.
    fn pass_on(&mut self, thread: Thread, records: &[u64]) {
        if records.is_empty() {
            return;
        }
        let before = self.totals(thread.process);
        self.models.executed(thread, records);
        let mut counted = self.totals(thread.process);
        counted.iter_mut().zip(&before).for_each(|(total, before)| *total -= before);
        self.sums.now(thread.number, ()).add(&counted);
    }
}

impl<M: MergeableModel> Consumer for TotalsByClass<M> {
    fn map(&mut self, image: &MappedImage) {
        self.models.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        self.models.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let shapes = std::mem::take(&mut self.shapes);
        let (mut begin, mut end) = (0, 0);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => end += 1 + execution.addresses.len(),
                Entry::Mark(mark) => {
                    end += 1;
                    let is_of_unit = matches!(
                        mark,
                        Mark::UnitBegins(_) | Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_)
                    );
                    if is_of_unit {
                        self.pass_on(thread, &records[begin..end]);
                        self.sums.mark(thread.number, mark, &self.classes);
                        begin = end;
                    }
                }
            }
        }
        self.shapes = shapes;
        self.pass_on(thread, &records[begin..]);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
    }

    fn process_ended(&mut self, process: u32) {
        self.models.process_ended(process);
    }
}

impl<M: MergeableModel> Model for TotalsByClass<M> {
    fn reset_counts(&mut self) {
        self.models.reset_counts();
        self.sums = ClassSums::default();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        // The totals are needed after each batch of records.
        Ok(false)
    }

    fn needs(&self) -> ModelNeeds {
        self.models.needs()
    }
}
