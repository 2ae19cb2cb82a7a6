//! `pathlength time`: how long machines take, and what for.

use std::process::ExitCode;

use analysis::models;
use machine::TimingModel;

use super::caches::find;
use super::hear::hear;
use crate::arguments::TimeOptions;

/// Lets the machines hear the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    let several = options.by.is_none() || options.machines.len() > 1;
    report::check(several, output.format, output.path.as_deref())?;
    let rows = options.by.map(Into::into);
    let machines = find(&options.machines)?;
    let times = machines.iter().map(TimingModel::new).collect::<Result<Vec<_>, _>>()?;
    let heard = hear(&options.heard, rows, &machines, times)?;
    let named = options.machines.iter().map(String::as_str).zip(&heard.model);
    let tables = match rows {
        None => {
            let named = named.zip(&machines).map(|((name, time), machine)| (name, machine, time));
            models::times(&named.collect::<Vec<_>>())
        }
        Some(rows) => models::by(rows, &named.collect::<Vec<_>>(), &heard.trace),
    };
    heard.write(tables, output)?;
    heard.finish(&options.heard)
}
