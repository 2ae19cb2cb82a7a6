//! `pathlength time`: the cycles of machines, by cause.

use std::process::ExitCode;

use analysis::models::{self, SummedOverProcesses};
use machine::TimingModel;
use session::machines::timing_models;
use session::tables::sweep_cycles;

use super::models::ModelCommand;
use crate::arguments::TimeOptions;

/// Simulates the machines on the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let command = ModelCommand::new(&options.models)?;
    let console = command.console();
    let simulation = command.simulation(&console)?;
    if let Some(request) = command.sweep(&simulation) {
        return sweep_cycles(&request, options.sample);
    }
    command.check_output(&simulation, true)?;
    let machines = &simulation.machines.machines;
    let summary = |times: &[(&str, SummedOverProcesses<TimingModel>)]| {
        let described = times.iter().zip(machines);
        let described = described.map(|((name, time), machine)| (*name, machine, time.clone()));
        models::times(&described.collect::<Vec<_>>())
    };
    let (tables, make) = (command.tables(&simulation), timing_models(machines, options.sample)?);
    match options.sample {
        Some(_) => tables.write_sampled(make, &summary),
        None => tables.write(make, &summary),
    }
}
