//! `pathlength faults`: alignment faults.

use std::path::Path;
use std::process::ExitCode;

use analysis::alignment::{self, AlignmentFaults, FaultCounts};
use analysis::call_tree::CallRows;
use analysis::models::{ExecutionPart, tables_of_classes};
use report::{Page, PageBlock, PageSection};
use session::console::Console;
use session::machines::SelectedMachines;
use session::simulation::{Needs, Simulated, Simulation};
use session::tables::{ModelTables, ResultRows, check_chain_output, write_classes};
use table::Table;

use crate::arguments::{FaultRows, FaultsOptions, check_inclusive};

/// Lines in the short table.
const LINES: usize = 10;
/// The column of faults over time that is drawn.
const RATE: &str = "per 1,000 instructions";

/// Finds the alignment faults of a trace or a program, and writes the tables.
pub fn run(options: &FaultsOptions) -> anyhow::Result<ExitCode> {
    check_inclusive(options.inclusive, options.by == Some(FaultRows::Function))?;
    let console = options.results.console();
    let page = console.page().filter(|_| options.by == Some(FaultRows::Time));
    let simulation = &options.results.simulation(SelectedMachines::default(), &console)?;
    let has_classes = options.by == Some(FaultRows::Class) || simulation.has_classes();
    let rows = options.by.and_then(|by| by.results(options.inclusive, has_classes));
    let calls = &options.calls.request();
    let is_tree = rows == Some(ResultRows::Calls(CallRows::Tree));
    check_chain_output(&console, options.by.is_none(), is_tree)?;
    calls.check_rows(rows)?;
    match options.by {
        Some(by) if rows.is_none() && has_classes => return by_data_or_time(simulation, by, page),
        _ if rows.is_some() || has_classes => {
            let tables = ModelTables { simulation, rows, calls };
            return tables.write(|| vec![FaultCounts::new()], &|_| Vec::new());
        }
        _ => {}
    }
    let simulated = simulation.run(Needs::default(), AlignmentFaults::new())?;
    let (faults, trace) = (&simulated.model, &simulated.trace);
    let table = match options.by {
        Some(FaultRows::Data) => alignment::by_data(faults, ExecutionPart::Whole, trace),
        Some(FaultRows::Time) => alignment::over_time(faults, ExecutionPart::Whole),
        Some(_) => alignment::by_line(faults, trace),
        None => {
            let tables = vec![alignment::summary(faults), alignment::by_line(faults, trace)];
            return simulated.write_summary(simulation, tables, (1, LINES, "--by line shows all lines"));
        }
    };
    match page {
        Some(path) => write_page(simulation, &simulated, &table, (&table, &[RATE]), path),
        None => simulated.write(simulation, vec![table]),
    }
}

/// Simulates the faults of data, or over time, in each class of units of work.
fn by_data_or_time(simulation: &Simulation, by: FaultRows, page: Option<&Path>) -> anyhow::Result<ExitCode> {
    simulation.check_classes()?;
    let simulated = simulation.run(Needs::CLASSES, AlignmentFaults::new())?;
    let (faults, trace) = (&simulated.model, &simulated.trace);
    simulated.check_classes(simulation, &faults.classes)?;
    let table = |part| match by {
        FaultRows::Data => alignment::by_data(faults, part, trace),
        _ => alignment::over_time(faults, part),
    };
    let parts = faults.parts().into_iter().map(|(name, part)| (name, table(part)));
    let whole = table(ExecutionPart::Whole);
    let Some(path) = page else { return write_classes(simulation, &simulated, parts, whole) };
    let drawn = alignment::rates_by_class(faults);
    let lines: Vec<&str> = drawn.columns[1..].iter().map(|class| class.name.as_str()).collect();
    let table = tables_of_classes(parts.collect(), whole);
    write_page(simulation, &simulated, &table, (&drawn, &lines), path)
}

/// Writes a page with a chart of the rates over time, above their table: a line for each of these columns of the table that is drawn.
fn write_page<M>(
    simulation: &Simulation,
    simulated: &Simulated<M>,
    rates: &Table,
    (drawn, lines): (&Table, &[&str]),
    path: &Path,
) -> anyhow::Result<ExitCode> {
    let chart = report::lines(drawn, &drawn.columns[0].name, lines, RATE)?;
    let section = PageSection {
        heading: rates.title.clone(),
        blocks: vec![PageBlock::Chart(chart), PageBlock::Table(rates.clone())],
    };
    let page = Page {
        title: "Alignment faults".into(),
        headline: "When the program makes unaligned accesses".into(),
        sections: vec![section],
        ..Page::default()
    };
    simulated.write_page(simulation, page, path)
}
