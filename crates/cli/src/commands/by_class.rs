//! `caches` and `time` by class of units of work.

use std::process::ExitCode;

use analysis::models::{InstructionResults, Together, WithClasses, by_class, mean_units};
use analysis::table::Table;
use anyhow::bail;
use engine::{ClassPlan, Configuration, Plan};
use machine::{MergeableModel, PerProcess};
use trace::Trace;

use super::selected_machines::SelectedMachines;
use super::simulate::prepare;
use super::{processes, simulate};
use crate::arguments::{ClassOptions, OutputOptions, PlanOptions, ResultRows, RowOptions, SimulationOptions};
use crate::messages;

/// What is simulated, and how it is shown.
pub struct ClassRequest<'a> {
    pub input: &'a SimulationOptions,
    pub classes: &'a ClassOptions,
    pub rows: Option<ResultRows>,
    pub rows_shown: &'a RowOptions,
    pub output: &'a OutputOptions,
    pub selected: &'a SelectedMachines,
    /// Whether all processes are simulated.
    pub children: bool,
}

/// Simulates models of the machines on a program, and writes tables by class; without rows, those of a summary before.
pub fn run<M: InstructionResults + MergeableModel + 'static>(
    request: &ClassRequest,
    make: impl Fn() -> Vec<M> + Send + 'static,
    summary: impl FnOnce(&[(&str, Together<M>)]) -> Vec<Table>,
) -> anyhow::Result<ExitCode> {
    let ClassRequest { selected, output, .. } = *request;
    request.check()?;
    let (input, planned) = request.prepare()?;
    let model = WithClasses::new(PerProcess::merging(make));
    let mut simulated = match request.children {
        true => processes::run(&input, output, planned, model)?.0,
        false => simulate::run(&input, output, planned, model)?,
    };
    let WithClasses { model, classes } = &simulated.model;
    let machines: Vec<_> = processes::together(model, selected).collect();
    if classes.names().is_empty() {
        simulated.finish(&input)?;
        bail!("no unit of work ended: {} was never called", request.input.plan.unit.join(", "));
    }
    let mut tables = Vec::new();
    // A calling program gets the summary, too.
    if request.rows.is_none() || messages::is_connected() {
        tables.extend(summary(&machines));
    }
    tables.extend(by_class(&machines, classes));
    if request.rows.is_none() {
        tables.extend(mean_units(&machines, classes));
    }
    simulated.notes.extend(selected.note());
    if request.children {
        simulated.notes.push(processes::OWN_PROCESSORS.into());
    }
    simulated.write(tables, request.rows_shown, output)?;
    simulated.finish(&input)
}

impl ClassRequest<'_> {
    /// Whether the options fit together.
    fn check(&self) -> anyhow::Result<()> {
        let (plan, file) = (&self.input.plan, self.input.file.path());
        if !matches!(self.rows, None | Some(ResultRows::Class)) {
            bail!("with classes of units, rows are the classes: --by class, or no --by for a summary");
        }
        if Trace::is_trace(file) {
            bail!(
                "{} is a trace, which does not have the classes of units: name the program",
                file.display()
            );
        }
        if plan.unit.is_empty() {
            bail!("classes are those of units of work: name their function with --unit FUNCTION");
        }
        if plan.skip > 0 || plan.units.is_some() || self.input.warm_up > 0 {
            bail!("with classes, all of the program is simulated: leave out --skip, --units and --warm-up");
        }
        Ok(())
    }

    /// What to run: all of the program is simulated, and its units have classes.
    fn prepare(&self) -> anyhow::Result<(SimulationOptions, (Configuration, Plan))> {
        let units = &self.input.plan.unit;
        let plan = PlanOptions { unit: Vec::new(), ..self.input.plan.clone() };
        let input = SimulationOptions { plan, ..self.input.clone() };
        let (configuration, plan) = prepare(&input, units, &self.selected.machines, false)?;
        let classes = ClassPlan { functions: units.clone(), rules: self.classes.classes.clone() };
        Ok((input, (configuration, Plan { classes: Some(classes), ..plan })))
    }
}
