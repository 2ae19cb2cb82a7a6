//! Miss-ratio curves: the misses of caches of all sizes.

use std::process::ExitCode;

use analysis::models::{self, ClassCurves, TotalsByClass};
use anyhow::{Context, bail};
use machine::{HintedRegions, Holds, MissRatioCurves};
use report::{Error, Page, PageBlock, PageSection};
use table::Table;

use super::NOTHING_SIMULATED;
use crate::console::check_output;
use crate::simulation::{Needs, Simulated, Simulation};

/// Pages of a block, by Alpha's granularity hints.
const BLOCKS: [u32; 3] = [8, 64, 512];
/// Lines of this many bytes can be pages.
const SMALLEST_PAGE: u64 = 512;

/// The note on curves of processes.
const OWN_CACHES: &str = "Each process has caches of its own, as if it had a processor to itself.";

/// The caches of miss-ratio curves.
#[derive(Clone, Debug)]
pub struct CurvesRequest {
    /// The references that they hold: a table each.
    pub holds: Vec<Holds>,
    /// Bytes of a line.
    pub line_size: u64,
    /// Bytes of the largest cache.
    pub largest: u64,
    /// Regions with larger pages, if caches are TLBs.
    pub hinted: Option<HintedRegions>,
}

impl CurvesRequest {
    /// Simulates caches of all sizes, and writes the tables, or a page of charts. Returns the exit status.
    pub fn write(self, simulation: &Simulation) -> anyhow::Result<ExitCode> {
        let CurvesRequest { holds, line_size, largest, hinted } = self;
        check_output(simulation.console, holds.len() > 1)?;
        if hinted.is_some() && line_size < SMALLEST_PAGE {
            bail!("--granularity-hints are of pages, and lines have {line_size} bytes: add --line-size 8K");
        }
        let note = hinted.as_ref().map(|hinted| {
            format!("An entry of {hinted} holds a block of up to 512 pages, and counts as a line in sizes.")
        });
        let make = move || {
            let curves = MissRatioCurves::new(line_size, largest, &holds)?;
            Ok::<_, machine::DescriptionError>(match &hinted {
                Some(hinted) => curves.with_granularity_hints(&BLOCKS, hinted),
                None => curves,
            })
        };
        let (mut simulated, mut curves) = if simulation.has_classes() {
            by_class(simulation, line_size, make)?
        } else {
            let (simulated, model) = of_all(simulation, make)?;
            (simulated, Curves::of_all(&model, line_size))
        };
        if simulation.all_processes {
            simulated.notes.push(OWN_CACHES.into());
        }
        if let Some(last) = curves.tables.last_mut() {
            last.notes.extend(note);
        }
        match simulation.console.page() {
            Some(path) => simulated.write_page(simulation, page(&simulated.program(), curves)?, path),
            None => simulated.write(simulation, curves.tables),
        }
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
    make: impl Fn() -> Result<MissRatioCurves, machine::DescriptionError> + Send + 'static,
) -> anyhow::Result<(Simulated<()>, Curves)> {
    simulation.check_classes()?;
    make()?;
    let make = move || make().expect("it was possible before");
    let divided = TotalsByClass::new(simulation.process_models(make));
    let simulated = simulation.run(Needs::CLASSES, divided)?;
    simulated.check_classes(simulation, &simulated.model.classes)?;
    let (simulated, divided) = simulated.take_model();
    let parts = divided.parts();
    let whole = divided.models.into_merged().context(NOTHING_SIMULATED)?;
    Ok((simulated, Curves::of_classes(&models::class_curves(&whole, parts), line_size)))
}

/// Simulates the model that `make` makes, or one for each process, whose counts are added up.
fn of_all(
    simulation: &Simulation,
    make: impl Fn() -> Result<MissRatioCurves, machine::DescriptionError> + Send + 'static,
) -> anyhow::Result<(Simulated<()>, MissRatioCurves)> {
    make()?;
    let model = simulation.process_models(move || make().expect("it was possible before"));
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
        Ok(PageSection {
            heading: heading.into(),
            blocks: vec![PageBlock::Chart(chart), PageBlock::Table(table)],
        })
    };
    Ok(Page {
        title: "Miss-ratio curves".into(),
        headline: format!("How large must a cache be for {program}?"),
        sections: curves.tables.into_iter().zip(curves.drawn).map(section).collect::<Result<_, Error>>()?,
        ..Page::default()
    })
}
