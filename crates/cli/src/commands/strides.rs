//! `pathlength strides`: memory access patterns.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use analysis::models::{ExecutionPart, tables_of_classes};
use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use analysis::strides::{self, Bins, By, LiveStrides, Patterns, StrideSettings};
use anyhow::bail;
use engine::{ClassPlan, Configuration, Plan, UnitPlan};
use machine::Machine;
use report::{Block, Error, Page, Section};
use session::console::RunProgress;
use session::input::Input;
use session::machines::SelectedMachines;
use session::program::{check_ending, check_names, left_out, names_in, protect_images, until};
use session::simulation::{is_parallel, process_notes};
use session::startup::RequestedNames;
use session::{live, process_tree};
use table::Table;
use trace::Trace;

use super::show::{replay_selected, report_problems, selection};
use crate::arguments::{ClassOptions, OutputOptions, PatternsOf, StridesOptions};
use crate::console::{CommandRun, write_after_run};

/// Rows of the short table on a terminal, and charts of a page.
const ROWS: usize = 20;

/// Counts the strides of a trace or of a program.
pub fn run(options: &StridesOptions) -> anyhow::Result<ExitCode> {
    options.output.check(false)?;
    let machines = match options.advice {
        true => SelectedMachines::find([&options.machine], &[])?.machines,
        false => Vec::new(),
    };
    match options.input.resolve()? {
        Input::Trace(path) => replay(options, &path, &machines),
        Input::SavedCounts(path) => bail!("{} holds saved counts, and no addresses", path.display()),
        input => observe(options, &input, &machines),
    }
}

/// Counts the strides of a trace. Parts that cannot be read are reported, and make the exit status 1.
fn replay(options: &StridesOptions, path: &Path, machines: &[Machine]) -> anyhow::Result<ExitCode> {
    if !options.unit.is_empty() || has_classes(options) {
        bail!("{} is a trace: --unit, --class and --by class are for a program that is run", path.display());
    }
    let trace = Trace::open(path)?;
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&selection(&options.selection), &dictionary)?;
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let mut all: Vec<Patterns> = counted(options)
        .into_iter()
        .map(|one| Patterns::new(&dictionary, one.by, one.arrays, one.options))
        .collect();
    let mut is_whole = true;
    for patterns in &mut all {
        is_whole &= replay_selected(&replay, &options.selection, patterns, true)?;
    }
    write(&all, machines, Vec::new(), options, (path, crate::console::write))?;
    report_problems(&trace, path);
    Ok(status(is_whole, &trace))
}

