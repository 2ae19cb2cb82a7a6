//! `pathlength mrc`: miss-ratio curves, the misses of caches of all sizes.

use std::path::Path;
use std::process::ExitCode;

use analysis::models::{self, ClassCurves, TotalsByClass};
use analysis::table::Table;
use anyhow::Context;
use clap::ValueEnum;
use machine::{Holds, MissRatioCurves, PerProcess};
use report::{Block, Error, Page, Section};

use super::by_class::ClassRequest;
use super::processes;
use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, simulate};
use crate::arguments::{
    ClassOptions, OutputOptions, ReferenceStream, RowOptions, SimulationOptions, SizesOptions,
};

/// Pages of a block, by Alpha's granularity hints.
const BLOCKS: [u32; 3] = [8, 64, 512];
/// Lines of this many bytes can be pages.
const SMALLEST_PAGE: u64 = 512;

/// The note on curves of processes.
const OWN_CACHES: &str = "Each process has caches of its own, as if it had a processor to itself.";

/// Simulates caches of all sizes on the trace or the program, and writes the tables, or a page of charts.
pub fn run(
    sizes: &SizesOptions,
    output: &OutputOptions,
    input: &SimulationOptions,
    children: bool,
    classes: &ClassOptions,
) -> anyhow::Result<ExitCode> {
    let page = output.page();
    let SizesOptions { streams, line_size, largest, granularity_hints } = sizes;
    let streams = ReferenceStream::value_variants().iter().filter(|stream| streams.contains(stream));
    let holds: Vec<Holds> = streams.map(|&stream| stream.into()).collect();
    output.check(holds.len() > 1)?;
    if granularity_hints.is_some() && *line_size < SMALLEST_PAGE {
        anyhow::bail!(
            "--granularity-hints are of pages, and lines have {line_size} bytes: add --line-size 8K"
        );
    }
    let (line_size, largest, hinted) = (*line_size, *largest, granularity_hints.clone());
    let make = move || {
        let curves = MissRatioCurves::new(line_size, largest, &holds)?;
        Ok::<_, machine::Error>(match &hinted {
            Some(hinted) => curves.with_granularity_hints(&BLOCKS, hinted),
            None => curves,
        })
    };
    let has_classes = classes.are_wanted(None, &input.plan.unit);
    let (simulated, mut curves) = if has_classes {
        let request = ClassRequest {
            input,
            classes,
            rows_shown: &RowOptions::default(),
            output,
            selected: &SelectedMachines::default(),
            children,
        };
        by_class(&request, line_size, make)?
    } else {
        let simulated = run_models(output, input, children, make)?;
        let curves = Curves::of_all(&simulated.model, line_size);
        (simulated.with_model(()), curves)
    };
    if let (Some(hinted), Some(last)) = (granularity_hints, curves.tables.last_mut()) {
        last.notes.push(format!(
            "An entry of {hinted} holds a block of up to 512 pages, and counts as a line in sizes."
        ));
    }
    match page {
        Some(path) => write_page(&simulated, curves, path)?,
        None => simulated.write(curves.tables, &RowOptions::default(), output)?,
    }
    simulated.finish(input)
}

/// The curves as tables, one for each stream, and what a page draws of them.
struct Curves {
    tables: Vec<Table>,
    /// The tables that are drawn, with a line for each column of these names.
    drawn: Vec<Table>,
    lines: Vec<String>,
    caption: &'static str,
}

impl Curves {
    fn of_all(model: &MissRatioCurves, line_size: u64) -> Curves {
        let table = |curve| models::miss_ratio_curve(curve, line_size, model.instructions());
        let tables: Vec<Table> = model.curves().iter().map(table).collect();
        let lines = models::WAYS.map(|(name, _)| name.into()).into();
        Curves { drawn: tables.clone(), tables, lines, caption: "" }
    }

    fn of_classes(classes: &[ClassCurves], line_size: u64) -> Curves {
        Curves {
            tables: models::miss_ratio_curves_by_class(classes, line_size),
            drawn: models::fully_associative_by_class(classes),
            lines: classes.iter().map(|one| one.class.clone()).collect(),
            caption: "Fully associative caches, which all classes use; misses per 1,000 instructions of each class.",
        }
    }
}

/// Simulates the models with the classes of units of work.
fn by_class(
    request: &ClassRequest,
    line_size: u64,
    make: impl Fn() -> Result<MissRatioCurves, machine::Error> + Send + 'static,
) -> anyhow::Result<(Simulated<()>, Curves)> {
    request.check(true)?;
    make()?;
    let divided = TotalsByClass::new(move || make().expect("it was possible before"));
    let mut simulated = request.simulate(request.prepare()?, divided)?;
    request.check_ended(&simulated, &simulated.model.classes)?;
    simulated.notes.extend(request.children.then(|| OWN_CACHES.into()));
    let (simulated, divided) = simulated.take_model();
    let parts = divided.parts();
    let whole = divided.models.into_merged().context(processes::NOTHING_SIMULATED)?;
    Ok((simulated, Curves::of_classes(&models::class_curves(&whole, parts), line_size)))
}

/// Simulates the model that `make` makes, or one for each process, whose counts are added up.
fn run_models(
    output: &OutputOptions,
    input: &SimulationOptions,
    children: bool,
    make: impl Fn() -> Result<MissRatioCurves, machine::Error> + Send + 'static,
) -> anyhow::Result<Simulated<MissRatioCurves>> {
    let none = SelectedMachines::default();
    let first = make()?;
    if !children {
        return simulate(input, output, None, &[], &none, first);
    }
    let model = PerProcess::merging(move || make().expect("it was possible before"));
    let (mut simulated, _) = processes::simulate_all(input, output, None, &[], &none, model)?;
    simulated.notes.push(OWN_CACHES.into());
    let (simulated, model) = simulated.take_model();
    let model = model.into_merged().context(processes::NOTHING_SIMULATED)?;
    Ok(simulated.with_model(model))
}

/// A page with a chart for each table.
fn write_page(simulated: &Simulated<()>, curves: Curves, path: &Path) -> Result<(), Error> {
    let header = simulated.trace.header();
    let program = header.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let lines: Vec<&str> = curves.lines.iter().map(String::as_str).collect();
    let section = |(table, drawn): (Table, Table)| {
        let chart = report::sizes(&drawn, "size", &lines, "misses per 1,000 instructions")?;
        let (heading, what) = table.title.split_once(": ").unwrap_or(("", &table.title));
        let chart = chart.titled(&format!("{}-chart", table.name), &format!("{heading}, {what}"));
        let chart = chart.captioned(curves.caption);
        Ok(Section { heading: heading.into(), blocks: vec![Block::Chart(chart), Block::Table(table)] })
    };
    let page = Page {
        title: "Miss-ratio curves".into(),
        headline: format!("How large must a cache be for {program}?"),
        sections: curves.tables.into_iter().zip(curves.drawn).map(section).collect::<Result<_, Error>>()?,
        provenance: simulated.provenance(),
        ..Page::default()
    };
    report::write_file(path, |out| page.write(out))
}
