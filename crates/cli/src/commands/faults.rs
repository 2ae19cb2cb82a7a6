//! `pathlength faults`: alignment faults.

use std::path::Path;
use std::process::ExitCode;

use analysis::alignment::{self, AlignmentFaults};
use analysis::models;
use analysis::table::Table;
use report::{Block, Page, Section};

use super::calls::{self, CallsRequest};
use super::selected_machines::SelectedMachines;
use super::simulate::Simulated;
use crate::arguments::{FaultRows, FaultsOptions, ResultRows};

/// Lines in the short table.
const LINES: usize = 10;

/// Finds the alignment faults of a trace or a program, and writes the tables.
pub fn run(options: &FaultsOptions) -> anyhow::Result<ExitCode> {
    let input = &options.running.input(&options.input, options.children)?;
    let children = options.children || input.attached.is_some();
    let output = &options.output;
    let page = output.page().filter(|_| options.by == Some(FaultRows::Time));
    if page.is_none() {
        output.check(options.by.is_none())?;
    }
    let rows = options.by.and_then(|by| by.results(options.inclusive));
    let (none, model) = (SelectedMachines::default(), AlignmentFaults::new());
    if let Some(ResultRows::Calls(rows)) = rows {
        let rows_shown = &options.rows;
        let (options, selected) = (&options.calls, &none);
        let request = CallsRequest { input, rows, options, rows_shown, output, selected, children };
        return calls::simulate(&request, vec![model]);
    }
    let simulated = calls::simulate_these(children, (input, output), rows, &[], &none, model)?;
    let (faults, trace) = (&simulated.model, &simulated.trace);
    let tables = match (options.by, rows) {
        (_, Some(ResultRows::Own(rows))) => models::by(rows, &[("", faults)], trace),
        (Some(FaultRows::Data), _) => vec![alignment::by_data(faults, trace)],
        (Some(FaultRows::Time), _) => vec![alignment::over_time(faults)],
        (Some(_), _) => vec![alignment::by_line(faults, trace)],
        (None, _) => {
            let mut lines = [alignment::by_line(faults, trace)];
            let sorted = options.rows.sort(&mut lines);
            options.rows.shorten(&mut lines[0], Some(LINES), "--by line shows all lines");
            let [lines] = lines;
            simulated.write(vec![alignment::summary(faults), lines], &Default::default(), output)?;
            sorted?;
            return simulated.finish(input);
        }
    };
    match page {
        Some(path) => write_page(&simulated, &tables[0], path)?,
        None => simulated.write(tables, &options.rows, output)?,
    }
    simulated.finish(input)
}

/// Writes a page with a chart of the rates over time, above their table.
fn write_page<M>(simulated: &Simulated<M>, rates: &Table, path: &Path) -> anyhow::Result<()> {
    let (time, rate) = (&rates.columns[0].name, rates.columns[3].name.as_str());
    let chart = report::lines(rates, time, &[rate], &rates.title)?;
    let section = Section {
        heading: rates.title.clone(),
        blocks: vec![Block::Chart(chart), Block::Table(rates.clone())],
    };
    let page = Page {
        title: "Alignment faults".into(),
        headline: "When the program makes unaligned accesses".into(),
        sections: vec![section],
        provenance: simulated.provenance(),
        ..Page::default()
    };
    simulated.protect();
    report::write_file(path, |out| page.write(out))?;
    Ok(())
}
