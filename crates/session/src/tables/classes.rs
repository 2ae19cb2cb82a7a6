//! Tables of models by class of units of work.

use std::process::ExitCode;

use analysis::call_tree::{CallChains, CallCosts, CallProfile, CallRows, NoEvent, WithCallTree, call_tables};
use analysis::models::{
    self, ClassResults, DividedByClass, InstructionResults, OwnRows, WithClasses, by_class, mean_units,
    tables_of_classes, units_of_classes,
};
use anyhow::bail;
use machine::MergeableModel;
use table::Table;

use super::{CLASS_ROWS, ModelSet, ModelTables, ResultRows, SummaryTables};
use crate::simulation::{OWN_PROCESSORS, Simulated, Simulation};

/// A part of an execution, and its name.
pub type ClassPart<P> = (String, P);

/// Simulates models of the machines, and writes tables by class; without rows, those of a summary before.
pub(super) fn write<M: InstructionResults + MergeableModel + 'static>(
    request: &ModelTables,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: SummaryTables<M>,
) -> anyhow::Result<ExitCode> {
    let &ModelTables { simulation, rows, calls } = request;
    simulation.check_classes(matches!(rows, None | Some(ResultRows::Class)))?;
    match rows {
        None | Some(ResultRows::Class | ResultRows::Own(OwnRows::Unit)) => {
            write_sums(simulation, rows, make, summary)
        }
        Some(ResultRows::Own(rows)) => {
            let mut simulated =
                simulation.run_classes(DividedByClass::new(simulation.process_models(make)))?;
            simulated.model.finish();
            let table = |machine: &str, part: &ClassResults<M>| {
                models::by(rows, &[(machine, part)], &simulated.trace)
            };
            write_divided(simulation, &simulated, &simulated.model, table)
        }
        Some(ResultRows::Calls(rows)) => {
            let columns = make().first().map_or(Vec::new(), InstructionResults::columns);
            let form = calls.chain_form(simulation.console, &columns, rows == CallRows::Tree)?;
            let model =
                WithCallTree::new(DividedByClass::new(simulation.process_models(make))).with_classes();
            let mut simulated = simulation.run_classes(model)?;
            simulated.model.model.finish();
            let tree = &simulated.model;
            if let Some((form, path)) = form {
                simulated.check_classes(simulation, &tree.model.classes)?;
                let parts = tree.model.parts(0);
                simulated.protect();
                if form.is_profile() {
                    let event = calls.event(&columns)?;
                    let parts = parts.iter().map(|part| (part.name.as_str(), part)).collect();
                    form.write_profile(&simulated.trace, CallProfile::of_classes(tree, parts, event), path)?;
                } else {
                    let chains = parts.iter().map(|part| {
                        let chains = CallCosts::new(tree, part).chains(calls.chart.as_deref())?;
                        Ok((part.name.clone(), chains))
                    });
                    let chains = chains.collect::<Result<Vec<_>, NoEvent>>()?;
                    calls.draw(
                        &simulated,
                        M::WHAT,
                        CallChains::of_classes(chains.into_iter()),
                        (form, path),
                    )?;
                }
                return simulated.finish(simulation);
            }
            let table = |machine: &str, part: &ClassResults<M>| {
                call_tables(rows, &calls.selection, tree, &[(machine, part)])
            };
            calls.selection.check(tree.tree())?;
            write_divided(simulation, &simulated, &tree.model, table)
        }
        Some(_) => bail!(CLASS_ROWS),
    }
}

/// One row for each class, or for each unit of work with its class.
fn write_sums<M: InstructionResults + MergeableModel + 'static>(
    simulation: &Simulation,
    rows: Option<ResultRows>,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: SummaryTables<M>,
) -> anyhow::Result<ExitCode> {
    let simulated = simulation.run_classes(WithClasses::new(simulation.process_models(make)))?;
    let WithClasses { model, classes } = &simulated.model;
    simulated.check_classes(simulation, classes)?;
    let machines = simulation.machines.named_sums(model.of_machines()?);
    if let Some(ResultRows::Own(_)) = rows {
        return simulated.write(simulation, units_of_classes(&machines, classes));
    }
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if rows.is_none() || simulation.console.is_program() {
        tables.extend(summary(&machines));
    }
    tables.extend(by_class(&machines, classes));
    if rows.is_none() {
        tables.extend(mean_units(&machines, classes));
    }
    simulated.write(simulation, tables)
}

/// Writes a table of all classes. `tables` makes that of a part of the execution on a machine.
pub fn write_divided<S, M: InstructionResults + MergeableModel>(
    simulation: &Simulation,
    simulated: &Simulated<S>,
    divided: &DividedByClass<M>,
    tables: impl Fn(&str, &ClassResults<M>) -> Vec<Table>,
) -> anyhow::Result<ExitCode> {
    simulated.check_classes(simulation, &divided.classes)?;
    let machine = simulation.machines.names.first().map_or("", String::as_str);
    let whole = tables(machine, &divided.whole(0)).remove(0);
    let parts = divided.parts(0).into_iter();
    let parts = parts.map(|part| (part.name.clone(), tables(machine, &part).remove(0)));
    write_classes(simulation, simulated, parts, whole)
}

/// Writes a table of these parts of the execution, each with the name of its class; `whole` is the same of everything. Each class has
/// its first rows.
pub fn write_classes<S>(
    simulation: &Simulation,
    simulated: &Simulated<S>,
    parts: impl Iterator<Item = ClassPart<Table>>,
    whole: Table,
) -> anyhow::Result<ExitCode> {
    let mut shown = Vec::new();
    for (class, mut table) in parts {
        simulation.console.arrange(std::slice::from_mut(&mut table))?;
        shown.push((class, table));
    }
    simulated.write_as_they_are(simulation.console, vec![tables_of_classes(shown, whole)])?;
    simulated.finish(simulation)
}

impl Simulation<'_> {
    /// Simulates a model on all of an execution whose units have classes, with the note on processors.
    fn run_classes<M: machine::Model + 'static>(&self, model: M) -> anyhow::Result<Simulated<M>> {
        let mut simulated = self.run_with_classes(model)?;
        simulated.notes.extend(self.has_own_processors().then(|| OWN_PROCESSORS.into()));
        Ok(simulated)
    }

    /// Whether each process has a processor of its own.
    pub fn has_own_processors(&self) -> bool {
        self.all_processes && !self.machines.names.is_empty()
    }
}
