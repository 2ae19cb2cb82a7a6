//! `pathlength count`: the instructions of a run, or of a unit of work, by image, group and function.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use analysis::classes::ClassProfiles;
use analysis::code_counts::{CodeRows, code_table};
use analysis::components::{Components, component_shares};
use analysis::environment::describe_environment;
use analysis::mix;
use analysis::profile::{Profile, functions, image_shares};
use analysis::run_counts::{self, RunCounts, RunDescription, process_table};
use analysis::units::{Measurement, Phase, each_unit, path_lengths, unsteady_note};
use anyhow::bail;
use engine::Configuration;
use session::console::RunProgress;
use session::input::Input;
use session::measure::{self, CountRequest, Counted};
use session::process_tree;
use session::program::{check_ending, check_names, left_out, protect_images, until};
use table::Table;
use trace::{EnvironmentSummary, Trace};

use super::show::report_problems;
use super::{classes, counted_tree, named_in_unit, unit};
use crate::arguments::{By, CountOptions, OutputOptions};
use crate::console::{CommandRun, write, write_after_run};
use crate::messages::{self, Message};

/// How many functions a summary lists.
pub const SUMMARY_FUNCTIONS: usize = 15;

/// One message is sent for this number of units.
const MESSAGE_INTERVAL: u64 = 64;

/// Runs the program, or takes the counts of a trace or saved ones, and writes the tables.
pub fn run(options: &CountOptions) -> anyhow::Result<ExitCode> {
    match &options.input.resolve()? {
        Input::Trace(path) => show_trace(options, path),
        Input::SavedCounts(path) if process_tree::is_folder(path) => counted_tree::show_folder(options, path),
        Input::SavedCounts(path) => show_saved(options, path),
        Input::Attached(attached) => {
            check_units(options)?;
            counted_tree::attach(options, attached)
        }
        Input::Program { path, arguments } => {
            check_units(options)?;
            count_program(options, path, arguments)
        }
    }
}

/// Whether options that need units of work have them.
fn check_units(options: &CountOptions) -> anyhow::Result<()> {
    if options.unit.unit.is_empty() {
        if options.by == Some(By::Unit) {
            bail!("--by unit needs a unit of work: name its function with --unit FUNCTION");
        }
        if !options.classes.is_empty() {
            bail!("--class is the class of units of work: name their function with --unit FUNCTION");
        }
    }
    Ok(())
}

