//! `pathlength faults`: alignment faults.

use std::path::Path;
use std::process::ExitCode;

use analysis::alignment::{self, AlignmentFaults, FaultCounts};
use analysis::models::{self, ExecutionPart, tables_of_classes};
use analysis::table::Table;
use report::{Block, Page, Section};

use super::by_class::{self, ClassRequest};
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
    let has_classes =
        options.by == Some(FaultRows::Class) || options.classes.are_wanted(None, &input.plan.unit);
    let rows = options.by.and_then(|by| by.results(options.inclusive, has_classes));
    calls::check_output(output, options.by.is_none(), rows)?;
    calls::check_functions(&options.calls, rows)?;
    let (rows_shown, none) = (&options.rows, SelectedMachines::default());
    if has_classes {
        let classes = &options.classes;
        let request = ClassRequest { input, classes, rows_shown, output, selected: &none, children };
        if let (Some(by), None) = (options.by, rows) {
            return by_data_or_time(&request, by, page);
        }
        return by_class::run(&request, (rows, &options.calls), || vec![FaultCounts::new()], |_| Vec::new());
    }
    match rows {
        Some(ResultRows::Calls(rows)) => {
            let (options, selected) = (&options.calls, &none);
            let request = CallsRequest { input, rows, options, rows_shown, output, selected, children };
            return calls::simulate(&request, vec![FaultCounts::new()]);
        }
        Some(ResultRows::Own(own)) => {
            let counts = FaultCounts::new();
            let simulated = calls::simulate_these(children, (input, output), rows, &[], &none, counts)?;
            let tables = models::by(own, &[("", &simulated.model)], &simulated.trace);
            simulated.write(tables, rows_shown, output)?;
            return simulated.finish(input);
        }
        _ => {}
    }
    let model = AlignmentFaults::new();
    let simulated = calls::simulate_these(children, (input, output), rows, &[], &none, model)?;
    let (faults, trace) = (&simulated.model, &simulated.trace);
    let tables = match options.by {
        Some(FaultRows::Data) => vec![alignment::by_data(faults, ExecutionPart::Whole, trace)],
        Some(FaultRows::Time) => vec![alignment::over_time(faults, ExecutionPart::Whole)],
        Some(_) => vec![alignment::by_line(faults, trace)],
        None => {
            let mut lines = [alignment::by_line(faults, trace)];
            let sorted = options.rows.sort(&mut lines);
            let usual = output.summary_rows(LINES);
            options.rows.shorten(&mut lines[0], usual, "--by line shows all lines");
            let [lines] = lines;
            simulated.write(vec![alignment::summary(faults), lines], &Default::default(), output)?;
            sorted?;
            return simulated.finish(input);
        }
    };
    match page {
        Some(path) => write_page(&simulated, &tables[0], (&tables[0], &[RATE]), path)?,
        None => simulated.write(tables, &options.rows, output)?,
    }
    simulated.finish(input)
}

/// Simulates the faults of data, or over time, in each class of units of work.
fn by_data_or_time(request: &ClassRequest, by: FaultRows, page: Option<&Path>) -> anyhow::Result<ExitCode> {
    request.check(false)?;
    let simulated = request.simulate(request.prepare()?, AlignmentFaults::new())?;
    let (faults, trace) = (&simulated.model, &simulated.trace);
    request.check_ended(&simulated, &faults.classes)?;
    let table = |part| match by {
        FaultRows::Data => alignment::by_data(faults, part, trace),
        _ => alignment::over_time(faults, part),
    };
    let parts = faults.parts().into_iter().map(|(name, part)| (name, table(part)));
    let whole = table(ExecutionPart::Whole);
    let Some(path) = page else { return request.write_parts(&simulated, parts, whole) };
    let drawn = alignment::rates_by_class(faults);
    let lines: Vec<&str> = drawn.columns[1..].iter().map(|class| class.name.as_str()).collect();
    write_page(&simulated, &tables_of_classes(parts.collect(), whole), (&drawn, &lines), path)?;
    simulated.finish(request.input)
}

/// The column of faults over time that is drawn.
const RATE: &str = "per 1,000 instructions";

/// Writes a page with a chart of the rates over time, above their table: a line for each of these columns of the table that is drawn.
fn write_page<M>(
    simulated: &Simulated<M>,
    rates: &Table,
    (drawn, lines): (&Table, &[&str]),
    path: &Path,
) -> anyhow::Result<()> {
    let chart = report::lines(drawn, &drawn.columns[0].name, lines, RATE)?;
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
