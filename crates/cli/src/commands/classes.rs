//! `pathlength count` with several functions: units of work of several classes, side by side.

use std::process::ExitCode;

use analysis::classes::ClassProfiles;
use analysis::code_counts::code_by_class;
use analysis::components::Components;
use analysis::run_counts::RunCounts;
use analysis::units::{Phase, SteadyRules};
use anyhow::bail;
use engine::{Configuration, UnitOfWork};
use session::console::RunProgress;
use session::measure;
use session::program::{check_ending, check_names, left_out, protect_images, until};
use table::Table;

use super::count::{code_rows, named_rules, run_description, save, saved_path, show};
use super::{named_in_unit, unit};
use crate::arguments::{By, CountOptions};
use crate::console::{CommandRun, write_after_run};

/// The units of work and how they get their classes.
pub(super) fn unit_of_work(options: &CountOptions) -> Option<(UnitOfWork, SteadyRules)> {
    let (work, rules) = unit(&options.unit)?;
    Some((UnitOfWork { classes: options.classes.clone(), ..work }, rules))
}

/// Whether there are tables by class with the rows that are asked for.
pub(super) fn check_rows(options: &CountOptions) -> anyhow::Result<()> {
    match options.by {
        Some(By::Unit) if !options.input.children => bail!(
            "with units of several classes, --by unit is a table of count --children, or of calls: pathlength calls --by unit"
        ),
        _ => Ok(()),
    }
}

/// Runs the program, counts all units, and writes the tables.
pub fn run(options: &CountOptions, mut configuration: Configuration) -> anyhow::Result<ExitCode> {
    check_rows(options)?;
    if options.unit.cache.is_some() {
        bail!("--cache is for the steady state of a single unit: leave it out");
    }
    let output = &options.output;
    output.check(options.by.is_none() && saved_path(output).is_none())?;
    // Errors of the rules are reported before the program runs.
    let rules = named_rules(options)?;
    let unit = unit_of_work(options);
    check_names(&configuration, &named_in_unit(unit.as_ref()))?;
    let (work, _) = unit.expect("there are several");
    let run = CommandRun::begin(output, true);
    configuration.settings.executed = run.instructions();
    let counted = measure::count_classes(&configuration, &work, &mut |seen| run.unit(seen, Phase::Measuring));
    drop(run);
    let counted = counted?;
    protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
    let unused = counted.never_called.iter().map(|name| format!("{name} was never called."));
    let notes = unused.chain(until(&counted.ending)).chain(left_out(counted.forked)).collect();
    let description = run_description(&configuration, notes);
    let counts =
        RunCounts::of_owners(description, &counted.counts, &counted.classes, Vec::new(), rules.as_ref());
    let code = || code_rows(options.by).map(|rows| code_by_class(rows, &counted.counts, &counted.classes));
    match saved_path(output) {
        Some(path) => save(&counts, path)?,
        None => show(&counts, code(), rules, options, write_after_run)?,
    }
    check_ending(&counted.ending, &configuration.program, &options.ending.expected())
}

pub(super) fn tables(
    options: &CountOptions,
    profiles: &ClassProfiles,
    components: &Components,
) -> Vec<Table> {
    match options.by {
        Some(By::Function) => vec![profiles.functions()],
        Some(By::Image) => vec![profiles.images()],
        Some(By::Component) => vec![profiles.components(components)],
        Some(By::Instruction) => vec![profiles.instructions()],
        Some(By::Group) => vec![profiles.groups()],
        _ => {
            let mut tables = vec![profiles.path_lengths(), profiles.shares(), profiles.images()];
            // Without rules, components are images.
            if *components != Components::default() {
                tables.push(profiles.components(components));
            }
            tables.push(profiles.functions());
            tables
        }
    }
}
