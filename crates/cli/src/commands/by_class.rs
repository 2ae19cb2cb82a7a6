//! `caches`, `time`, `calls` and `faults` by class of units of work.

use std::process::ExitCode;

use analysis::call_tree::{
    CallChains, CallCosts, CallProfile, NoEvent, WithCallTree, call_tables, find_event,
};
use analysis::models::{
    self, ClassResults, DividedByClass, InstructionResults, Rows, Together, UnitClasses, WithClasses,
    by_class, mean_units, tables_of_classes, units_of_classes,
};
use anyhow::bail;
use engine::{ClassPlan, Configuration, Plan};
use machine::{MergeableModel, Model, PerProcess};
use table::Table;
use trace::Trace;

use super::calls::{ChainForm, chain_form, check_functions, draw_chains, write_profile};
use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, prepare};
use super::{processes, simulate};
use crate::arguments::{
    CallOptions, ClassOptions, OutputOptions, PlanOptions, ResultRows, RowOptions, SimulationOptions,
};
use crate::messages;

/// What is simulated, and how it is shown.
pub struct ClassRequest<'a> {
    pub input: &'a SimulationOptions,
    pub classes: &'a ClassOptions,
    pub rows_shown: &'a RowOptions,
    pub output: &'a OutputOptions,
    pub selected: &'a SelectedMachines,
    /// Whether all processes are simulated.
    pub children: bool,
}

/// Simulates models of the machines on a program, and writes tables by class, with these rows; without rows, those of a summary before.
pub fn run<M: InstructionResults + MergeableModel + 'static>(
    request: &ClassRequest,
    (rows, calls): (Option<ResultRows>, &CallOptions),
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: impl FnOnce(&[(&str, Together<M>)]) -> Vec<Table>,
) -> anyhow::Result<ExitCode> {
    request.check(matches!(rows, None | Some(ResultRows::Class)))?;
    check_functions(calls, rows)?;
    match rows {
        None | Some(ResultRows::Class | ResultRows::Own(Rows::Unit)) => sums(request, rows, make, summary),
        Some(ResultRows::Own(rows)) => {
            let mut simulated = request.simulate(request.prepare()?, DividedByClass::new(make))?;
            simulated.model.finish();
            let named = |machine: &str, part: &ClassResults<M>| {
                models::by(rows, &[(machine, part)], &simulated.trace)
            };
            request.write(&simulated, &simulated.model, named)
        }
        Some(ResultRows::Calls(rows)) => {
            let columns = make().first().map_or(Vec::new(), InstructionResults::columns);
            let form = chain_form(&columns, calls, request.output, Some(ResultRows::Calls(rows)))?;
            let model = WithCallTree::new(DividedByClass::new(make)).with_classes();
            let mut simulated = request.simulate(request.prepare()?, model)?;
            simulated.model.model.finish();
            let tree = &simulated.model;
            if let Some(form) = form {
                request.check_ended(&simulated, &tree.model.classes)?;
                let parts = tree.model.parts(0);
                simulated.protect();
                if let (ChainForm::Pprof | ChainForm::Callgrind, path) = form {
                    let event = find_event(&columns, calls.event.as_deref())?;
                    let parts = parts.iter().map(|part| (part.name.as_str(), part)).collect();
                    let profile = CallProfile::of_classes(tree, parts, event);
                    write_profile(&simulated.trace, profile, (form.0, path))?;
                } else {
                    let chains = parts.iter().map(|part| {
                        let chains = CallCosts::new(tree, part).chains(calls.event.as_deref())?;
                        Ok((part.name.clone(), chains))
                    });
                    let chains = chains.collect::<Result<Vec<_>, NoEvent>>()?;
                    let chains = CallChains::of_classes(chains.into_iter());
                    draw_chains(&simulated.trace, M::WHAT, chains, calls, form)?;
                }
                return simulated.finish(request.input);
            }
            let named = |machine: &str, part: &ClassResults<M>| {
                call_tables(rows, &calls.selection(), tree, &[(machine, part)])
            };
            calls.selection().check(tree.tree())?;
            request.write(&simulated, &tree.model, named)
        }
        Some(_) => bail!(
            "with classes of units, rows are classes, units, functions, lines, instructions or calls: --by class, --by function, or no \
             --by for a summary"
        ),
    }
}

/// Whether a sweep is of the whole execution.
pub fn check_sweep(classes: &ClassOptions, input: &SimulationOptions) -> anyhow::Result<()> {
    if classes.are_wanted(None, &input.plan.unit) {
        bail!("--sweep has no classes: give the machines one by one, --machine A --machine B --by class");
    }
    Ok(())
}

