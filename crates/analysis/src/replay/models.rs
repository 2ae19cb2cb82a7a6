//! Replays a trace to a consumer, such as a model of a machine.

use events::record::{Entries, Entry, Event, Mark};
use events::{Consumer, Thread};
use machine::{Model, UnitWindow, WarmUp};
use trace::Error;

use super::filter::{self, ReplayPosition};
use super::{Replay, SelectedInstructions};
use crate::names::images_of;

impl Replay<'_> {
    /// Simulates a model on the selected part of the trace, whose first units of work warm it up. Of a trace whose units have classes,
    /// the part is a window, which counts units of the trace. Returns the model with the errors of chunks that cannot be read.
    /// `progress` as in [`Replay::run_consumer`].
    pub fn run_model<M: Model, E>(
        &self,
        model: M,
        window: UnitWindow,
        progress: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<(WarmUp<M>, Vec<Error>), E> {
        let first = self.filter.first_unit().or_else(|| self.dictionary.trace.first_unit()).unwrap_or(0);
        let mut model = if self.dictionary.trace.unit_classes().is_empty() {
            WarmUp::new(model, first..first.saturating_add(window.warm_up))
        } else {
            WarmUp::of_window(model, first, window)
        };
        let problems = self.run_consumer(&mut model, progress)?;
        Ok((model, problems))
    }

    /// Passes the selected part of the trace to a consumer: blocks of which every instruction is selected, and before all the classes
    /// of units of work. Chunks that
    /// cannot be read are skipped, and their errors returned. `progress` is called with the number of instructions read
    /// since the last call, and can end the replay by an error.
    pub fn run_consumer<E>(
        &self,
        consumer: &mut dyn Consumer,
        progress: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Vec<Error>, E> {
        let trace = self.dictionary.trace;
        images_of(trace).iter().for_each(|image| consumer.map(image));
        trace.blocks().iter().for_each(|block| consumer.define(block));
        trace.unit_classes().iter().for_each(|(&unit, class)| consumer.unit_class(unit, class));
        let is_unfiltered = self.filter.takes_all() && !trace.header().has_values;
        let mut positions = vec![ReplayPosition::default(); trace.streams().len()];
        let mut has_begun = vec![false; trace.chunks().len()];
        let mut selected = Vec::new();
        let mut problems = Vec::new();
        std::thread::scope(|scope| {
            for batch in self.batches(scope, false, &mut problems) {
                for (slice, words) in batch.slices() {
                    if !std::mem::replace(&mut has_begun[slice.chunk], true) {
                        progress(trace.chunks()[slice.chunk].instructions)?;
                    }
                    let process = trace.streams()[slice.stream as usize].process;
                    let thread = Thread { process, number: slice.stream };
                    if let Some(processor) = slice.processor {
                        consumer.runs_on(thread, processor);
                    }
                    if is_unfiltered {
                        consumer.executed(thread, words);
                    } else {
                        selected.clear();
                        self.select(&mut positions[slice.stream as usize], words, &mut selected);
                        consumer.executed(thread, &selected);
                    }
                }
            }
            Ok(problems)
        })
    }

    /// Appends the selected part of a stream's records, without values.
    pub(crate) fn select(&self, position: &mut ReplayPosition, words: &[u64], selected: &mut Vec<u64>) {
        let trace = self.dictionary.trace;
        for entry in Entries::new(words, trace.shapes()) {
            match entry {
                Entry::Execution(execution) => {
                    let length = filter::length(trace, execution.block);
                    let which =
                        self.filter.block(position, &execution, length, self.dictionary, self.accesses);
                    if which == SelectedInstructions::All {
                        selected.push(Event::Block(execution.block).word());
                        selected.extend_from_slice(execution.addresses);
                    }
                }
                Entry::Mark(mark) => {
                    // Names and addresses of memory, and why the kernel was entered, depend on marks of all records.
                    let is_of_all =
                        matches!(mark, Mark::Heap(_) | Mark::Mapping(_)) || mark.enters_or_leaves_kernel();
                    if self.filter.mark(position, mark) || is_of_all {
                        selected.push(Event::Mark(mark).word());
                    }
                }
            }
        }
    }
}
