//! `pathlength caches`: the misses of caches and TLBs of machines.

use std::process::ExitCode;

use analysis::models::{self, Together};
use anyhow::bail;
use machine::Caches;

use super::by_class::ClassRequest;
use super::calls::{self, CallsRequest};
use super::entries::{self, EntriesRequest};
use super::selected_machines::SelectedMachines;
use super::simulate::simulate;
use super::sweep::{self, SweepRequest};
use super::{by_class, mrc, processes};
use crate::arguments::{CachesOptions, ResultRows};
use crate::messages;

/// Simulates the machines' caches on the trace or the program, and writes the tables.
pub fn run(options: &CachesOptions) -> anyhow::Result<ExitCode> {
    if options.curves {
        let CachesOptions { sizes, output, input, children, classes, .. } = options;
        return mrc::run(sizes, output, input, *children, classes);
    }
    let input = &options.running.input(&options.input, options.children)?;
    let children = options.children || input.attached.is_some();
    let output = &options.output;
    if !options.settings.sweeps.is_empty() {
        by_class::check_sweep(&options.classes, input)?;
        let request =
            SweepRequest { names: &options.machines, settings: &options.settings, output, input, children };
        return sweep::misses(&request);
    }
    let rows = options.by.map(|by| by.results(options.inclusive));
    calls::check_functions(&options.calls, rows)?;
    let has_classes = options.classes.are_wanted(rows, &input.plan.unit);
    let several = if options.by.is_some() { options.machines.len() > 1 } else { has_classes };
    calls::check_output(output, several, rows)?;
    let selected = SelectedMachines::find(&options.machines, &options.settings.settings)?;
    let make = if options.classify { Caches::classified } else { Caches::new };
    let model: Vec<Caches> = selected.machines.iter().map(make).collect();
    if let Some(ResultRows::Entries(rows)) = rows {
        let (rows_shown, selected) = (&options.rows, &selected);
        let request = EntriesRequest { input, rows, rows_shown, output, selected, children };
        return entries::simulate(&request, model);
    }
    if has_classes {
        let request = ClassRequest {
            input,
            classes: &options.classes,
            rows_shown: &options.rows,
            output,
            selected: &selected,
            children,
        };
        let rows = (rows, &options.calls);
        let machines = selected.machines.clone();
        let summary =
            |together: &[(&str, Together<Caches>)]| vec![models::structures(together, options.classify)];
        return by_class::run(&request, rows, move || machines.iter().map(make).collect(), summary);
    }
    if children {
        return processes::caches(options, input, rows, &selected);
    }
    if rows == Some(ResultRows::Process) {
        bail!("--by process needs the results of all processes: add --children");
    }
    if let Some(ResultRows::Calls(rows)) = rows {
        let (options, rows_shown) = (&options.calls, &options.rows);
        let (selected, children) = (&selected, false);
        let request = CallsRequest { input, rows, options, rows_shown, output, selected, children };
        return calls::simulate(&request, model);
    }
    let simulated = simulate(input, output, rows, &[], &selected, model)?;
    let named = selected.named(&simulated.model);
    let rows = rows.and_then(ResultRows::own);
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        let together: Vec<_> = named.iter().map(|&(name, caches)| (name, Together::from(caches))).collect();
        tables.push(models::structures(&together, options.classify));
    }
    tables.extend(rows.into_iter().flat_map(|rows| models::by(rows, &named, &simulated.trace)));
    simulated.write(tables, &options.rows, output)?;
    simulated.finish(input)
}
