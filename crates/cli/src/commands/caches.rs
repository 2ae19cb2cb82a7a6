//! `pathlength caches`: the misses of caches and TLBs of machines.

use std::process::ExitCode;

use analysis::models::{self, SummedOverProcesses};
use machine::Caches;
use session::tables::sweep_misses;

use super::models::{ModelCommand, models_of};
use crate::arguments::CachesOptions;

/// Simulates the machines' caches on the trace or the program, and writes the tables.
pub fn run(options: &CachesOptions) -> anyhow::Result<ExitCode> {
    let is_classified = options.classify;
    let command = ModelCommand::new(&options.models)?;
    let console = command.console();
    let simulation = command.simulation(&console)?;
    if let Some(request) = command.sweep(&simulation) {
        return sweep_misses(&request, is_classified);
    }
    command.check_output(&simulation, simulation.has_classes())?;
    let new = if is_classified { Caches::classified } else { Caches::new };
    let summary =
        |caches: &[(&str, SummedOverProcesses<Caches>)]| vec![models::structures(caches, is_classified)];
    command.tables(&simulation).write(models_of(&simulation.machines, new), &summary)
}
