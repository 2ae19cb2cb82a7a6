//! Models that observe an execution for the rows of tables, and the tables that these give.

use analysis::call_tree::{
    CallChains, CallCosts, CallProfile, NoEvent, WithCallTree, call_tables, entry_tables,
};
use analysis::models::{
    self, ClassResults, DividedByClass, InstructionResults, SummedOverProcesses, UnitClasses, WithClasses,
    by_class, mean_units, units_of_classes,
};
use anyhow::bail;
use machine::{MergeableModel, Model, PerProcess};

use super::calls::CallTreeOutput;
use super::classes::{RowTable, divided_tables};
use super::processes::{process_labels, process_results};
use super::result_rows::ResultRows;
use super::rows::RowRequest;
use crate::simulation::Simulated;

/// The error of a simulation without results.
pub const NOTHING_SIMULATED: &str = "no process executed anything that was to be simulated";

/// The request and the execution from which tables of models are made.
pub(super) struct TableContext<'a, M> {
    /// The rows.
    pub request: &'a RowRequest<'a, M>,
    /// The execution.
    pub simulated: &'a Simulated<()>,
    /// The names of machines.
    pub names: &'a [&'a str],
}

/// Models of machines, as tables with some rows need them.
pub(super) trait RowModels<M>: Model {
    /// The results on each machine. An error if nothing was simulated.
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>>;

    /// Everything was executed.
    fn finish(&mut self) {}

    /// The classes of units of work, if the results have some.
    fn classes(&self) -> Option<&UnitClasses> {
        None
    }

    /// A table for each machine.
    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>>;

    /// Writes call chains.
    fn write_chains(&self, _: &TableContext<M>, (_, path): CallTreeOutput) -> anyhow::Result<()> {
        bail!("{} shows the call tree: give --by call-tree", path.display())
    }
}

/// The results on each machine, summed up over processes. An error if nothing was simulated.
pub fn sums_of_machines<M>(models: &PerProcess<Vec<M>>) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>>
where
    M: MergeableModel,
{
    let Some(first) = models.all_models().next() else { bail!(NOTHING_SIMULATED) };
    let sum =
        |machine: usize| SummedOverProcesses(models.all_models().map(|models| &models[machine]).collect());
    Ok((0..first.len()).map(sum).collect())
}

/// Results with the names of their machines.
fn named<'n, R>(names: &[&'n str], results: Vec<R>) -> Vec<(&'n str, R)> {
    names.iter().copied().zip(results).collect()
}

fn references<'r, R>(named: &'r [(&'r str, R)]) -> Vec<(&'r str, &'r R)> {
    named.iter().map(|(name, results)| (*name, results)).collect()
}

/// Own costs of everything, or of processes.
impl<M: InstructionResults + MergeableModel + 'static> RowModels<M> for PerProcess<Vec<M>> {
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        sums_of_machines(self)
    }

    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>> {
        let TableContext { request, simulated, names } = context;
        let machines = named(names, self.of_machines()?);
        let tables = match (request.rows, &request.estimates) {
            (Some(ResultRows::Own(rows)), _) => models::by(rows, &references(&machines), &simulated.trace),
            _ if !request.simulation.has_own_processors() => Vec::new(),
            (_, Some(estimates)) => {
                (estimates.by_process)(&machines, &process_labels(&simulated.processes, &self.totals()))
            }
            (_, None) => {
                let columns: Vec<usize> = machines.iter().map(|(_, sum)| sum.columns().len()).collect();
                let results = process_results(&simulated.processes, &self.totals(), &columns);
                models::by_process(&references(&machines), &results)
            }
        };
        Ok(tables.into_iter().map(RowTable::Whole).collect())
    }
}

/// Own costs of classes, or of units with their classes.
impl<M: InstructionResults + MergeableModel + 'static> RowModels<M> for WithClasses<PerProcess<Vec<M>>> {
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        sums_of_machines(&self.model)
    }

    fn classes(&self) -> Option<&UnitClasses> {
        Some(&self.classes)
    }

    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>> {
        let TableContext { request, names, .. } = context;
        let machines = named(names, self.of_machines()?);
        let tables = match (request.rows, &request.estimates) {
            (Some(ResultRows::Own(_)), _) => units_of_classes(&machines, &self.classes),
            (_, Some(estimates)) => (estimates.by_class)(&machines, &self.classes),
            (None, None) => {
                let classes = by_class(&machines, &self.classes).into_iter();
                classes.chain(mean_units(&machines, &self.classes)).collect()
            }
            (Some(_), None) => by_class(&machines, &self.classes),
        };
        Ok(tables.into_iter().map(RowTable::Whole).collect())
    }
}

