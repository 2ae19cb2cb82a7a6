//! The trace of an input: of a program that is run, one that is recorded and is gone afterwards.

use analysis::replay::Selection;
use anyhow::Context;
use engine::{Configuration, Plan};
use lab::measure::Ending;
use lab::record;
use lab::scratch::temporary_folder;
use machine::Machine;
use trace::Trace;

use super::simulate::{check_units, prepare, selection};
use super::{check_ending, with_output_apart};
use crate::arguments::{AttachedProgram, OutputOptions, SimulationOptions};
use crate::progress::LiveProgress;

/// A trace with the selected part of it.
pub struct RecordedInput {
    /// The trace.
    pub trace: Trace,
    /// The part.
    pub selection: Selection,
    /// How the program ended, if one was run.
    pub ending: Option<Ending>,
}

impl RecordedInput {
    /// Opens a trace, or runs a program on the processor of a machine, or attaches to one, and records it with marks of the
    /// heap.
    pub fn new(
        options: &SimulationOptions,
        output: &OutputOptions,
        machines: &[Machine],
    ) -> anyhow::Result<RecordedInput> {
        if options.attached.is_none() && Trace::is_trace(options.file.path()) {
            let trace = Trace::open(options.file.path())?;
            let selection = selection(options, None, &trace)?;
            return Ok(RecordedInput { trace, selection, ending: None });
        }
        check_units(options, None)?;
        RecordedInput::of_run(options, output, prepare(options, &[], machines, true)?)
    }

    /// Runs a program as planned, or attaches to one, and records it.
    pub fn of_run(
        options: &SimulationOptions,
        output: &OutputOptions,
        (mut configuration, plan): (Configuration, Plan),
    ) -> anyhow::Result<RecordedInput> {
        let folder = temporary_folder("trace").context("there is no folder for a temporary trace")?;
        let path = folder.path().join("trace");
        if let Some(AttachedProgram { process, children, duration }) = options.attached {
            record::attach(process, children, &plan, duration, &path)?;
            return RecordedInput::of_program(Trace::open(&path)?, &plan, None);
        }
        let progress = LiveProgress::new(output.takes_standard_output());
        configuration.settings.executed = progress.instructions();
        let recording = with_output_apart(output, || record::record(&configuration, &plan, &path));
        drop(progress);
        let ending = recording?.ending;
        if !path.exists() {
            check_ending(&ending, options.file.path(), &options.ending)?;
        }
        RecordedInput::of_program(Trace::open(&path)?, &plan, Some(ending))
    }

    /// The trace of a program as planned.
    fn of_program(trace: Trace, plan: &Plan, ending: Option<Ending>) -> anyhow::Result<RecordedInput> {
        let units = plan.unit.is_some().then(|| trace.first_unit().unwrap_or(0)..=u64::MAX);
        let selection = Selection { units, ..Selection::default() };
        Ok(RecordedInput { trace, selection, ending })
    }
}
