//! `pathlength time`: the cycles of machines, by cause.

use std::process::ExitCode;

use analysis::models;
use machine::TimingModel;

use super::caches::find;
use super::calls;
use super::simulate::simulate;
use crate::arguments::{ResultRows, TimeOptions};
use crate::messages;

/// Simulates the machines on the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    let several = options.by.is_none() || options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    let rows = options.by.map(|by| by.results(options.inclusive));
    let machines = find(&options.machines)?;
    let times = machines.iter().map(TimingModel::new).collect::<Result<Vec<_>, _>>()?;
    let input = &options.input;
    if let Some(ResultRows::Calls(rows)) = rows {
        return calls::simulate(input, rows, &options.calls, output, &options.machines, &machines, times);
    }
    let simulated = simulate(input, rows, &[], &machines, times)?;
    let named: Vec<_> = options.machines.iter().map(String::as_str).zip(&simulated.model).collect();
    let rows = rows.and_then(ResultRows::own);
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        let described = named.iter().zip(&machines).map(|(&(name, time), machine)| (name, machine, time));
        tables.extend(models::times(&described.collect::<Vec<_>>()));
    }
    tables.extend(rows.into_iter().flat_map(|rows| models::by(rows, &named, &simulated.trace)));
    simulated.write(tables, output)?;
    simulated.finish(input)
}
