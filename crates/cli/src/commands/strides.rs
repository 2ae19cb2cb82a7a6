//! `pathlength strides`: memory access patterns.

use std::path::Path;
use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, Order, Replay, Wanted};
use analysis::strides::{self, Bins, By, Heard, Options, Patterns};
use analysis::table::Table;
use anyhow::bail;
use engine::{Plan, UnitPlan};
use lab::live;
use lab::measure::Ending;
use report::{Block, Error, Page, Section};
use trace::Trace;

use super::show::{go_through, tell_problems, wanted};
use super::{check_ending, configuration};
use crate::arguments::{PatternsOf, StridesOptions};

/// How many rows the short table has on a terminal, and charts a page.
const ROWS: usize = 20;

/// Counts the strides of a trace or of a program.
pub fn run(options: &StridesOptions) -> anyhow::Result<ExitCode> {
    report::check(false, options.output.format, options.output.path.as_deref())?;
    if Trace::is_trace(&options.file) { replay(options) } else { hear(options) }
}

/// Of a trace; what of it could not be read is told, and makes the exit status 1.
fn replay(options: &StridesOptions) -> anyhow::Result<ExitCode> {
    let file = options.file.display();
    if options.unit.is_some() || !options.arguments.is_empty() {
        bail!("{file} is a trace: --unit and arguments are for a program that is run");
    }
    let trace = Trace::open(&options.file)?;
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&wanted(&options.wanted), &dictionary)?;
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: Order::Time };
    if options.advice {
        let machine = super::caches::find(std::slice::from_ref(&options.machine))?;
        let [mut lines, mut arrays] =
            [By::Walk, By::Array].map(|by| Patterns::new(&dictionary, &accesses, by, &[], strides::ADVICE));
        let is_whole = go_through(&replay, &mut lines, true)? && go_through(&replay, &mut arrays, true)?;
        let table = strides::advice(&lines, &arrays, machine.first());
        report::write_all(&[table], options.output.format, options.output.path.as_deref())?;
        tell_problems(&trace, &options.file);
        return Ok(status(is_whole, &trace));
    }
    let mut patterns = Patterns::new(&dictionary, &accesses, by(options), &options.arrays, counted(options));
    let is_whole = go_through(&replay, &mut patterns, true)?;
    if let Some(name) = patterns.missing() {
        bail!(
            "no variable '{name}' is known in {file}; pathlength strides {file} lists those that are accessed"
        );
    }
    write(&patterns, options)?;
    tell_problems(&trace, &options.file);
    Ok(status(is_whole, &trace))
}

fn status(is_whole: bool, trace: &Trace) -> ExitCode {
    if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Of a program, while it runs.
fn hear(options: &StridesOptions) -> anyhow::Result<ExitCode> {
    let file = options.file.display();
    let heard = Heard::new(by(options), counted(options));
    let heard = heard.filter(|_| options.arrays.is_empty() && !options.advice);
    let Some(heard) = heard else {
        bail!(
            "{file} is a program: while it runs there is --by instruction or all; for the rest record a trace first"
        );
    };
    if wanted(&options.wanted) != Wanted::default() {
        bail!("{file} is a program: while it runs only --unit chooses; for the rest record a trace first");
    }
    let configuration = configuration(&options.engine, &options.file, &options.arguments, true);
    let unit = options.unit.clone().map(|function| UnitPlan { function, skip: 0, units: None });
    let is_parallel = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    let live = live::run(&configuration, &Plan { unit, ..Plan::default() }, heard, is_parallel)?;
    // What was counted until somebody ended the program is not shown as if it were all.
    if matches!(live.ending, Ending::Killed { .. }) {
        check_ending(&live.ending, &options.file)?;
    }
    let names = Names::of_trace(&live.trace);
    let dictionary = Dictionary::new(&live.trace, &names);
    let accesses = Accesses::new(&live.trace);
    write(&Patterns::heard(&dictionary, &accesses, live.model), options)?;
    check_ending(&live.ending, &options.file)?;
    Ok(ExitCode::SUCCESS)
}

fn by(options: &StridesOptions) -> By {
    match options.by {
        PatternsOf::Instruction => By::Instruction,
        PatternsOf::Line => By::Line,
        PatternsOf::Function => By::Function,
        PatternsOf::Array => By::Array,
        PatternsOf::All => By::All,
    }
}

fn counted(options: &StridesOptions) -> Options {
    Options {
        depth: options.depth,
        threshold: if options.all_references { 0 } else { options.threshold },
        bins: Bins { is_signed: options.signed, in_elements: options.in_elements },
    }
}

fn write(patterns: &Patterns, options: &StridesOptions) -> Result<(), Error> {
    let output = options.output.path.as_deref();
    if let Some(path) = output.filter(|path| path.extension().is_some_and(|extension| extension == "html")) {
        let page = page(patterns, &options.file)?;
        return report::write_file(path, |out| page.write(out));
    }
    let table = if options.histograms { patterns.histograms() } else { patterns.table() };
    let is_for_people = output.is_none() && options.output.format == report::Format::Table;
    let table = if is_for_people && !options.histograms { shortened(table) } else { table };
    report::write_all(&[table], options.output.format, output)
}

/// Keeps the first rows.
fn shortened(mut table: Table) -> Table {
    if table.rows.len() > ROWS {
        let more = table.rows.len() - ROWS;
        table.rows.truncate(ROWS);
        table.notes.push(format!("{more} more rows: -o FILE writes all."));
    }
    table
}

/// A page with a chart for each of the first series.
fn page(patterns: &Patterns, trace: &Path) -> Result<Page, Error> {
    let charts = report::histograms(&patterns.charts(&patterns.frequent(ROWS)))?;
    let how_to_read = Block::Paragraph(HOW_TO_READ.into());
    let blocks = std::iter::once(how_to_read).chain(charts.into_iter().map(Block::Chart)).collect();
    let table = patterns.table();
    Ok(Page {
        title: "Memory access patterns".into(),
        headline: format!("How far apart the addresses are that {} accesses", trace.display()),
        sections: vec![
            Section { heading: "Strides".into(), blocks },
            Section {
                heading: "Numbers".into(),
                blocks: vec![Block::Table(table), Block::Table(patterns.histograms())],
            },
        ],
        ..Page::default()
    })
}

/// What the charts show.
const HOW_TO_READ: &str = "A chart for each series of loads or stores, the one with most references first. A bar is as \
    high as the share of the references that are so far, as is written below it, from the one *1 back*, *2 back* and \
    so on. A stride of one element again and again is what caches like best; long ones use little of each line.";
