//! `pathlength objects`: what is executed for operators, locks, relations and other things that functions work on.

use std::process::ExitCode;

use analysis::call_tree::{ObjectReader, WithCallTree, lock_table, object_tables};
use analysis::models::{ClassResults, DividedByClass, InstructionResults};
use anyhow::bail;
use engine::{Configuration, Plan};
use machine::{Caches, InstructionCounts, MergeableModel};
use report::Format;
use session::machines::timing_models;
use session::objects::ObjectRules;
use session::simulation::{Needs, OWN_PROCESSORS, Simulation};
use session::tables::{sums_of_machines, write_divided};

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
        MeasuredEvent::Misses => write(options, simulation, models_of(&simulation.machines, Caches::new)),
        MeasuredEvent::Cycles => {
            write(options, simulation, timing_models(&simulation.machines.machines, None)?)
        }
        MeasuredEvent::Instructions => write(options, simulation, || vec![InstructionCounts::new()]),
    }
}

/// Runs the program, and writes the table of all that it executes, or of each class of units of work.
fn write<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    if simulation.has_classes() {
        return by_class(options, simulation, make);
    }
    let (configuration, mut plan) = simulation.prepare(Needs::default())?;
    let kind = find_rules(options, simulation, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(simulation.machine_models(make));
    let simulated = simulation.run_planned((configuration, plan), model)?;
    let tree = &simulated.model;
    let sums = simulation.machines.named_sums(sums_of_machines(&tree.model)?);
    let results: Vec<_> = sums.iter().map(|(name, sum)| (*name, sum)).collect();
    let tables = match options.layout.rows() {
        Ok(rows) => object_tables((rows, reader(options)), &kind, tree, &results),
        Err(rows) => vec![lock_table(rows, &kind, tree)],
    };
    simulated.write(simulation, tables)
}

/// The same in each class of units of work.
fn by_class<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    simulation.check_classes()?;
    let (configuration, mut plan) = simulation.prepare(Needs::CLASSES)?;
    let kind = find_rules(options, simulation, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(DividedByClass::new(simulation.machine_models(make))).with_classes();
    let mut simulated = simulation.run_planned((configuration, plan), model)?;
    simulated.notes.extend(simulation.has_own_processors().then(|| OWN_PROCESSORS.into()));
    simulated.model.model.finish();
    let tree = &simulated.model;
    match options.layout.rows() {
        Ok(rows) => {
            let tables = |machines: &[(&str, &ClassResults<M>)]| {
                object_tables((rows, reader(options)), &kind, tree, machines)
            };
            write_divided(simulation, &simulated, &tree.model, tables)
        }
        Err(rows) => {
            simulated.check_classes(simulation, tree.classes())?;
            simulated.write(simulation, vec![lock_table(rows, &kind, tree)])
        }
    }
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
