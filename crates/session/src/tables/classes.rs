//! Tables of models by class of units of work.

use std::process::ExitCode;

use analysis::call_tree::{CallChains, CallCosts, CallProfile, CallRows, NoEvent, WithCallTree, call_tables};
use analysis::models::{
    self, ClassResults, DividedByClass, InstructionResults, Rows, WithClasses, by_class, mean_units,
    tables_of_classes, units_of_classes,
};
use anyhow::bail;
use machine::{MergeableModel, PerProcess};
use table::Table;

use super::{ModelSet, ModelTables, ResultRows, Summary};
use crate::simulation::{OWN_PROCESSORS, PlannedRun, Simulated, Simulation};

/// A part of an execution, and its name.
pub type ClassPart<P> = (String, P);

/// Simulates models of the machines on a program, and writes tables by class; without rows, those of a summary before.
pub(super) fn write<M: InstructionResults + MergeableModel + 'static>(
    request: &ModelTables,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: Summary<M>,
) -> anyhow::Result<ExitCode> {
    let &ModelTables { simulation, rows, calls } = request;
    simulation.check_classes(matches!(rows, None | Some(ResultRows::Class)))?;
    match rows {
        None | Some(ResultRows::Class | ResultRows::Own(Rows::Unit)) => {
            write_sums(simulation, rows, make, summary)
        }
        Some(ResultRows::Own(rows)) => {
            let mut simulated =
                simulation.run_classes(simulation.prepare_classes()?, DividedByClass::new(make))?;
            simulated.model.finish();
            let table = |machine: &str, part: &ClassResults<M>| {
                models::by(rows, &[(machine, part)], &simulated.trace)
            };
            write_divided(simulation, &simulated, &simulated.model, table)
        }
        Some(ResultRows::Calls(rows)) => {
            let columns = make().first().map_or(Vec::new(), InstructionResults::columns);
            let form = calls.chain_form(simulation.console, &columns, rows == CallRows::Tree)?;
            let model = WithCallTree::new(DividedByClass::new(make)).with_classes();
            let mut simulated = simulation.run_classes(simulation.prepare_classes()?, model)?;
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
        Some(_) => bail!(
            "with classes of units, rows are classes, units, functions, lines, instructions or calls: --by class, --by function, or no \
             --by for a summary"
        ),
    }
}

/// One row for each class, or for each unit of work with its class.
fn write_sums<M: InstructionResults + MergeableModel + 'static>(
    simulation: &Simulation,
    rows: Option<ResultRows>,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: Summary<M>,
) -> anyhow::Result<ExitCode> {
    let simulated =
        simulation.run_classes(simulation.prepare_classes()?, WithClasses::new(PerProcess::merging(make)))?;
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
    /// Whether the options fit together. Only tables with a row for each class are made of several machines.
    pub fn check_classes(&self, is_of_sums: bool) -> anyhow::Result<()> {
        let planned = &self.part.planned;
        if self.input.is_trace() {
            bail!("{} is a trace, which does not have the classes of units: name the program", self.input);
        }
        if planned.unit.is_empty() {
            bail!("classes are those of units of work: name their function with --unit FUNCTION");
        }
        if self.machines.names.len() > 1 && !is_of_sums {
            bail!("a table of rows in each class is of one machine: give a single --machine");
        }
        if planned.counts_units() || self.part.warm_up > 0 {
            bail!("with classes, all of the program is simulated: leave out --skip, --units and --warm-up");
        }
        Ok(())
    }

    /// Runs a program whose units have classes as planned, and simulates a model on it, with the note on processors.
    pub fn run_classes<M: machine::Model + 'static>(
        &self,
        planned: PlannedRun,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let mut simulated = self.run_planned(planned, model)?;
        if self.all_processes && !self.machines.names.is_empty() {
            simulated.notes.push(OWN_PROCESSORS.into());
        }
        Ok(simulated)
    }
}
