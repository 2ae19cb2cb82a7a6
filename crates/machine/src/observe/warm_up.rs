//! Models that consume records to warm up before they count.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use events::record::{Event, Mark};
use events::{Block, BlockId, Consumer, HitFilter, MappedImage, Object, Thread};

/// A model of a machine, with counts.
pub trait Model: Consumer {
    /// Resets the counts. The state of the machine stays: all records so far have warmed it up.
    fn reset_counts(&mut self);

    /// Starts a worker thread for a part of the work, if the model has such a part. The counts stay the same.
    /// Returns whether it has.
    fn use_worker_thread(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Its needs beside records.
    fn needs(&self) -> ModelNeeds {
        ModelNeeds::default()
    }
}

/// The needs of a model beside records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelNeeds {
    /// Marks of the heap.
    pub heap: bool,
    /// Registers and classes of instructions ([`isa::InstructionSet::pipeline_summary`]).
    pub pipelines: bool,
}

impl ModelNeeds {
    /// The needs of all of these models together.
    pub fn of_all<M: Model>(models: &[M]) -> ModelNeeds {
        models.iter().map(M::needs).fold(ModelNeeds::default(), |all, one| ModelNeeds {
            heap: all.heap || one.heap,
            pipelines: all.pipelines || one.pipelines,
        })
    }
}

impl<M: Model> Model for Vec<M> {
    fn reset_counts(&mut self) {
        self.iter_mut().for_each(M::reset_counts);
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.iter_mut().try_fold(false, |has_thread, one| Ok(one.use_worker_thread()? | has_thread))
    }

    fn needs(&self) -> ModelNeeds {
        ModelNeeds::of_all(self)
    }
}

/// A model that is warmed up by the first units of work, and counts from the next one on.
///
/// Threads work on units at the same time: when the first counted unit begins, warm-up units of other threads
/// may not have ended. The rest of those is not passed to the model, so that it counts the counted units only.
#[derive(Debug)]
pub struct WarmUp<M> {
    /// The model that consumes the records.
    pub model: M,
    /// The numbers of the warm-up units.
    warm_up: Range<u64>,
    /// Whether no counted unit has begun.
    is_warming: bool,
    /// The threads that are in a warm-up unit.
    in_warm_up_unit: HashSet<u32>,
    /// Warm-up units that have not ended.
    units_left: u64,
}

impl<M: Model> WarmUp<M> {
    /// Warms up with the units of these numbers, and counts from the next one on. Counts everything if the range is empty.
    pub fn new(model: M, warm_up: Range<u64>) -> WarmUp<M> {
        let units_left = warm_up.end.saturating_sub(warm_up.start);
        WarmUp { model, warm_up, is_warming: units_left > 0, in_warm_up_unit: HashSet::new(), units_left }
    }

    /// Whether no counted unit has begun.
    pub fn is_warming(&self) -> bool {
        self.is_warming
    }

    /// Whether records may still belong to warm-up units.
    fn must_filter(&self) -> bool {
        self.is_warming || self.units_left > 0
    }

    /// Passes on a thread's records, but for those of warm-up units after the first counted unit has begun.
    fn filter(&mut self, thread: Thread, records: &[u64]) {
        let mut start = 0;
        let marks = records.iter().enumerate().filter_map(|(at, word)| match Event::new(*word) {
            Event::Mark(mark) => Some((at, mark)),
            _ => None,
        });
        for (at, mark) in marks {
            match mark {
                Mark::UnitBegins(unit) if unit < self.warm_up.end => {
                    self.pass_on(thread, &records[start..at]);
                    start = at;
                    self.in_warm_up_unit.insert(thread.number);
                }
                Mark::UnitBegins(_) => {
                    self.pass_on(thread, &records[start..at]);
                    start = at;
                    self.in_warm_up_unit.remove(&thread.number);
                    if std::mem::take(&mut self.is_warming) {
                        self.model.reset_counts();
                    }
                }
                Mark::UnitEnds(unit) | Mark::UnitLeft(unit) | Mark::UnitCut(unit)
                    if self.warm_up.contains(&unit) =>
                {
                    self.pass_on(thread, &records[start..=at]);
                    start = at + 1;
                    self.in_warm_up_unit.remove(&thread.number);
                    self.units_left = self.units_left.saturating_sub(1);
                }
                _ => {}
            }
        }
        self.pass_on(thread, &records[start..]);
    }

    /// Passes on records that all belong to one unit, or to none.
    fn pass_on(&mut self, thread: Thread, records: &[u64]) {
        if !records.is_empty() && (self.is_warming || !self.in_warm_up_unit.contains(&thread.number)) {
            self.model.executed(thread, records);
        }
    }
}

impl<M: Model> Consumer for WarmUp<M> {
    fn map(&mut self, image: &MappedImage) {
        self.model.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.model.define(block);
    }

    fn object(&mut self, object: &Object) {
        self.model.object(object);
    }

    fn runs_on(&mut self, thread: Thread, processor: u32) {
        self.model.runs_on(thread, processor);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        if self.must_filter() {
            self.filter(thread, records);
        } else {
            self.model.executed(thread, records);
        }
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        self.model.hit_filter()
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.model.first_instruction(block)
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.model.executed_filtered(block, executions);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.model.unit_class(unit, class);
    }

    fn process_ended(&mut self, process: u32) {
        self.model.process_ended(process);
    }
}
