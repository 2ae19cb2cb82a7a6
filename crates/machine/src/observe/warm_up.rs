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

impl<M: Model + ?Sized> Model for Box<M> {
    fn reset_counts(&mut self) {
        (**self).reset_counts();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        (**self).use_worker_thread()
    }

    fn needs(&self) -> ModelNeeds {
        (**self).needs()
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

/// A part of an execution, by units of work and with everything outside of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitWindow {
    /// Units that come before it. What is executed before its first unit begins is left out, unless there are none.
    pub skipped: u64,
    /// Units that warm the model up, and are not counted.
    pub warm_up: u64,
    /// Units after those. What is executed after they have ended is left out; nothing is if it is None.
    pub units: Option<u64>,
}

/// A model that is warmed up by the first units of work, and counts from the next one on; of everything that is executed, or of a window.
///
/// Threads work on units at the same time: when the first counted unit begins, warm-up units of other threads
/// may not have ended. The rest of those is not passed to the model, so that it counts the counted units only. Nor are units before a
/// window that have not ended, and units after it.
#[derive(Debug)]
pub struct WarmUp<M> {
    /// The model that consumes the records.
    pub model: M,
    /// The numbers of the warm-up units.
    warm_up: Range<u64>,
    /// The numbers of the units in the window.
    window: Range<u64>,
    /// Whether a part of the execution is left out.
    is_window: bool,
    phase: WindowPhase,
    /// The threads that are in a warm-up unit.
    in_warm_up_unit: HashSet<u32>,
    /// The threads that are in a unit outside of the window.
    in_other_unit: HashSet<u32>,
    /// Warm-up units that have not ended.
    units_left: u64,
    /// Units of the window that have not ended, if their number is limited.
    window_left: Option<u64>,
}

/// The progress of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowPhase {
    /// Its first unit has not begun.
    Before,
    /// No counted unit has begun.
    WarmingUp,
    Counting,
    /// All of its units have ended.
    Over,
}

impl<M: Model> WarmUp<M> {
    /// Warms up with the units of these numbers, and counts from the next one on. Counts everything if the range is empty.
    pub fn new(model: M, warm_up: Range<u64>) -> WarmUp<M> {
        let units_left = warm_up.end.saturating_sub(warm_up.start);
        WarmUp {
            model,
            phase: if units_left > 0 { WindowPhase::WarmingUp } else { WindowPhase::Counting },
            warm_up,
            window: 0..u64::MAX,
            is_window: false,
            in_warm_up_unit: HashSet::new(),
            in_other_unit: HashSet::new(),
            units_left,
            window_left: None,
        }
    }

    /// The same of a window of an execution whose units are numbered from `first` on.
    pub fn of_window(model: M, first: u64, window: UnitWindow) -> WarmUp<M> {
        let UnitWindow { skipped, warm_up, units } = window;
        let begin = first.saturating_add(skipped);
        let counted = begin.saturating_add(warm_up);
        let all = WarmUp::new(model, begin..counted);
        WarmUp {
            phase: if skipped > 0 { WindowPhase::Before } else { all.phase },
            is_window: skipped > 0 || units.is_some(),
            window: begin..units.map_or(u64::MAX, |units| counted.saturating_add(units)),
            window_left: units.map(|units| units.saturating_add(warm_up)),
            ..all
        }
    }

    /// Whether no counted unit has begun.
    pub fn is_warming(&self) -> bool {
        matches!(self.phase, WindowPhase::Before | WindowPhase::WarmingUp)
    }

    /// Whether the window has not begun.
    pub fn is_before_window(&self) -> bool {
        self.phase == WindowPhase::Before
    }

    /// Whether records may still belong to warm-up units, or be left out.
    fn must_filter(&self) -> bool {
        self.is_warming() || self.units_left > 0 || self.is_window
    }

    /// Passes on a thread's records, but for those of warm-up units after the first counted unit has begun, and those outside of the
    /// window.
    fn filter(&mut self, thread: Thread, records: &[u64]) {
        let mut start = 0;
        let marks = records.iter().enumerate().filter_map(|(at, word)| match Event::new(*word) {
            Event::Mark(mark) => Some((at, mark)),
            _ => None,
        });
        for (at, mark) in marks {
            match mark {
                Mark::UnitBegins(unit) => {
                    self.pass_on(thread, &records[start..at]);
                    start = at;
                    self.begin(thread, unit);
                }
                Mark::UnitEnds(unit) | Mark::UnitLeft(unit) | Mark::UnitCut(unit)
                    if self.must_know_end(unit) =>
                {
                    self.pass_on(thread, &records[start..=at]);
                    start = at + 1;
                    self.end(thread, unit);
                }
                _ => {}
            }
        }
        self.pass_on(thread, &records[start..]);
    }

