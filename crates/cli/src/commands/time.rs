//! `pathlength time`: the cycles of machines, by cause.

use std::process::ExitCode;

use analysis::models;
use machine::TimingModel;

use super::caches::find;
use super::simulate::simulate;
use crate::arguments::TimeOptions;

/// Simulates the machines on the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    let several = options.by.is_none() || options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    let rows = options.by.map(Into::into);
    let machines = find(&options.machines)?;
    let times = machines.iter().map(TimingModel::new).collect::<Result<Vec<_>, _>>()?;
    let simulated = simulate(&options.input, rows, &machines, times)?;
    let named = options.machines.iter().map(String::as_str).zip(&simulated.model);
    let tables = match rows {
        None => {
            let named = named.zip(&machines).map(|((name, time), machine)| (name, machine, time));
            models::times(&named.collect::<Vec<_>>())
        }
        Some(rows) => models::by(rows, &named.collect::<Vec<_>>(), &simulated.trace),
    };
    simulated.write(tables, output)?;
    simulated.finish(&options.input)
}
