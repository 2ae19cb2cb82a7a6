//! The trace of an input: of a program that is run, one that is recorded and is gone afterwards.

use analysis::multiprocessor::{self, MultiprocessorReplay};
use analysis::replay::{Replay, ReplayOrder, Selection};
use anyhow::{Context, bail};
use engine::Plan;
use machine::{Model, Multiprocessor};
use trace::interleave::Schedule;
use trace::{Chunk, Trace};

use super::{KnownProcesses, Needs, Simulated, Simulation};
use crate::measure::Ending;
use crate::program::until;
use crate::record;
use crate::scratch::temporary_folder;

/// A trace with the selected part of it.
pub struct RecordedInput {
    /// The trace.
    pub trace: Trace,
    /// The part.
    pub selection: Selection,
    /// How the program ended, if one was run.
    pub ending: Option<Ending>,
}

impl Simulation<'_> {
    /// Opens the trace; or runs the program or attaches to it, and records it with marks of the heap, and with the classes of its units
    /// of work if it `has_classes`.
    pub fn record(&self, has_classes: bool) -> anyhow::Result<RecordedInput> {
        let needs = Needs { classes: has_classes, ..Needs::default() };
        if let Some(trace) = self.open()? {
            let selection = self.selection(&trace, needs)?;
            return Ok(RecordedInput { trace, selection, ending: None });
        }
        let (mut configuration, plan) = self.prepare(needs)?;
        let plan = Plan { heap: true, ..plan };
        let folder = temporary_folder("trace").context("there is no folder for a temporary trace")?;
        let path = folder.path().join("trace");
        let ending = match self.input.attached() {
            Some(attached) => {
                record::attach(attached, &plan, &path)?;
                None
            }
            None => {
                let progress = self.console.begin_run(true);
                configuration.settings.executed = progress.instructions();
                let recording = record::record(&configuration, &plan, &path);
                drop(progress);
                let ending = recording?.ending;
                if !path.exists() {
                    self.check_ending(&ending)?;
                }
                Some(ending)
            }
        };
        let trace = Trace::open(&path)?;
        let units = plan.unit.is_some().then(|| trace.first_unit().unwrap_or(0)..=u64::MAX);
        let selection = Selection { units, ..Selection::default() };
        Ok(RecordedInput { trace, selection, ending })
    }

    /// Replays a recorded input, whose threads run as if at the same time, and simulates a model on it.
    pub fn replay_recorded<M: Model>(
        &self,
        recorded: RecordedInput,
        order: ReplayOrder,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let RecordedInput { trace, selection, ending } = recorded;
        let mut simulated = self.replay(trace, &selection, order, model)?;
        simulated.notes.extend(ending.as_ref().and_then(until));
        Ok(Simulated { ending, ..simulated })
    }

    /// Simulates the processors of a machine in time on a recorded input, once for each of these numbers of processors.
    pub fn replay_in_time(
        &self,
        recorded: RecordedInput,
        schedule: Schedule,
        processors: &[u32],
        new_model: impl Fn(u32) -> Multiprocessor,
    ) -> anyhow::Result<(Simulated<()>, Vec<Multiprocessor>)> {
        let RecordedInput { trace, selection, ending } = recorded;
        if trace.header().has_values {
            bail!(
                "{}: a trace with values cannot be simulated in time: record it without --values",
                self.input
            );
        }
        if !trace.unit_classes().is_empty() && self.part.planned.counts_units() {
            bail!(
                "in time, everything of an execution with classes is simulated, as processors wait for each other: leave out --skip and --units"
            );
        }
        let replayed = Replay::of_part(&trace, &selection, ReplayOrder::Time, |replay| {
            self.replay_each(&trace, replay, schedule, processors, new_model)
        });
        let (models, problems) = replayed??;
        let is_whole = self.report_problems(&trace, problems);
        let part = self.note(&trace);
        let notes = ending.as_ref().and_then(until).into_iter().chain(self.machines.note()).collect();
        let processes = KnownProcesses::new();
        Ok((Simulated { model: (), trace, part, notes, processes, ending, is_whole }, models))
    }

    /// Simulates the selected part of a trace once for each of these numbers of processors.
    fn replay_each(
        &self,
        trace: &Trace,
        replay: &Replay,
        schedule: Schedule,
        processors: &[u32],
        new_model: impl Fn(u32) -> Multiprocessor,
    ) -> anyhow::Result<(Vec<Multiprocessor>, Vec<trace::Error>)> {
        let is_wanted = |chunk: &Chunk| replay.filter.chunk(chunk);
        let chunks = trace.chunks().iter().filter(|chunk| is_wanted(chunk));
        let instructions = chunks.map(|chunk| chunk.instructions).fold(0, u64::saturating_add);
        let progress = self.console.begin_replay(instructions.saturating_mul(processors.len() as u64), true);
        let (mut models, mut problems) = (Vec::new(), Vec::new());
        for &processors in processors {
            let mut model = new_model(processors);
            let schedule = Schedule { processors, ..schedule };
            let selected = (!replay.filter.takes_all()).then_some(replay);
            let part = MultiprocessorReplay { schedule, warm_up: self.part.warm_up, selected };
            let advance = &mut |count| progress.advance(count);
            let replayed = multiprocessor::replay(trace, part, is_wanted, &mut model, advance);
            if replayed.is_warming {
                drop(progress);
                bail!(self.only_warm_up());
            }
            problems = replayed.errors;
            models.push(model);
        }
        Ok((models, problems))
    }
}
