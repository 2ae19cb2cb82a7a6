//! Tables of estimates from a sample: of the whole execution, of classes of units of work, and of processes.

use std::process::ExitCode;

use analysis::models::{WithClasses, sampled_by_class, sampled_by_process};
use anyhow::bail;
use machine::TimingModel;

use super::{CLASS_ROWS, ModelSet, ModelTables, ONE_PROCESS, ResultRows, SummaryTables, process_labels};
use crate::simulation::{Needs, OWN_PROCESSORS};

/// The error of rows of which a sample has no estimates.
pub(super) const SAMPLED_ROWS: &str = "--sample estimates the time of everything, of classes and of processes: --by class, --by process, or no --by";

impl ModelTables<'_> {
    /// Simulates samples on models of each machine, which `make` makes, and writes the tables. Returns the exit status.
    pub fn write_sampled(
        &self,
        make: impl Fn() -> Vec<TimingModel> + Send + 'static,
        summary: SummaryTables<TimingModel>,
    ) -> anyhow::Result<ExitCode> {
        let &ModelTables { simulation, rows, .. } = self;
        let has_classes = rows == Some(ResultRows::Class) || simulation.asks_for_classes();
        match rows {
            None if !has_classes => return self.write(make, summary),
            None | Some(ResultRows::Class) => simulation.check_classes(true)?,
            Some(ResultRows::Process) if has_classes => bail!(CLASS_ROWS),
            Some(ResultRows::Process) if !simulation.all_processes => bail!(ONE_PROCESS),
            Some(ResultRows::Process) => {}
            Some(_) => bail!(SAMPLED_ROWS),
        }
        let models = WithClasses::new(simulation.process_models(make));
        let mut simulated = match has_classes {
            true => simulation.run_with_classes(models)?,
            false => simulation.run(Needs::default(), models)?,
        };
        if simulation.all_processes {
            simulated.notes.push(OWN_PROCESSORS.into());
        }
        let WithClasses { model, classes } = &simulated.model;
        let machines = simulation.machines.named_sums(model.of_machines()?);
        let mut tables = if rows.is_none() { summary(&machines) } else { Vec::new() };
        tables.extend(match has_classes {
            true => {
                simulated.check_classes(simulation, classes)?;
                sampled_by_class(&machines, classes)
            }
            false => sampled_by_process(&machines, &process_labels(&simulated.processes, &model.totals())),
        });
        simulated.write(simulation, tables)
    }
}
