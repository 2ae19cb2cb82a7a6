//! `pathlength mrc`: miss-ratio curves, the misses of caches of all sizes.

use std::process::ExitCode;

use analysis::models::{self, ClassCurves, TotalsByClass};
use anyhow::Context;
use clap::ValueEnum;
use machine::{Holds, MissRatioCurves, PerProcess};
use report::{Block, Error, Page, Section};
use session::console::check_output;
use session::machines::SelectedMachines;
use session::simulation::{Needs, Simulated, Simulation};
use session::tables::NOTHING_SIMULATED;
use table::Table;

use crate::arguments::{MrcOptions, ReferenceStream, SizesOptions};
use crate::console::CommandConsole;

/// Pages of a block, by Alpha's granularity hints.
const BLOCKS: [u32; 3] = [8, 64, 512];
/// Lines of this many bytes can be pages.
const SMALLEST_PAGE: u64 = 512;

/// The note on curves of processes.
const OWN_CACHES: &str = "Each process has caches of its own, as if it had a processor to itself.";

/// Simulates caches of all sizes on the trace or the program, and writes the tables, or a page of charts.
pub fn run(options: &MrcOptions) -> anyhow::Result<ExitCode> {
    let SizesOptions { streams, line_size, largest, granularity_hints } = &options.sizes;
    let streams = ReferenceStream::value_variants().iter().filter(|stream| streams.contains(stream));
    let holds: Vec<Holds> = streams.map(|&stream| stream.into()).collect();
    let console = CommandConsole::new(&options.output, None);
    check_output(&console, holds.len() > 1)?;
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
    let simulation = &options.input.simulation(&options.classes, SelectedMachines::default(), &console)?;
    let (mut simulated, mut curves) = if simulation.has_classes() {
        by_class(simulation, line_size, make)?
    } else {
        let (simulated, model) = of_all(simulation, make)?;
        (simulated, Curves::of_all(&model, line_size))
    };
    if simulation.all_processes {
        simulated.notes.push(OWN_CACHES.into());
    }
    if let (Some(hinted), Some(last)) = (granularity_hints, curves.tables.last_mut()) {
        last.notes.push(format!(
            "An entry of {hinted} holds a block of up to 512 pages, and counts as a line in sizes."
        ));
    }
    match options.output.page() {
        Some(path) => simulated.write_page(simulation, page(&simulated.program(), curves)?, path),
        None => simulated.write(simulation, curves.tables),
    }
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
    simulation: &Simulation,
    line_size: u64,
    make: impl Fn() -> Result<MissRatioCurves, machine::Error> + Send + 'static,
) -> anyhow::Result<(Simulated<()>, Curves)> {
    simulation.check_classes(true)?;
    make()?;
    let divided = TotalsByClass::new(move || make().expect("it was possible before"));
    let simulated = simulation.run_with_classes(divided)?;
    simulated.check_classes(simulation, &simulated.model.classes)?;
    let (simulated, divided) = simulated.take_model();
    let parts = divided.parts();
    let whole = divided.models.into_merged().context(NOTHING_SIMULATED)?;
    Ok((simulated, Curves::of_classes(&models::class_curves(&whole, parts), line_size)))
}

/// Simulates the model that `make` makes, or one for each process, whose counts are added up.
fn of_all(
    simulation: &Simulation,
    make: impl Fn() -> Result<MissRatioCurves, machine::Error> + Send + 'static,
) -> anyhow::Result<(Simulated<()>, MissRatioCurves)> {
    let first = make()?;
    if !simulation.all_processes {
        return Ok(simulation.run(Needs::default(), first)?.take_model());
    }
    let model = PerProcess::merging(move || make().expect("it was possible before"));
    let (simulated, model) = simulation.run(Needs::default(), model)?.take_model();
    Ok((simulated, model.into_merged().context(NOTHING_SIMULATED)?))
}

/// A page with a chart for each table.
fn page(program: &str, curves: Curves) -> Result<Page, Error> {
    let lines: Vec<&str> = curves.lines.iter().map(String::as_str).collect();
    let section = |(table, drawn): (Table, Table)| {
        let chart = report::sizes(&drawn, "size", &lines, "misses per 1,000 instructions")?;
        let (heading, what) = table.title.split_once(": ").unwrap_or(("", &table.title));
        let chart = chart.titled(&format!("{}-chart", table.name), &format!("{heading}, {what}"));
        let chart = chart.captioned(curves.caption);
        Ok(Section { heading: heading.into(), blocks: vec![Block::Chart(chart), Block::Table(table)] })
    };
    Ok(Page {
        title: "Miss-ratio curves".into(),
        headline: format!("How large must a cache be for {program}?"),
        sections: curves.tables.into_iter().zip(curves.drawn).map(section).collect::<Result<_, Error>>()?,
        ..Page::default()
    })
}