/// Own costs of functions, lines or instructions in each class.
impl<M: InstructionResults + MergeableModel + 'static> RowModels<M> for DividedByClass<M> {
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        sums_of_machines(&self.models)
    }

    fn finish(&mut self) {
        DividedByClass::finish(self);
    }

    fn classes(&self) -> Option<&UnitClasses> {
        Some(&self.classes)
    }

    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>> {
        let TableContext { request, simulated, names } = context;
        let Some(ResultRows::Own(rows)) = request.rows else { return Ok(Vec::new()) };
        let tables = |machines: &[(&str, &ClassResults<M>)]| models::by(rows, machines, &simulated.trace);
        Ok(divided_tables(self, names, tables))
    }
}

/// Costs of calls, or by mode, or by why the kernel was entered.
impl<M: InstructionResults + MergeableModel + 'static> RowModels<M> for WithCallTree<PerProcess<Vec<M>>> {
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        sums_of_machines(&self.model)
    }

    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>> {
        let TableContext { request, names, .. } = context;
        let machines = named(names, self.of_machines()?);
        let tables = match request.rows {
            Some(ResultRows::Entries(rows)) => entry_tables(rows, self, &references(&machines)),
            Some(ResultRows::Calls(rows)) => {
                request.calls.selection.check(self.tree())?;
                call_tables(rows, &request.calls.selection, self, &references(&machines))
            }
            _ => Vec::new(),
        };
        Ok(tables.into_iter().map(RowTable::Whole).collect())
    }

    fn write_chains(&self, context: &TableContext<M>, output: CallTreeOutput) -> anyhow::Result<()> {
        let TableContext { request, simulated, .. } = context;
        let calls = request.calls;
        match &self.of_machines()?[..] {
            [results] => calls.write_chains(simulated, self, results, output),
            _ => bail!("a flame graph shows one machine: give a single --machine"),
        }
    }
}

/// Costs of calls in each class.
impl<M: InstructionResults + MergeableModel + 'static> RowModels<M> for WithCallTree<DividedByClass<M>> {
    fn of_machines(&self) -> anyhow::Result<Vec<SummedOverProcesses<'_, M>>> {
        sums_of_machines(&self.model.models)
    }

    fn finish(&mut self) {
        self.model.finish();
    }

    fn classes(&self) -> Option<&UnitClasses> {
        Some(&self.model.classes)
    }

    fn tables(&self, context: &TableContext<M>) -> anyhow::Result<Vec<RowTable>> {
        let TableContext { request, names, .. } = context;
        let Some(ResultRows::Calls(rows)) = request.rows else { return Ok(Vec::new()) };
        let selection = &request.calls.selection;
        selection.check(self.tree())?;
        let tables = |machines: &[(&str, &ClassResults<M>)]| call_tables(rows, selection, self, machines);
        Ok(divided_tables(&self.model, names, tables))
    }

    fn write_chains(&self, context: &TableContext<M>, output: CallTreeOutput) -> anyhow::Result<()> {
        let TableContext { request, simulated, .. } = context;
        let calls = request.calls;
        let (form, path) = output;
        let parts = self.model.parts(0);
        simulated.protect();
        if form.is_profile() {
            let event = parts.first().map_or(Ok(None), |part| calls.event(&part.columns()))?;
            let parts = parts.iter().map(|part| (part.name.as_str(), part)).collect();
            return form.write_profile(&simulated.trace, CallProfile::of_classes(self, parts, event), path);
        }
        let chains = parts.iter().map(|part| {
            let chains = CallCosts::new(self, part).chains(calls.chart.as_deref())?;
            Ok((part.name.clone(), chains))
        });
        let chains = chains.collect::<Result<Vec<_>, NoEvent>>()?;
        calls.draw(simulated, M::WHAT, CallChains::of_classes(chains.into_iter()), output)
    }
}
