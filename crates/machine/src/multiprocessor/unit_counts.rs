//! The counts of processors by unit of work.

use std::collections::HashMap;

use super::processor::{ProcessorCause, ProcessorCounts};

/// The counts of all processors, divided among the units of work that their threads were in. Idle time is no unit's.
#[derive(Debug)]
pub(super) struct ProcessorUnitCounts {
    /// By processor, its counts when its thread or the thread's unit last changed.
    last: Vec<ProcessorCounts>,
    /// By thread, the unit that it is in.
    open: HashMap<u32, u64>,
    /// By unit; what is outside of units at None.
    counts: HashMap<Option<u64>, ProcessorCounts>,
}

impl ProcessorUnitCounts {
    /// Of processors that have executed nothing.
    pub fn new(processors: usize) -> ProcessorUnitCounts {
        let last = vec![ProcessorCounts::default(); processors];
        ProcessorUnitCounts { last, open: HashMap::new(), counts: HashMap::new() }
    }

    /// Adds a processor's counts since the last change to its thread's unit.
    pub fn settle(&mut self, processor: usize, thread: u32, counts: ProcessorCounts) {
        let mut since = counts.since(&self.last[processor]);
        self.last[processor] = counts;
        let idle = std::mem::take(&mut since.time[ProcessorCause::Idle as usize]);
        let unit = self.open.get(&thread).copied();
        self.counts.entry(unit).or_default().add(&since);
        self.counts.entry(None).or_default().time[ProcessorCause::Idle as usize] += idle;
    }

    /// A thread is in this unit from now on, or in none.
    pub fn enter(&mut self, thread: u32, unit: Option<u64>) {
        match unit {
            Some(unit) => self.open.insert(thread, unit),
            None => self.open.remove(&thread),
        };
    }

    /// The processors' counts are reset.
    pub fn reset(&mut self) {
        self.last.fill(ProcessorCounts::default());
        self.counts.clear();
    }

    /// By unit, the counts; at None what is outside of units.
    pub fn counts(&self) -> &HashMap<Option<u64>, ProcessorCounts> {
        &self.counts
    }
}