fn status(is_whole: bool, trace: &Trace) -> ExitCode {
    if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Counts the strides of a program while it runs.
fn observe(options: &StridesOptions, input: &Input, machines: &[Machine]) -> anyhow::Result<ExitCode> {
    if selection(&options.selection) != Selection::default() {
        bail!(
            "{input} is a program: while it runs, --unit is the only selection; for others record a trace first"
        );
    }
    let none = Vec::new();
    let (path, arguments) = match input {
        Input::Program { path, arguments } => (path.as_path(), arguments),
        _ => (Path::new(""), &none),
    };
    let mut configuration = options.engine.program().configuration(path, arguments, true);
    let units = units(options)?;
    let live_strides = counted(options).into_iter().map(|one| {
        let strides = LiveStrides::new(one.by, one.arrays, one.options);
        if units.classes.is_some() { strides.with_classes() } else { strides }
    });
    let live_strides: Vec<LiveStrides> = live_strides.collect();
    let plan = Plan { heap: live_strides.iter().any(LiveStrides::wants_heap), ..units };
    if input.attached().is_none() {
        check_names(&configuration, &RequestedNames { arrays: &options.arrays, ..names_in(&plan) })?;
    }
    if options.input.has_all_processes() {
        return observe_processes(options, machines, (&configuration, input), &plan, live_strides);
    }
    if options.by == PatternsOf::Process {
        bail!("--by process needs the strides of all processes: add --children");
    }
    let progress = CommandRun::begin(&options.output, true);
    configuration.settings.executed = progress.instructions();
    let live = live::run(&configuration, &plan, live_strides, is_parallel(None));
    drop(progress);
    let live = live?;
    protect_images(live.trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&live.trace);
    let dictionary = Dictionary::new(&live.trace, &names);
    let all: Vec<Patterns> =
        live.model.into_iter().map(|live_strides| Patterns::of_program(&dictionary, live_strides)).collect();
    let notes = until(&live.ending).into_iter().chain(left_out(live.forked)).collect();
    write(&all, machines, notes, options, (path, write_after_run))?;
    check_ending(&live.ending, path, &options.ending.expected())
}

/// Whether tables are to have classes of units of work.
fn has_classes(options: &StridesOptions) -> bool {
    options.by == PatternsOf::Class || !options.classes.classes.is_empty() || options.unit.len() > 1
}

/// The units of work that are counted, or whose classes are wanted.
fn units(options: &StridesOptions) -> anyhow::Result<Plan> {
    let ClassOptions { classes: rules } = &options.classes;
    let functions = &options.unit;
    if has_classes(options) {
        if options.advice {
            bail!(
                "--advice is on a whole program: leave out --class, and name at most one function with --unit"
            );
        }
        if functions.is_empty() {
            bail!("classes are those of units of work: name their function with --unit FUNCTION");
        }
        let classes = ClassPlan { functions: functions.clone(), rules: rules.clone() };
        return Ok(Plan { classes: Some(classes), ..Plan::default() });
    }
    let unit = functions.first().cloned().map(|function| UnitPlan { function, skip: 0, units: None });
    Ok(Plan { unit, ..Plan::default() })
}

/// The same of all processes.
fn observe_processes(
    options: &StridesOptions,
    machines: &[Machine],
    (configuration, input): (&Configuration, &Input),
    plan: &Plan,
    live_strides: Vec<LiveStrides>,
) -> anyhow::Result<ExitCode> {
    let attached = input.attached();
    let observed = match attached {
        Some(attached) => process_tree::observe_running(attached, plan, live_strides, |_| ())?,
        None => {
            let _run = CommandRun::begin(&options.output, false);
            process_tree::observe(configuration, plan, live_strides, |_| ())?
        }
    };
    protect_images(observed.trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&observed.trace);
    let dictionary = Dictionary::new(&observed.trace, &names);
    let numbers = observed.processes.iter().map(|process| (process.process, process.number.to_string()));
    let numbers: HashMap<u32, String> = numbers.collect();
    let patterns = observed.model.into_iter().map(|live_strides| {
        Patterns::of_program(&dictionary, live_strides).with_process_names(numbers.clone())
    });
    let all: Vec<Patterns> = patterns.collect();
    let mut notes: Vec<String> = observed.ending.as_ref().and_then(until).into_iter().collect();
    notes.extend(process_notes(attached, &observed.processes, observed.left_out));
    let path = input.path().unwrap_or(Path::new(""));
    write(&all, machines, notes, options, (path, write_after_run))?;
    match &observed.ending {
        Some(ending) => check_ending(ending, path, &options.ending.expected()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A set of strides to count.
struct Counted<'a> {
    by: By,
    arrays: &'a [String],
    options: StrideSettings,
}

/// The sets of strides that the options need.
fn counted(options: &StridesOptions) -> Vec<Counted<'_>> {
    let StridesOptions { depth, arrays, .. } = options;
    if options.advice {
        return [By::Walk, By::Array].map(|by| Counted { by, arrays: &[], options: strides::ADVICE }).into();
    }
    let threshold = if options.all_references { 0 } else { options.threshold };
    let bins = Bins { is_signed: options.signed, in_elements: options.in_elements };
    vec![Counted { by: by(options), arrays, options: StrideSettings { depth: *depth, threshold, bins } }]
}

fn by(options: &StridesOptions) -> By {
    match options.by {
        PatternsOf::Instruction => By::Instruction,
        PatternsOf::Line => By::Line,
        PatternsOf::Function => By::Function,
        PatternsOf::Array => By::Array,
        PatternsOf::Process => By::Process,
        PatternsOf::Class | PatternsOf::All => By::All,
    }
}

/// Writes the requested tables or page, with notes.
fn write(
    all: &[Patterns],
    machines: &[Machine],
    notes: Vec<String>,
    options: &StridesOptions,
    (file, write): (&Path, impl Fn(&[Table], &OutputOptions) -> Result<(), Error>),
) -> anyhow::Result<()> {
    let path = options.output.path.as_deref();
    let patterns = match all {
        [lines, arrays] => {
            let mut table = strides::advice(lines, arrays, machines.first());
            table.notes.extend(notes);
            return Ok(write(&[table], &options.output)?);
        }
        [patterns, ..] => patterns,
        [] => return Ok(()),
    };
    if let Some(name) = patterns.missing() {
        let file = file.display();
        bail!(
            "no variable '{name}' is known in {file}; pathlength strides {file} lists those that are accessed"
        );
    }
    if let Some(path) = options.output.page() {
        let page = page(patterns, file, notes)?;
        return Ok(report::write_file(path, |out| page.write(out))?);
    }
    let is_for_people = path.is_none() && options.output.format() == report::Format::Table;
    let usual = (is_for_people && !options.histograms).then_some(ROWS);
    let mut sorted = Ok(());
    let mut table = table(patterns, options.histograms, |table| {
        let again = options.rows.sort(std::slice::from_mut(table));
        sorted = std::mem::replace(&mut sorted, Ok(())).and(again);
        options.rows.shorten(table, usual, "-o FILE writes all");
    });
    table.notes.extend(notes);
    write(&[table], &options.output)?;
    sorted
}

/// A table of series, or of all their strides; `shorten` is given that of each class of units of work.
fn table(patterns: &Patterns, are_histograms: bool, mut shorten: impl FnMut(&mut Table)) -> Table {
    let table = |part| if are_histograms { patterns.histograms(part) } else { patterns.table(part) };
    let mut whole = table(ExecutionPart::Whole);
    if !patterns.has_classes() {
        shorten(&mut whole);
        return whole;
    }
    let parts = patterns.parts().into_iter().map(|(name, part)| {
        let mut table = table(part);
        shorten(&mut table);
        (name, table)
    });
    tables_of_classes(parts.collect(), whole)
}

/// A page with a chart for each of the first series.
fn page(patterns: &Patterns, trace: &Path, notes: Vec<String>) -> Result<Page, Error> {
    let charts = report::histograms(&patterns.charts(&patterns.frequent(ROWS)))?;
    let how_to_read = Block::Paragraph(HOW_TO_READ.into());
    let blocks = std::iter::once(how_to_read).chain(charts.into_iter().map(Block::Chart)).collect();
    let mut table = self::table(patterns, false, |_| ());
    table.notes.extend(notes);
    let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy();
    Ok(Page {
        title: "Memory access patterns".into(),
        headline: format!("How far apart the addresses are that {name} accesses"),
        sections: vec![
            Section { heading: "Strides".into(), blocks },
            Section {
                heading: "Numbers".into(),
                blocks: vec![Block::Table(table), Block::Table(self::table(patterns, true, |_| ()))],
            },
        ],
        ..Page::default()
    })
}

/// An explanation of the charts.
const HOW_TO_READ: &str = "A chart for each series of loads or stores, the one with most references first. A bar is as \
    high as the share of the references that are so far, as is written below it, from the one *1 back*, *2 back* and \
    so on. A stride of one element again and again is what caches like best; long ones use little of each line.";
