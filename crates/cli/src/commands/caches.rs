//! `pathlength caches`: the misses of caches and TLBs of machines.

use std::process::ExitCode;

use analysis::models;
use anyhow::Context;
use machine::{Caches, Machine};

use super::simulate::simulate;
use super::{calls, mrc};
use crate::arguments::{CachesOptions, ResultRows};
use crate::messages;

/// Simulates the machines' caches on the trace or the program, and writes the tables.
pub fn run(options: &CachesOptions) -> anyhow::Result<ExitCode> {
    if options.curves {
        return mrc::run(&options.sizes, &options.output, &options.input);
    }
    let output = &options.output;
    let several = options.by.is_some() && options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    let rows = options.by.map(|by| by.results(options.inclusive));
    let machines = find(&options.machines)?;
    let make = if options.classify { Caches::classified } else { Caches::new };
    let model: Vec<Caches> = machines.iter().map(make).collect();
    let input = &options.input;
    if let Some(ResultRows::Calls(rows)) = rows {
        return calls::simulate(input, rows, &options.calls, output, &options.machines, &machines, model);
    }
    let simulated = simulate(input, rows, &[], &machines, model)?;
    let named: Vec<_> = options.machines.iter().map(String::as_str).zip(&simulated.model).collect();
    let rows = rows.and_then(ResultRows::own);
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        tables.push(models::structures(&named, options.classify));
    }
    tables.extend(rows.into_iter().flat_map(|rows| models::by(rows, &named, &simulated.trace)));
    simulated.write(tables, output)?;
    simulated.finish(input)
}

/// The machines with these names, or in these files.
pub fn find(names: &[String]) -> anyhow::Result<Vec<Machine>> {
    let find = |name: &String| Machine::find(name).with_context(|| format!("the machine {name}"));
    names.iter().map(find).collect()
}
