//! `pathlength count --children`: the instructions of all processes of a program.

use std::process::ExitCode;

use analysis::code_counts::{code_by_class, code_table};
use analysis::run_counts::{ProcessSums, RunDescription};
use analysis::table::{Kind, Table};
use anyhow::bail;
use engine::{Family, ProcessState};
use lab::family::{self, CountFolder};
use report::FileForm;

use super::classes;
use super::count::{self, code_rows, counted_configuration, named_rules, run_description, save, saved_path};
use super::{
    check_ending, check_names, named_in_unit, protect_images, until, with_output_apart, write,
    write_after_run,
};
use crate::arguments::{By, CountOptions, OutputOptions};

/// Runs the program, counts all processes, and writes the tables.
pub fn run(options: &CountOptions) -> anyhow::Result<ExitCode> {
    check(options)?;
    // Errors of the rules are reported before the program runs.
    named_rules(options)?;
    let output = &options.output;
    output.check_or(options.by.is_none(), &[FileForm::SavedCounts])?;
    let configuration = counted_configuration(options);
    let unit = classes::unit_of_work(options);
    check_names(&configuration, &named_in_unit(unit.as_ref()))?;
    let work = unit.map(|(work, _)| work).unwrap_or_default();
    let folder = CountFolder::new(saved_path(output))?;
    let description = run_description(&configuration, Vec::new());
    let counted = with_output_apart(output, || family::count(&configuration, &work, &folder, &description))?;
    let mut notes: Vec<String> = counted.ending.as_ref().and_then(until).into_iter().collect();
    let mut folder = Some(folder);
    if counted.family.processes.iter().any(|process| process.state == ProcessState::Running)
        && let Some(folder) = folder.take()
    {
        let path = folder.keep();
        let path = path.display();
        notes.push(format!("Processes that still run are counted until now, and count on in {path}: pathlength count {path} shows it."));
    }
    protect_images(counted.family.counts.images.iter().map(|image| image.path.as_path()));
    let description = RunDescription { notes, ..description };
    show(&counted.family, description, options, write_after_run)?;
    // A signal that ended the program will end this process, too.
    drop(folder);
    match &counted.ending {
        Some(ending) => check_ending(ending, options.program.path(), &options.ending),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Counts a program that runs already, and writes the tables. The program goes on.
pub fn attach(options: &CountOptions, process: u32) -> anyhow::Result<ExitCode> {
    check(options)?;
    named_rules(options)?;
    let output = &options.output;
    output.check_or(options.by.is_none(), &[FileForm::SavedCounts])?;
    let work = classes::unit_of_work(options).map(|(work, _)| work).unwrap_or_default();
    let folder = CountFolder::new(saved_path(output))?;
    let duration = options.program.duration;
    let notes = vec![format!("Process {process} was counted while it ran.")];
    let description = RunDescription { notes, ..RunDescription::default() };
    let family =
        family::count_running(process, options.children, &work, folder.path(), duration, &description)?;
    protect_images(family.counts.images.iter().map(|image| image.path.as_path()));
    show(&family, named(description, &family), options, write)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what is in a folder of counts, whose command was killed.
pub fn show_folder(options: &CountOptions) -> anyhow::Result<ExitCode> {
    check(options)?;
    let (family, mut description) = family::read(options.program.path())?;
    description.notes.push("These are the counts of a run that was interrupted.".into());
    show(&family, named(description, &family), options, write)?;
    Ok(ExitCode::SUCCESS)
}

/// The description with the program that the first process executes, if it ran already when counting began.
fn named(mut description: RunDescription, family: &Family) -> RunDescription {
    let program = family.processes.first().and_then(|process| process.programs.last());
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
    family: &Family,
    description: RunDescription,
    options: &CountOptions,
    write: impl Fn(&[Table], &OutputOptions) -> Result<(), report::Error>,
) -> anyhow::Result<()> {
    let rules = named_rules(options)?;
    let counts = family::run_counts(family, description, rules.as_ref());
    if !options.unit.unit.is_empty() && !counts.has_classes() {
        bail!("no unit of work ended: {} was never called", options.unit.unit.join(", "));
    }
    if let Some(path) = saved_path(&options.output) {
        return save(&counts, path);
    }
    let code = match options.by {
        Some(By::Unit) => Some(unit_table(family, counts.processes())),
        by => code_rows(by).map(|rows| match &family::classes(family)[..] {
            [] => code_table(rows, &family.counts, None),
            classes => code_by_class(rows, &family.counts, classes),
        }),
    };
    count::show(&counts, code, rules, options, write)
}

/// A row for each unit of work, in the order in which those of each process ended.
fn unit_table(family: &Family, processes: &[ProcessSums]) -> Table {
    let columns = [
        ("process", Kind::Text),
        ("thread", Kind::Count),
        ("class", Kind::Text),
        ("instructions", Kind::Count),
        ("ended", Kind::Text),
    ];
    let mut table = Table::new("units", "Units of work", &columns);
    for unit in &family.units {
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