/// One row for each class, or for each unit of work with its class.
fn sums<M: InstructionResults + MergeableModel + 'static>(
    request: &ClassRequest,
    rows: Option<ResultRows>,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: impl FnOnce(&[(&str, Together<M>)]) -> Vec<Table>,
) -> anyhow::Result<ExitCode> {
    let model = WithClasses::new(PerProcess::merging(make));
    let simulated = request.simulate(request.prepare()?, model)?;
    let WithClasses { model, classes } = &simulated.model;
    request.check_ended(&simulated, classes)?;
    let machines: Vec<_> = processes::together(model, request.selected).collect();
    let mut tables = Vec::new();
    if let Some(ResultRows::Own(_)) = rows {
        tables = units_of_classes(&machines, classes);
    } else {
        // A calling program gets the summary, too.
        if rows.is_none() || messages::is_connected() {
            tables.extend(summary(&machines));
        }
        tables.extend(by_class(&machines, classes));
        if rows.is_none() {
            tables.extend(mean_units(&machines, classes));
        }
    }
    simulated.write(tables, request.rows_shown, request.output)?;
    simulated.finish(request.input)
}

impl ClassRequest<'_> {
    /// Whether the options fit together. Only tables with a row for each class are made of several machines.
    pub fn check(&self, is_of_sums: bool) -> anyhow::Result<()> {
        let (plan, file) = (&self.input.plan, self.input.file.path());
        if Trace::is_trace(file) {
            bail!(
                "{} is a trace, which does not have the classes of units: name the program",
                file.display()
            );
        }
        if plan.unit.is_empty() {
            bail!("classes are those of units of work: name their function with --unit FUNCTION");
        }
        if self.selected.names.len() > 1 && !is_of_sums {
            bail!("a table of rows in each class is of one machine: give a single --machine");
        }
        if plan.skip > 0 || plan.units.is_some() || self.input.warm_up > 0 {
            bail!("with classes, all of the program is simulated: leave out --skip, --units and --warm-up");
        }
        Ok(())
    }

    /// Whether there are classes.
    pub fn check_ended<M>(&self, simulated: &Simulated<M>, classes: &UnitClasses) -> anyhow::Result<()> {
        if classes.names().is_empty() {
            simulated.finish(self.input)?;
            bail!("no unit of work ended: {} was never called", self.input.plan.unit.join(", "));
        }
        Ok(())
    }

    /// What to run: all of the program is simulated, and its units have classes.
    pub fn prepare(&self) -> anyhow::Result<(Configuration, Plan)> {
        let units = &self.input.plan.unit;
        let input = self.whole();
        let (configuration, plan) = prepare(&input, units, &self.selected.machines, false)?;
        let classes = ClassPlan { functions: units.clone(), rules: self.classes.classes.clone() };
        Ok((configuration, Plan { classes: Some(classes), ..plan }))
    }

    /// The options for all of the program.
    fn whole(&self) -> SimulationOptions {
        let plan = PlanOptions { unit: Vec::new(), ..self.input.plan.clone() };
        SimulationOptions { plan, ..self.input.clone() }
    }

    /// Runs the program as planned, and simulates a model on it.
    pub fn simulate<M: Model + 'static>(
        &self,
        (configuration, plan): (Configuration, Plan),
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let planned = (configuration, Plan { heap: model.wants_heap(), ..plan });
        let mut simulated = match self.children {
            true => processes::run(&self.whole(), self.output, planned, model)?.0,
            false => simulate::run(&self.whole(), self.output, planned, model)?,
        };
        simulated.notes.extend(self.selected.note());
        if self.children && !self.selected.names.is_empty() {
            simulated.notes.push(processes::OWN_PROCESSORS.into());
        }
        Ok(simulated)
    }

    /// Writes a table of all classes. `tables` makes that of a part of the execution on a machine.
    pub fn write<S, M: InstructionResults + MergeableModel>(
        &self,
        simulated: &Simulated<S>,
        divided: &DividedByClass<M>,
        tables: impl Fn(&str, &ClassResults<M>) -> Vec<Table>,
    ) -> anyhow::Result<ExitCode> {
        self.check_ended(simulated, &divided.classes)?;
        let machine = self.selected.names.first().map_or("", String::as_str);
        let whole = tables(machine, &divided.whole(0)).remove(0);
        let parts = divided.parts(0).into_iter();
        self.write_parts(
            simulated,
            parts.map(|part| (part.name.clone(), tables(machine, &part).remove(0))),
            whole,
        )
    }

    /// Writes a table of these parts of the execution, each with the name of its class; `whole` is the same of everything.
    pub fn write_parts<S>(
        &self,
        simulated: &Simulated<S>,
        parts: impl Iterator<Item = (String, Table)>,
        whole: Table,
    ) -> anyhow::Result<ExitCode> {
        let mut shown = Vec::new();
        for (class, mut table) in parts {
            // Each class has its first rows.
            self.rows_shown.apply(std::slice::from_mut(&mut table))?;
            shown.push((class, table));
        }
        simulated.write(vec![tables_of_classes(shown, whole)], &RowOptions::default(), self.output)?;
        simulated.finish(self.input)
    }
}
