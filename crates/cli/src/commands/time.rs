//! `pathlength time`: the cycles of machines, by cause.

use std::process::ExitCode;

use analysis::models::{self, Together};
use anyhow::bail;
use machine::TimingModel;

use super::by_class::ClassRequest;
use super::calls::{self, CallsRequest};
use super::entries::{self, EntriesRequest};
use super::selected_machines::SelectedMachines;
use super::simulate::{simulate, timing_model};
use super::sweep::{self, SweepRequest};
use super::{by_class, processes};
use crate::arguments::{ResultRows, TimeOptions};
use crate::messages;

/// Simulates the machines on the trace or the program, and writes the tables.
pub fn run(options: &TimeOptions) -> anyhow::Result<ExitCode> {
    let input = &options.running.input(&options.input, options.children)?;
    let children = options.children || input.attached.is_some();
    let output = &options.output;
    if !options.settings.sweeps.is_empty() {
        by_class::check_sweep(&options.classes, input)?;
        if options.sample.is_some() {
            bail!(
                "--sample cannot be combined with --sweep: name several machines with --machine, or use --set"
            );
        }
        let request =
            SweepRequest { names: &options.machines, settings: &options.settings, output, input, children };
        return sweep::cycles(&request);
    }
    let several = options.by.is_none() || options.machines.len() > 1;
    let rows = options.by.map(|by| by.results(options.inclusive));
    calls::check_output(output, several, rows)?;
    calls::check_functions(&options.calls, rows)?;
    let selected = SelectedMachines::find(&options.machines, &options.settings.settings)?;
    let times = selected.machines.iter().map(timing_model(options.sample)).collect::<Result<Vec<_>, _>>()?;
    if let Some(ResultRows::Entries(rows)) = rows {
        let (rows_shown, selected) = (&options.rows, &selected);
        let request = EntriesRequest { input, rows, rows_shown, output, selected, children };
        return entries::simulate(&request, times);
    }
    if options.classes.are_wanted(rows, &input.plan.unit) {
        if options.sample.is_some() {
            bail!("--sample estimates the time of the whole run: leave it out, or --class");
        }
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
        let new = move |machine: &_| TimingModel::new(machine).expect("it was possible before");
        let make = move || machines.iter().map(new).collect();
        let summary = |together: &[(&str, Together<TimingModel>)]| {
            let described = together.iter().zip(&selected.machines);
            let described =
                described.map(|((name, time), machine)| (*name, machine, Together(time.0.clone())));
            models::times(&described.collect::<Vec<_>>())
        };
        return by_class::run(&request, rows, make, summary);
    }
    if children {
        return processes::time(options, input, rows, &selected);
    }
    if rows == Some(ResultRows::Process) {
        bail!("--by process needs the results of all processes: add --children");
    }
    if let Some(ResultRows::Calls(rows)) = rows {
        let (options, rows_shown) = (&options.calls, &options.rows);
        let (selected, children) = (&selected, false);
        let request = CallsRequest { input, rows, options, rows_shown, output, selected, children };
        return calls::simulate(&request, times);
    }
    let simulated = simulate(input, output, rows, &[], &selected, times)?;
    let named = selected.named(&simulated.model);
    let rows = rows.and_then(ResultRows::own);
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        let described = named
            .iter()
            .zip(&selected.machines)
            .map(|(&(name, time), machine)| (name, machine, Together::from(time)));
        tables.extend(models::times(&described.collect::<Vec<_>>()));
    }
    tables.extend(rows.into_iter().flat_map(|rows| models::by(rows, &named, &simulated.trace)));
    simulated.write(tables, &options.rows, output)?;
    simulated.finish(input)
}
