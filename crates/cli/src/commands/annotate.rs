//! `pathlength annotate`: functions as source and disassembly, with a model's results.

use std::process::ExitCode;

use analysis::annotate::{AnnotateRequest, annotate, expensive_lines};
use analysis::models::InstructionResults;
use machine::{Caches, InstructionCounts, MergeableModel};
use report::{Page, PageBlock, PageSection};
use session::console::check_output;
use session::machines::timing_models;
use session::simulation::{Needs, Simulation};
use table::Table;

use super::models::models_of;
use crate::arguments::{AnnotateOptions, ClassOptions, MeasuredEvent};
use crate::console::CommandConsole;

/// Lines at the beginning of a page.
const LINES: usize = 15;

/// Runs the program, or reads the trace, and writes a table for each function.
pub fn run(options: &AnnotateOptions) -> anyhow::Result<ExitCode> {
    let console = CommandConsole::new(&options.output);
    check_output(&console, options.functions.len() != 1)?;
    let (event, machines) = options.events.selected()?;
    let simulation = &options.input.simulation(&ClassOptions::default(), machines, &console)?;
    match event {
        MeasuredEvent::Instructions => show(options, simulation, || vec![InstructionCounts::new()]),
        MeasuredEvent::Misses => show(options, simulation, models_of(&simulation.machines, Caches::new)),
        MeasuredEvent::Cycles => {
            show(options, simulation, timing_models(&simulation.machines.machines, None)?)
        }
    }
}

fn show<M: InstructionResults + MergeableModel + 'static>(
    options: &AnnotateOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let needs = Needs { functions: &options.functions, ..Needs::default() };
    simulation.with_results(needs, make, |simulated, results| {
        let request = AnnotateRequest {
            functions: options.functions.clone(),
            top: options.top,
            folders: options.folders.clone(),
        };
        let tables = annotate(&results[0], &simulated.trace, &request)?;
        match simulation.console.page() {
            Some(path) => simulated.write_page(simulation, page(&simulated.program(), tables), path),
            None => simulated.write(simulation, tables),
        }
    })
}

/// A page with the most expensive lines, and a section for each function.
fn page(program: &str, tables: Vec<Table>) -> Page {
    let lines = expensive_lines(&tables, LINES);
    let lines =
        lines.map(|table| PageSection { heading: "Lines".into(), blocks: vec![PageBlock::Table(table)] });
    let section =
        |table: Table| PageSection { heading: table.name.clone(), blocks: vec![PageBlock::Table(table)] };
    Page {
        title: "Annotated functions".into(),
        headline: format!("The most expensive lines of {program}"),
        sections: lines.into_iter().chain(tables.into_iter().map(section)).collect(),
        ..Page::default()
    }
}
