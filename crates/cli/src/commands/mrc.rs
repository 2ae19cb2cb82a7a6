//! `pathlength mrc`: miss-ratio curves, the misses of caches of all sizes.

use std::path::Path;
use std::process::ExitCode;

use analysis::models;
use analysis::table::Table;
use clap::ValueEnum;
use machine::{Holds, MissRatioCurves};
use report::{Block, Error, Format, Page, Section};

use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, simulate};
use crate::arguments::{OutputOptions, ReferenceStream, RowOptions, SimulationOptions, SizesOptions};

/// Pages of a block, by Alpha's granularity hints.
const BLOCKS: [u32; 3] = [8, 64, 512];
/// Lines of this many bytes can be pages.
const SMALLEST_PAGE: u64 = 512;

/// Simulates caches of all sizes on the trace or the program, and writes the tables, or a page of charts.
pub fn run(
    sizes: &SizesOptions,
    output: &OutputOptions,
    input: &SimulationOptions,
) -> anyhow::Result<ExitCode> {
    let page = output.page();
    let SizesOptions { streams, line_size, largest, granularity_hints } = sizes;
    let streams = ReferenceStream::value_variants().iter().filter(|stream| streams.contains(stream));
    let holds: Vec<Holds> = streams.map(|&stream| stream.into()).collect();
    match page {
        Some(_) if output.format() != Format::Table => {
            anyhow::bail!("a page has no other format: leave out --format {}", output.format())
        }
        Some(_) => {}
        None => output.check(holds.len() > 1)?,
    }
    let mut curves = MissRatioCurves::new(*line_size, *largest, &holds)?;
    if let Some(hinted) = granularity_hints {
        if *line_size < SMALLEST_PAGE {
            anyhow::bail!(
                "--granularity-hints are of pages, and lines have {line_size} bytes: add --line-size 8K"
            );
        }
        curves = curves.with_granularity_hints(&BLOCKS, hinted);
    }
    let simulated = simulate(input, output, None, &[], &SelectedMachines::default(), curves)?;
    let curves = simulated.model.curves();
    let table = |curve| models::miss_ratio_curve(curve, *line_size, simulated.model.instructions());
    let mut tables: Vec<Table> = curves.iter().map(table).collect();
    if let (Some(hinted), Some(last)) = (granularity_hints, tables.last_mut()) {
        last.notes.push(format!(
            "An entry of {hinted} holds a block of up to 512 pages, and counts as a line in sizes."
        ));
    }
    match page {
        Some(path) => write_page(&simulated, tables, path)?,
        None => simulated.write(tables, &RowOptions::default(), output)?,
    }
    simulated.finish(input)
}

/// A page with a chart for each table.
fn write_page(simulated: &Simulated<MissRatioCurves>, tables: Vec<Table>, path: &Path) -> Result<(), Error> {
    let header = simulated.trace.header();
    let program = header.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let headings = models::WAYS.map(|(heading, _)| heading);
    let section = |table: Table| {
        let chart = report::sizes(&table, "size", &headings, "misses per 1,000 instructions")?;
        let (heading, what) = table.title.split_once(": ").unwrap_or(("", &table.title));
        let chart = chart.titled(&format!("{}-chart", table.name), &format!("{heading}, {what}"));
        Ok(Section { heading: heading.into(), blocks: vec![Block::Chart(chart), Block::Table(table)] })
    };
    let page = Page {
        title: "Miss-ratio curves".into(),
        headline: format!("How large must a cache be for {program}?"),
        sections: tables.into_iter().map(section).collect::<Result<_, Error>>()?,
        provenance: simulated.provenance(),
        ..Page::default()
    };
    report::write_file(path, |out| page.write(out))
}
