//! The results of models by mode, and by why the kernel was entered.

use std::process::ExitCode;

use analysis::call_tree::{EntryRows, WithCallTree, entry_tables};
use analysis::models::InstructionResults;
use analysis::replay::ReplayOrder;
use anyhow::bail;
use machine::Model;
use trace::Trace;

use super::selected_machines::SelectedMachines;
use super::simulate::{is_parallel, replay_in_order, selection};
use crate::arguments::{OutputOptions, ResultRows, RowOptions, SimulationOptions};

/// The costs that are asked for.
pub struct EntriesRequest<'o> {
    /// What is simulated.
    pub input: &'o SimulationOptions,
    /// The rows.
    pub rows: EntryRows,
    /// Which of them.
    pub rows_shown: &'o RowOptions,
    /// Where the tables go.
    pub output: &'o OutputOptions,
    /// The machines.
    pub selected: &'o SelectedMachines,
    /// Whether each process is to have a model of its own.
    pub children: bool,
}

/// Simulates models on a trace of a whole system, and writes one table for each.
pub fn simulate<M: InstructionResults + Model + 'static>(
    request: &EntriesRequest,
    mut models: Vec<M>,
) -> anyhow::Result<ExitCode> {
    let &EntriesRequest { input, rows, rows_shown, output, selected, children } = request;
    let file = input.file.path();
    let by = match rows {
        EntryRows::Mode => "mode",
        EntryRows::Reason => "entry",
        EntryRows::SystemCall => "system-call",
    };
    if children {
        bail!("--by {by} is of the whole system, whose processes share a processor: leave out --children");
    }
    let needed = format!("--by {by} needs a trace of a whole system: record it with pathlength system trace");
    if !Trace::is_trace(file) {
        bail!("{} is a program, and {needed}", file.display());
    }
    let trace = Trace::open(file)?;
    if !trace.header().has_system() {
        bail!("{} is a trace of programs only, and {needed}", file.display());
    }
    let selection = selection(input, Some(ResultRows::Entries(rows)), &trace)?;
    if is_parallel(None) {
        models.use_worker_thread()?;
    }
    let model = WithCallTree::of_entries(models, trace.header(), engine::system_call_name);
    let mut simulated = replay_in_order(input, trace, &selection, ReplayOrder::Time, model)?;
    simulated.notes.extend(selected.note());
    let results = selected.named(&simulated.model.model);
    simulated.write(entry_tables(rows, &simulated.model, &results), rows_shown, output)?;
    simulated.finish(input)
}
