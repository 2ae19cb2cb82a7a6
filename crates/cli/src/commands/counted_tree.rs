//! `pathlength count --children`: the instructions of all processes of a program.

use std::path::Path;
use std::process::ExitCode;

use analysis::code_counts::{code_by_class, code_table};
use analysis::run_counts::{ProcessSums, RunDescription};
use anyhow::bail;
use engine::{Configuration, Family, ProcessState};
use session::attached_program::AttachedProgram;
use session::process_tree::{self, CountFolder};
use session::program::{check_ending, check_names, protect_images, until};
use table::{Kind, Table};

use super::count::{self, code_rows, named_rules, run_description, save, saved_path};
use super::{classes, named_in_unit};
use crate::arguments::{By, CountOptions, OutputOptions};
use crate::console::{OutputApart, write, write_after_run};

/// Runs the program, counts all processes, and writes the tables.
pub fn run(options: &CountOptions, configuration: Configuration) -> anyhow::Result<ExitCode> {
    check(options)?;
    // Errors of the rules are reported before the program runs.
    named_rules(options)?;
    let output = &options.output;
    output.check(options.by.is_none() && saved_path(output).is_none())?;
    let unit = classes::unit_of_work(options);
    check_names(&configuration, &named_in_unit(unit.as_ref()))?;
    let work = unit.map(|(work, _)| work).unwrap_or_default();
    let folder = CountFolder::new(saved_path(output))?;
    let description = run_description(&configuration, Vec::new());
    let apart = OutputApart::begin(output);
    let counted = process_tree::count(&configuration, &work, &folder, &description);
    drop(apart);
    let counted = counted?;
    let mut notes: Vec<String> = counted.ending.as_ref().and_then(until).into_iter().collect();
    let mut folder = Some(folder);
    if counted.tree.processes.iter().any(|process| process.state == ProcessState::Running)
        && let Some(folder) = folder.take()
    {
        let path = folder.keep();
        let path = path.display();
        notes.push(format!("Processes that still run are counted until now, and count on in {path}: pathlength count {path} shows it."));
    }
    protect_images(counted.tree.counts.images.iter().map(|image| image.path.as_path()));
    let description = RunDescription { notes, ..description };
    show(&counted.tree, description, options, write_after_run)?;
    // A signal that ended the program will end this process, too.
    drop(folder);
    match &counted.ending {
        Some(ending) => check_ending(ending, &configuration.program, &options.ending.expected()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Counts a program that runs already, and writes the tables. The program goes on.
pub fn attach(options: &CountOptions, attached: &AttachedProgram) -> anyhow::Result<ExitCode> {
    check(options)?;
    named_rules(options)?;
    let output = &options.output;
    output.check(options.by.is_none() && saved_path(output).is_none())?;
    let work = classes::unit_of_work(options).map(|(work, _)| work).unwrap_or_default();
    let folder = CountFolder::new(saved_path(output))?;
    let notes = vec![format!("Process {} was counted while it ran.", attached.process)];
    let description = RunDescription { notes, ..RunDescription::default() };
    let tree = process_tree::count_running(attached, &work, folder.path(), &description)?;
    protect_images(tree.counts.images.iter().map(|image| image.path.as_path()));
    show(&tree, named(description, &tree), options, write)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what is in a folder of counts, whose command was killed.
pub fn show_folder(options: &CountOptions, path: &Path) -> anyhow::Result<ExitCode> {
    check(options)?;
    let (tree, mut description) = process_tree::read(path)?;
    description.notes.push("These are the counts of a run that was interrupted.".into());
    show(&tree, named(description, &tree), options, write)?;
    Ok(ExitCode::SUCCESS)
}

/// The description with the program that the first process executes, if it ran already when counting began.
fn named(mut description: RunDescription, tree: &Family) -> RunDescription {
    let program = tree.processes.first().and_then(|process| process.programs.last());
    if let Some(path) = program.filter(|_| description.program.is_empty()) {
        description.program = path.to_string_lossy().into_owned();
    }
    description
}

/// Whether the options fit together.
fn check(options: &CountOptions) -> anyhow::Result<()> {
    if options.unit.cache.is_some() {
        bail!("--cache is for the steady state of a single unit in one process: leave it out");
    }
    if !options.unit.unit.is_empty() {
        classes::check_rows(options)?;
    }
    Ok(())
}

fn show(
    tree: &Family,
    description: RunDescription,
    options: &CountOptions,
    write: impl Fn(&[Table], &OutputOptions) -> Result<(), report::Error>,
) -> anyhow::Result<()> {
    let rules = named_rules(options)?;
    let counts = process_tree::run_counts(tree, description, rules.as_ref());
    if !options.unit.unit.is_empty() && !counts.has_classes() {
        bail!("no unit of work ended: {} was never called", options.unit.unit.join(", "));
    }
    if let Some(path) = saved_path(&options.output) {
        return save(&counts, path);
    }
    let code = match options.by {
        Some(By::Unit) => Some(unit_table(tree, counts.processes())),
        by => code_rows(by).map(|rows| match &process_tree::classes(tree)[..] {
            [] => code_table(rows, &tree.counts, None),
            classes => code_by_class(rows, &tree.counts, classes),
        }),
    };
    count::show(&counts, code, rules, options, write)
}

/// A row for each unit of work, in the order in which those of each process ended.
fn unit_table(tree: &Family, processes: &[ProcessSums]) -> Table {
    let columns = [
        ("process", Kind::Text),
        ("thread", Kind::Count),
        ("class", Kind::Text),
        ("instructions", Kind::Count),
        ("ended", Kind::Text),
    ];
    let mut table = Table::new("units", "Units of work", &columns);
    for unit in &tree.units {
        table.row(vec![
            processes[unit.process as usize].number.clone().into(),
            u64::from(unit.thread).into(),
            unit.class.clone().into(),
            unit.instructions.into(),
            if unit.returned { "by return" } else { "left" }.into(),
        ]);
    }
    table
}
