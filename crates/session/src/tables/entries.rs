//! The results of models by mode, and by why the kernel was entered.

use std::process::ExitCode;

use analysis::call_tree::{EntryRows, WithCallTree, entry_tables};
use analysis::models::InstructionResults;
use anyhow::bail;
use machine::Model;
use trace::Trace;

use crate::input::Input;
use crate::simulation::Simulation;

/// Simulates models on a trace of a whole system, and writes one table for each.
pub fn write<M: InstructionResults + Model + 'static>(
    simulation: &Simulation,
    rows: EntryRows,
    models: Vec<M>,
) -> anyhow::Result<ExitCode> {
    let by = match rows {
        EntryRows::Mode => "mode",
        EntryRows::Reason => "entry",
        EntryRows::SystemCall => "system-call",
    };
    if simulation.all_processes {
        bail!("--by {by} is of the whole system, whose processes share a processor: leave out --children");
    }
    let needed = format!("--by {by} needs a trace of a whole system: record it with pathlength system trace");
    let file = &simulation.input;
    let Input::Trace(path) = file else { bail!("{file} is a program, and {needed}") };
    let trace = Trace::open(path)?;
    if !trace.header().has_system() {
        bail!("{file} is a trace of programs only, and {needed}");
    }
    // Whole systems are of the first instruction set.
    let name = |number| engine::system_call_name(isa::INSTRUCTION_SETS[0], number);
    let model = WithCallTree::of_entries(models, trace.header(), name);
    let simulated = simulation.replay_all(trace, model)?;
    let results = simulation.machines.named(&simulated.model.model);
    simulated.write(simulation, entry_tables(rows, &simulated.model, &results))
}
