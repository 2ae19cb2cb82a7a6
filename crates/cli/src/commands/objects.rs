//! `pathlength objects`: what is executed for operators, locks, relations and other things that functions work on.

use std::process::ExitCode;

use analysis::call_tree::{ObjectReader, WithCallTree, lock_table, object_tables};
use analysis::models::{ClassResults, DividedByClass, InstructionResults, Together};
use anyhow::bail;
use engine::{Configuration, Plan};
use machine::{Caches, InstructionCounts, MergeableModel, Model, PerProcess, TimingModel};
use report::Format;
use session::objects::ObjectRules;
use trace::Trace;

use super::by_class::ClassRequest;
use super::processes;
use super::selected_machines::SelectedMachines;
use super::simulate::{self, Simulated, prepare};
use crate::arguments::{ObjectLayout, ObjectsOptions};

/// Runs the program, and writes the table.
pub fn run(options: &ObjectsOptions) -> anyhow::Result<ExitCode> {
    // What the other options say, or a program that runs already.
    let input = options.running.input(&options.input, options.children)?;
    let children = options.children || input.attached.is_some();
    let options = &ObjectsOptions { input, children, ..options.clone() };
    let file = options.input.file.path();
    if Trace::is_trace(file) {
        bail!("{} is a trace, which has no objects: name the program", file.display());
    }
    options.output.check(false)?;
    let machine = |name| SelectedMachines::find_one(name, &options.settings);
    let (caches, time) = (machine(&options.caches)?, machine(&options.time)?);
    let has_classes = options.classes.are_wanted(None, &options.input.plan.unit);
    if options.layout == ObjectLayout::Waiters && !has_classes {
        bail!(
            "--as waiters shows classes of units of work: name several functions with --unit FUNCTION, or one and --class RULE"
        );
    }
    match (&caches.machines[..], &time.machines[..]) {
        ([machine], _) => {
            let machine = machine.clone();
            of_processors(options, &caches, move || Caches::new(&machine))
        }
        (_, [machine]) => {
            // A machine without a pipeline is reported before the program runs.
            TimingModel::new(machine)?;
            let machine = machine.clone();
            of_processors(options, &time, move || TimingModel::new(&machine).expect("it was possible before"))
        }
        _ if has_classes => by_class(options, &SelectedMachines::default(), InstructionCounts::new),
        _ => {
            let (kind, simulated) =
                simulate(options, &SelectedMachines::default(), InstructionCounts::new())?;
            write(options, &kind, &simulated, ("", &simulated.model.model))
        }
    }
}

/// With a processor for each process.
fn of_processors<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    selected: &SelectedMachines,
    make: impl Fn() -> M + Send + 'static,
) -> anyhow::Result<ExitCode> {
    if options.classes.are_wanted(None, &options.input.plan.unit) {
        return by_class(options, selected, make);
    }
    let (kind, simulated) = simulate(options, selected, PerProcess::merging(make))?;
    let models = Together(simulated.model.model.all_models().collect());
    if models.0.is_empty() {
        bail!(processes::NOTHING_SIMULATED);
    }
    write(options, &kind, &simulated, (&selected.names[0], &models))
}

/// The same in each class of units of work.
fn by_class<M: InstructionResults + MergeableModel + 'static>(
    options: &ObjectsOptions,
    selected: &SelectedMachines,
    make: impl Fn() -> M + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let request = ClassRequest {
        input: &options.input,
        classes: &options.classes,
        rows_shown: &options.row_options,
        output: &options.output,
        selected,
        children: options.children,
    };
    request.check(false)?;
    let (configuration, mut plan) = request.prepare()?;
    let kind = find_rules(options, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(DividedByClass::new(move || vec![make()])).with_classes();
    let mut simulated = request.simulate((configuration, plan), model)?;
    simulated.model.model.finish();
    let tree = &simulated.model;
    match options.layout.rows() {
        Ok(rows) => {
            let tables = |machine: &str, part: &ClassResults<M>| {
                object_tables((rows, reader(options)), &kind, tree, &[(machine, part)])
            };
            request.write(&simulated, &tree.model, tables)
        }
        Err(rows) => {
            request.check_ended(&simulated, tree.classes())?;
            simulated.write(vec![lock_table(rows, &kind, tree)], &options.row_options, &options.output)?;
            simulated.finish(&options.input)
        }
    }
}

/// Runs the program. Returns the kind of the objects, too.
fn simulate<M: Model + 'static>(
    options: &ObjectsOptions,
    selected: &SelectedMachines,
    model: M,
) -> anyhow::Result<(String, Simulated<WithCallTree<M>>)> {
    simulate::check_units(&options.input, None)?;
    let (configuration, mut plan) = prepare(&options.input, &[], &selected.machines, false)?;
    let kind = find_rules(options, &configuration, &mut plan)?;
    let model = WithCallTree::of_objects(model);
    let mut simulated = match options.children {
        true => processes::run(&options.input, &options.output, (configuration, plan), model)?.0,
        false => simulate::run(&options.input, &options.output, (configuration, plan), model)?,
    };
    simulated.notes.extend(selected.note());
    Ok((kind, simulated))
}

/// Finds the rules, checks them, and enters them into the plan. Returns the kind of objects.
fn find_rules(
    options: &ObjectsOptions,
    configuration: &Configuration,
    plan: &mut Plan,
) -> anyhow::Result<String> {
    let rules = match &options.rules {
        Some(name) => ObjectRules::find(name)?,
        None => match &options.input.attached {
            Some(attached) => ObjectRules::of_process(attached.process)?,
            None => ObjectRules::of_program(configuration)?,
        },
    };
    // Without --by, how long locks are held is asked of locks.
    let of_locks = options.layout.rows().is_err().then_some("lock");
    let (kind, of_kind) = rules.of_kind(options.by.as_deref().or(of_locks))?;
    if options.input.attached.is_none() {
        rules.check(&of_kind, configuration)?;
    }
    plan.objects = of_kind;
    Ok(kind)
}

/// Who reads the table.
fn reader(options: &ObjectsOptions) -> ObjectReader {
    match options.output.format() {
        Format::Csv | Format::Json | Format::Parquet => ObjectReader::Program,
        _ => ObjectReader::Person,
    }
}

fn write<M, R: InstructionResults>(
    options: &ObjectsOptions,
    kind: &str,
    simulated: &Simulated<WithCallTree<M>>,
    results: (&str, &R),
) -> anyhow::Result<ExitCode> {
    let tables = match options.layout.rows() {
        Ok(rows) => object_tables((rows, reader(options)), kind, &simulated.model, &[results]),
        Err(rows) => vec![lock_table(rows, kind, &simulated.model)],
    };
    simulated.write(tables, &options.row_options, &options.output)?;
    simulated.finish(&options.input)
}