    /// A unit begins in a thread.
    fn begin(&mut self, thread: Thread, unit: u64) {
        self.in_warm_up_unit.remove(&thread.number);
        self.in_other_unit.remove(&thread.number);
        if !self.window.contains(&unit) {
            self.in_other_unit.insert(thread.number);
            return;
        }
        if self.phase == WindowPhase::Before {
            self.phase = if self.units_left > 0 { WindowPhase::WarmingUp } else { WindowPhase::Counting };
        }
        if unit < self.warm_up.end {
            self.in_warm_up_unit.insert(thread.number);
        } else if self.phase == WindowPhase::WarmingUp {
            self.phase = WindowPhase::Counting;
            self.model.reset_counts();
        }
    }

    fn must_know_end(&self, unit: u64) -> bool {
        self.is_window || self.warm_up.contains(&unit)
    }

    /// A unit ends in a thread.
    fn end(&mut self, thread: Thread, unit: u64) {
        self.in_warm_up_unit.remove(&thread.number);
        self.in_other_unit.remove(&thread.number);
        if self.warm_up.contains(&unit) {
            self.units_left = self.units_left.saturating_sub(1);
        }
        if self.window.contains(&unit)
            && let Some(left) = &mut self.window_left
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.phase = WindowPhase::Over;
            }
        }
    }

    /// Passes on records that all belong to one unit, or to none.
    fn pass_on(&mut self, thread: Thread, records: &[u64]) {
        let is_observed = match self.phase {
            WindowPhase::Before | WindowPhase::Over => false,
            WindowPhase::WarmingUp => true,
            WindowPhase::Counting => !self.in_warm_up_unit.contains(&thread.number),
        };
        if is_observed && !records.is_empty() && !self.in_other_unit.contains(&thread.number) {
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
        // Hits outside of a window must not be counted.
        if self.is_window { None } else { self.model.hit_filter() }
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.model.first_instruction(block)
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.model.executed_filtered(block, executions);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        // Units that are not counted have no rows.
        if unit >= self.warm_up.end && self.window.contains(&unit) {
            self.model.unit_class(unit, class);
        }
    }

    fn process_ended(&mut self, process: u32) {
        self.model.process_ended(process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks that were executed since the last reset, and before it; and the units whose classes were told.
    #[derive(Default)]
    struct ObservedBlocks {
        blocks: Vec<BlockId>,
        before: Vec<BlockId>,
        units: Vec<u64>,
    }

    impl Consumer for ObservedBlocks {
        fn define(&mut self, _: &Block) {}

        fn executed(&mut self, _: Thread, records: &[u64]) {
            self.blocks.extend(records.iter().filter_map(|word| match Event::new(*word) {
                Event::Block(block) => Some(block),
                _ => None,
            }));
        }

        fn unit_class(&mut self, unit: u64, _: &str) {
            self.units.push(unit);
        }
    }

    impl Model for ObservedBlocks {
        fn reset_counts(&mut self) {
            self.before = std::mem::take(&mut self.blocks);
        }
    }

    /// Two threads whose units overlap the window's begin and end: the parts of these that are not the window's are left out.
    #[test]
    fn a_window_has_its_units_and_what_is_between_them() {
        use Mark::{UnitBegins, UnitEnds};
        let window = UnitWindow { skipped: 1, warm_up: 1, units: Some(2) };
        let mut model = WarmUp::of_window(ObservedBlocks::default(), 0, window);
        (0..5).for_each(|unit| model.unit_class(unit, "a"));
        assert!(model.hit_filter().is_none() && model.is_before_window());
        let (block, mark) = (|id| Event::Block(id).word(), |mark| Event::Mark(mark).word());
        for (number, records) in [
            (0, vec![block(0), mark(UnitBegins(0)), block(1), mark(UnitEnds(0)), block(2)]),
            (1, vec![mark(UnitBegins(1)), block(3)]),
            (0, vec![mark(UnitBegins(2)), block(4)]),
            (1, vec![block(5), mark(UnitEnds(1)), block(6), mark(UnitBegins(3)), block(7)]),
            (0, vec![mark(UnitEnds(2)), block(8), mark(UnitBegins(4)), block(9), mark(UnitEnds(4))]),
            (1, vec![mark(UnitEnds(3)), block(10)]),
        ] {
            model.executed(Thread { process: 0, number }, &records);
        }
        assert!(!model.is_warming());
        assert_eq!(model.model.before, [3]);
        assert_eq!(model.model.blocks, [4, 6, 7, 8]);
        assert_eq!(model.model.units, [2, 3]);
    }
}
