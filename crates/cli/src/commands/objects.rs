//! `pathlength objects`: what is executed for operators, locks, relations and other things that functions work on.

use std::process::ExitCode;

use analysis::call_tree::{ObjectReader, WithCallTree, lock_table, object_tables};
use analysis::models::{ClassResults, DividedByClass, InstructionResults};
use anyhow::bail;
use engine::{Configuration, Plan};
use machine::{Caches, InstructionCounts, MergeableModel, PerProcess};
use report::Format;
use session::machines::timing_models;
use session::objects::ObjectRules;
use session::simulation::{Needs, OWN_PROCESSORS, Simulation};
use session::tables::{ModelSet, write_divided};

use super::models::models_of;
use crate::arguments::{MeasuredEvent, ObjectLayout, ObjectsOptions};

/// Runs the program, and writes the table.
pub fn run(options: &ObjectsOptions) -> anyhow::Result<ExitCode> {
    options.results.show.output.check(false)?;
    let (event, machines) = options.events.selected()?;
    let console = options.results.console();
    let simulation = &options.results.simulation(machines, &console)?;
    if simulation.input.is_trace() {
        bail!("{} is a trace, which has no objects: name the program", simulation.input);
    }
    let has_classes = simulation.has_classes();
    if options.layout == ObjectLayout::Waiters && !has_classes {
        bail!(
            "--as waiters shows classes of units of work: name several functions with --unit FUNCTION, or one and --class RULE"
        );
    }
    match event {
        MeasuredEvent::Misses => {
            of_processors(options, simulation, models_of(&simulation.machines, Caches::new))
        }
        MeasuredEvent::Cycles => {
            of_processors(options, simulation, timing_models(&simulation.machines.machines, None)?)
        }
        MeasuredEvent::Instructions if has_classes => {
            by_class(options, simulation, || vec![InstructionCounts::new()])
        }
        MeasuredEvent::Instructions => write(options, simulation, vec![InstructionCounts::new()]),
    }
}

/// With a processor for each process.
fn of_processors<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    match simulation.has_classes() {
        true => by_class(options, simulation, make),
        false => write(options, simulation, PerProcess::merging(make)),
    }
}

/// The same in each class of units of work.
fn by_class<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    simulation.check_classes(false)?;
    let (configuration, mut plan) = simulation.prepare_classes()?;
    let kind = find_rules(options, simulation, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(DividedByClass::new(simulation.process_models(make))).with_classes();
    let mut simulated = simulation.run_planned((configuration, plan), model)?;
    simulated.notes.extend(simulation.has_own_processors().then(|| OWN_PROCESSORS.into()));
    simulated.model.model.finish();
    let tree = &simulated.model;
    match options.layout.rows() {
        Ok(rows) => {
            let tables = |machine: &str, part: &ClassResults<M>| {
                object_tables((rows, reader(options)), &kind, tree, &[(machine, part)])
            };
            write_divided(simulation, &simulated, &tree.model, tables)
        }
        Err(rows) => {
            simulated.check_classes(simulation, tree.classes())?;
            simulated.write(simulation, vec![lock_table(rows, &kind, tree)])
        }
    }
}

/// Runs the program, and writes the table of all that it executes.
fn write<S: ModelSet>(
    options: &ObjectsOptions,
    simulation: &Simulation,
    models: S,
) -> anyhow::Result<ExitCode> {
    let (configuration, mut plan) = simulation.prepare(Needs::default())?;
    let kind = find_rules(options, simulation, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(models);
    let simulated = simulation.run_planned((configuration, plan), model)?;
    let tree = &simulated.model;
    let sums = simulation.machines.named_sums(tree.model.of_machines()?);
    let results: Vec<_> = sums.iter().map(|(name, sum)| (*name, sum)).collect();
    let tables = match options.layout.rows() {
        Ok(rows) => object_tables((rows, reader(options)), &kind, tree, &results),
        Err(rows) => vec![lock_table(rows, &kind, tree)],
    };
    simulated.write(simulation, tables)
}

/// Finds the rules, checks them, and enters them into the plan. Returns the kind of objects.
fn find_rules(
    options: &ObjectsOptions,
    simulation: &Simulation,
    configuration: &Configuration,
    plan: &mut Plan,
) -> anyhow::Result<String> {
    let rules = match &options.rules {
        Some(name) => ObjectRules::find(name)?,
        None => match simulation.input.attached() {
            Some(attached) => ObjectRules::of_process(attached.process)?,
            None => ObjectRules::of_program(configuration)?,
        },
    };
    // Without --by, how long locks are held is asked of locks.
    let of_locks = options.layout.rows().is_err().then_some("lock");
    let (kind, of_kind) = rules.of_kind(options.by.as_deref().or(of_locks))?;
    if simulation.input.attached().is_none() {
        rules.check(&of_kind, configuration)?;
    }
    plan.objects = of_kind;
    Ok(kind)
}

/// Who reads the table.
fn reader(options: &ObjectsOptions) -> ObjectReader {
    match options.results.show.output.format() {
        Format::Csv | Format::Json | Format::Parquet => ObjectReader::Program,
        _ => ObjectReader::Person,
    }
}
