//! `pathlength sharing`: cache lines that move between processors.

use std::process::ExitCode;

use anyhow::bail;
use session::machines::SelectedMachines;
use session::sharing::SharingRequest;
use trace::interleave::Schedule;

use crate::arguments::SharingOptions;

/// Simulates the coherent caches of several processors on a trace or a program, and writes the tables.
pub fn run(options: &SharingOptions) -> anyhow::Result<ExitCode> {
    let machines = SelectedMachines::find([&options.machine], &options.settings)?;
    let console = options.results.console();
    let simulation = &options.results.simulation(machines, &console)?;
    if options.results.input.input.children && simulation.input.attached().is_none() {
        bail!("--children goes with --attach: of a program that is run, all processes are observed");
    }
    let request = SharingRequest {
        simulation,
        rows: options.by.map(Into::into),
        processors: options.processors,
        schedule: Schedule {
            processors: 1,
            quantum: options.quantum,
            assignment: options.assign.into(),
            time_slice: options.time_slice,
            is_saturated: options.saturated,
        },
        is_timed: options.time,
        scaling: &options.scaling,
        sample: options.sample,
        is_checked: options.check,
        device_reads: &options.device_reads,
        device_writes: &options.device_writes,
    };
    request.write()
}