/// Runs the program, counts, and writes the tables.
fn count_program(options: &CountOptions, program: &Path, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let configuration = counted_configuration(options, program, arguments);
    if options.input.children {
        return counted_tree::run(options, configuration);
    }
    if options.by == Some(By::Process) {
        bail!("--by process needs the counts of all processes: add --children");
    }
    if options.unit.unit.len() > 1 || !options.classes.is_empty() {
        return classes::run(options, configuration);
    }
    if options.by == Some(By::Owner) {
        bail!("--by owner needs several owners: add --children, a second --unit, or --class");
    }
    let rules = named_rules(options)?;
    let output = &options.output;
    output.check(options.by.is_none() && saved_path(output).is_none())?;
    let mut request = CountRequest { configuration, unit: unit(&options.unit) };
    check_names(&request.configuration, &named_in_unit(request.unit.as_ref()))?;
    let run = CommandRun::begin(output, true);
    request.configuration.settings.executed = run.instructions();
    let counted = measure::count(&request, &mut |seen, phase| {
        run.unit(seen, phase);
        if seen.is_multiple_of(MESSAGE_INTERVAL) || phase == Phase::Done {
            messages::send(&Message::Units(seen, phase));
        }
    });
    drop(run);
    let counted = counted?;
    if messages::is_connected() {
        messages::send(&Message::Counted(&counted));
        if saved_path(output).is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
    let ending = counted.ending.clone();
    let description = description(&request.configuration, &counted);
    let unit = options.unit.unit.first().map(String::as_str);
    let code =
        code_rows(options.by).map(|rows| code_table(rows, &counted.counts, counted.measurement.as_ref()));
    let counts = RunCounts::new(description, &counted.counts, unit.zip(counted.measurement));
    match saved_path(output) {
        Some(path) => save(&counts, path)?,
        None => show(&counts, code, rules, options, write_after_run)?,
    }
    check_ending(&ending, program, &options.ending.expected())
}

/// The configuration of the run.
fn counted_configuration(options: &CountOptions, program: &Path, arguments: &[OsString]) -> Configuration {
    let mut configuration = options.engine.program().configuration(program, arguments, true);
    configuration.settings.dilation = options.time_dilation;
    configuration
}

/// The rows, if they are lines or instructions. Saved counts do not have those.
pub(super) fn code_rows(by: Option<By>) -> Option<CodeRows> {
    match by {
        Some(By::Line) => Some(CodeRows::Line),
        Some(By::Address) => Some(CodeRows::Address),
        _ => None,
    }
}

/// The rules that the options name, which are read before the program runs; without, those for a database among its images
/// are taken.
pub(super) fn named_rules(options: &CountOptions) -> anyhow::Result<Option<Components>> {
    Ok(options.components.as_deref().map(Components::find).transpose()?)
}

/// Sorts tables and shortens those of functions, or the only one. They are shortened even if the column does not exist.
pub(super) fn arrange(options: &CountOptions, tables: &mut [Table]) -> anyhow::Result<()> {
    let sorted = options.rows.sort(tables);
    let usual = options.output.summary_rows(SUMMARY_FUNCTIONS).filter(|_| options.by.is_none());
    for table in tables.iter_mut().filter(|table| options.by.is_some() || table.name == "functions") {
        options.rows.shorten(table, usual, "--by function shows all functions");
    }
    sorted
}

/// Shows saved counts, or those of a run with its table of lines or instructions.
pub(super) fn show(
    counts: &RunCounts,
    code: Option<Table>,
    rules: Option<Components>,
    options: &CountOptions,
    write: impl Fn(&[Table], &OutputOptions) -> Result<(), report::Error>,
) -> anyhow::Result<()> {
    let profile = counts.profile();
    let images = profile.images.keys().map(String::as_str);
    let components = || rules.unwrap_or_else(|| Components::of_images(images));
    let mut tables = match options.by {
        Some(By::Owner) => vec![ClassProfiles::new(counts).work(&components())],
        None | Some(By::Function | By::Image | By::Component | By::Instruction | By::Group)
            if counts.has_classes() =>
        {
            classes::tables(options, &ClassProfiles::new(counts), &components())
        }
        Some(By::Component) => {
            let components = components();
            let title = format!("Components of {}", counts.span());
            vec![component_shares("components", &title, &profile, &components)]
        }
        Some(By::Process) => vec![process_table(counts.processes())],
        by => tables(by, &profile, counts.span(), counts.measurement(), code),
    };
    if options.by.is_none() && !counts.processes().is_empty() {
        tables.insert(if counts.has_classes() { 2 } else { 0 }, process_table(counts.processes()));
    }
    let sorted = arrange(options, &mut tables);
    if let Some(last) = tables.last_mut() {
        // The summary has the note on units in another table.
        let unsteady = counts.measurement().filter(|_| options.by.is_some());
        last.notes.extend(unsteady.and_then(unsteady_note));
        last.notes.extend(counts.description.notes.iter().cloned());
    }
    write(&tables, &options.output)?;
    sorted
}

/// Shows the counts of a trace.
fn show_trace(options: &CountOptions, path: &Path) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(path)?;
    let (counts, problems) = run_counts::of_trace(&trace)?;
    report_problems(&trace, path);
    problems.iter().for_each(|problem| messages::report_problem(&problem.to_string()));
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let is_whole = problems.is_empty() && trace.problems().is_empty();
    show_counts(options, path, counts)?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_saved(options: &CountOptions, path: &Path) -> anyhow::Result<ExitCode> {
    show_counts(options, path, RunCounts::open(path)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows counts that were made before, or saves them.
fn show_counts(options: &CountOptions, path: &Path, mut counts: RunCounts) -> anyhow::Result<()> {
    if !options.unit.unit.is_empty() || !options.classes.is_empty() {
        bail!(
            "{} was recorded or counted before: --unit and --class are for a program that is run",
            path.display()
        );
    }
    if options.by == Some(By::Process) && counts.processes().is_empty() {
        bail!("{} has one process: save all with count --children", path.display());
    }
    if options.by == Some(By::Unit) && counts.measurement().is_none() {
        bail!(
            "{} has no single units of work: save it with count --unit FUNCTION of one process, without classes",
            path.display()
        );
    }
    if options.by == Some(By::Owner) && !counts.has_owners() {
        bail!(
            "{} says nothing of who executed the instructions: save it with count --children, or with classes of units",
            path.display()
        );
    }
    if counts.has_classes() {
        classes::check_rows(options)?;
    }
    if code_rows(options.by).is_some() {
        bail!("{} has functions, but no lines and addresses: count the program again", path.display());
    }
    if let Some(path) = saved_path(&options.output) {
        return save(&counts, path);
    }
    let environment = counts.description.environment.as_ref().map(describe_environment);
    counts.description.notes.extend(environment.map(|it| format!("The environment of the run: {it}.")));
    show(&counts, None, named_rules(options)?, options, write)
}

/// The file, if its name asks for saved counts.
pub(super) fn saved_path(output: &OutputOptions) -> Option<&Path> {
    output.path.as_deref().filter(|path| path.extension().is_some_and(|extension| extension == "counts"))
}

pub(super) fn save(counts: &RunCounts, path: &Path) -> anyhow::Result<()> {
    let bytes = counts.encode()?;
    Ok(report::write_file(path, |out| Ok(out.write_all(&bytes)?))?)
}

/// What was run.
pub(super) fn description(configuration: &Configuration, counted: &Counted) -> RunDescription {
    let notes = until(&counted.ending).into_iter().chain(left_out(counted.forked)).collect();
    run_description(configuration, notes)
}

/// What was run, with notes.
pub(super) fn run_description(configuration: &Configuration, notes: Vec<String>) -> RunDescription {
    RunDescription {
        program: configuration.program.to_string_lossy().into_owned(),
        arguments: configuration.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cpu: configuration.model.to_string(),
        environment: Some(EnvironmentSummary::new(&configuration.environment)),
        notes,
    }
}

fn tables(
    by: Option<By>,
    profile: &Profile,
    span: &str,
    measurement: Option<&Measurement>,
    code: Option<Table>,
) -> Vec<Table> {
    let mix = profile.mix();
    let instructions = || mix::single("instructions", &format!("Instructions of {span}"), &mix);
    let groups = || mix::group_shares("groups", &format!("Instruction groups of {span}"), &[("share", &mix)]);
    let images = || image_shares("images", &format!("Images in {span}"), &[("instructions", profile)]);
    let by_function = || functions("functions", &format!("Functions of {span}"), profile);
    match by {
        Some(By::Instruction) => vec![instructions()],
        Some(By::Group) => vec![groups()],
        Some(By::Image) => vec![images()],
        Some(By::Function) => vec![by_function()],
        Some(By::Unit) if measurement.is_some() => measurement.map(each_unit).into_iter().collect(),
        Some(By::Unit | By::Line | By::Address | By::Component | By::Process | By::Owner) => {
            code.into_iter().collect()
        }
        None => {
            let lengths = measurement.map(|measurement| {
                path_lengths(
                    "path-length",
                    "Path length: instructions a unit of work",
                    &[("the units", measurement)],
                )
            });
            let mut summary: Vec<Table> = lengths.into_iter().collect();
            summary.extend([images(), groups(), by_function()]);
            summary
        }
    }
}
