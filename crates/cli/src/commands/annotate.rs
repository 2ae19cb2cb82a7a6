//! `pathlength annotate`: functions as source and disassembly, with a model's results.

use std::path::Path;
use std::process::ExitCode;

use analysis::annotate::{AnnotateRequest, annotate, expensive_lines};
use analysis::models::InstructionResults;
use analysis::table::Table;
use machine::{Caches, InstructionCounts, Model, TimingModel};
use report::{Block, Page, Section};

use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, simulate};
use crate::arguments::{AnnotateOptions, RowOptions};

/// Runs the program, or reads the trace, and writes a table for each function.
pub fn run(options: &AnnotateOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(options.functions.len() != 1)?;
    let machine = |name| SelectedMachines::find_one(name, &options.settings);
    let (caches, time) = (machine(&options.caches)?, machine(&options.time)?);
    match (&caches.machines[..], &time.machines[..]) {
        ([machine], _) => show(options, &caches, Caches::new(machine)),
        (_, [machine]) => show(options, &time, TimingModel::new(machine)?),
        _ => show(options, &SelectedMachines::default(), InstructionCounts::new()),
    }
}

fn show<M: InstructionResults + Model + 'static>(
    options: &AnnotateOptions,
    machines: &SelectedMachines,
    model: M,
) -> anyhow::Result<ExitCode> {
    let simulated = simulate(&options.input, &options.output, None, &options.functions, machines, model)?;
    let request = AnnotateRequest {
        functions: options.functions.clone(),
        top: options.top,
        folders: options.folders.clone(),
    };
    let tables = annotate(&simulated.model, &simulated.trace, &request)?;
    match options.output.page() {
        Some(path) => write_page(&simulated, tables, path)?,
        None => simulated.write(tables, &RowOptions::default(), &options.output)?,
    }
    simulated.finish(&options.input)
}

/// Lines at the beginning of a page.
const LINES: usize = 15;

/// A page with the most expensive lines, and a section for each function.
fn write_page<M>(simulated: &Simulated<M>, tables: Vec<Table>, path: &Path) -> Result<(), report::Error> {
    let header = simulated.trace.header();
    let program = header.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lines = expensive_lines(&tables, LINES);
    let lines = lines.map(|table| Section { heading: "Lines".into(), blocks: vec![Block::Table(table)] });
    let section = |table: Table| Section { heading: table.name.clone(), blocks: vec![Block::Table(table)] };
    let page = Page {
        title: "Annotated functions".into(),
        headline: format!("The most expensive lines of {program}"),
        sections: lines.into_iter().chain(tables.into_iter().map(section)).collect(),
        provenance: simulated.provenance(),
        ..Page::default()
    };
    simulated.protect();
    report::write_file(path, |out| page.write(out))
}
