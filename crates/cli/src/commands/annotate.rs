//! `pathlength annotate`: functions as source and disassembly, with a model's results.

use std::path::Path;
use std::process::ExitCode;

use analysis::annotate::{AnnotateRequest, annotate};
use analysis::models::InstructionResults;
use analysis::table::Table;
use anyhow::bail;
use machine::{Caches, InstructionCounts, Machine, Model, TimingModel};
use report::{Block, Format, Page, Section};

use super::caches::find;
use super::simulate::{Simulated, simulate};
use crate::arguments::AnnotateOptions;

/// Runs the program, or reads the trace, and writes a table for each function.
pub fn run(options: &AnnotateOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    match output.page() {
        Some(_) if output.format != Format::Table => {
            bail!("a page has no other format: leave out --format {}", output.format)
        }
        Some(_) => {}
        None => report::check(options.functions.len() != 1, output.format, output.path.as_deref())?,
    }
    let machine = |name: &Option<String>| find(&name.iter().cloned().collect::<Vec<_>>());
    let (caches, time) = (machine(&options.caches)?, machine(&options.time)?);
    match (&caches[..], &time[..]) {
        ([machine], _) => show(options, &caches, Caches::new(machine)),
        (_, [machine]) => show(options, &time, TimingModel::new(machine)?),
        _ => show(options, &[], InstructionCounts::new(&isa::Alpha)),
    }
}

fn show<M: InstructionResults + Model + 'static>(
    options: &AnnotateOptions,
    machines: &[Machine],
    model: M,
) -> anyhow::Result<ExitCode> {
    let simulated = simulate(&options.input, None, &options.functions, machines, model)?;
    let request = AnnotateRequest {
        functions: options.functions.clone(),
        top: options.top,
        folders: options.folders.clone(),
    };
    let tables = annotate(&simulated.model, &simulated.trace, &request);
    if tables.is_empty() {
        bail!("no instruction of {} was executed", options.functions.join(", "));
    }
    match options.output.page() {
        Some(path) => write_page(&simulated, tables, path)?,
        None => simulated.write(tables, &options.output)?,
    }
    simulated.finish(&options.input)
}

/// A page with a section for each function.
fn write_page<M>(simulated: &Simulated<M>, tables: Vec<Table>, path: &Path) -> Result<(), report::Error> {
    let header = simulated.trace.header();
    let program = header.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let command: Vec<_> = std::iter::once(program.clone()).chain(header.arguments.iter().cloned()).collect();
    let notes = simulated.all_notes().map(|note| ("simulated".into(), note.clone()));
    let section = |table: Table| Section { heading: table.name.clone(), blocks: vec![Block::Table(table)] };
    let page = Page {
        title: "Annotated functions".into(),
        headline: format!("The most expensive lines of {program}"),
        sections: tables.into_iter().map(section).collect(),
        provenance: std::iter::once(("program".into(), command.join(" "))).chain(notes).collect(),
        ..Page::default()
    };
    simulated.protect();
    report::write_file(path, |out| page.write(out))
}
