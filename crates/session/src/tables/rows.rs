//! The rows of tables, with what they need of an execution.

use analysis::call_tree::{EntryRows, WithCallTree};
use analysis::models::{
    DividedByClass, InstructionResults, OwnRows, ProcessLabel, SummedOverProcesses, UnitClasses, WithClasses,
};
use anyhow::bail;
use machine::{MergeableModel, Model, PerProcess};
use table::Table;
use trace::{Header, Trace};

use super::calls::CallsRequest;
use super::result_rows::ResultRows;
use super::row_models::RowModels;
use crate::simulation::{Needs, OWN_PROCESSORS, Simulated, Simulation};

/// The error of rows of processes without results of each.
const ONE_PROCESS: &str = "--by process needs the results of all processes: add --children";

/// The error of rows that are not divided among classes of units.
const CLASS_ROWS: &str = "with classes of units, rows are classes, units, functions, lines, instructions or calls: --by class, --by function, or no --by \
     for a summary";

/// The error of rows of which a sample has no estimates.
const SAMPLED_ROWS: &str = "--sample estimates the time of everything, of classes and of processes: --by class, --by process, or no --by";

/// The rows that are shown of models of machines, with what they need of an execution.
pub(super) struct RowRequest<'a, M> {
    /// The execution, and the machines.
    pub simulation: &'a Simulation<'a>,
    /// The rows; without, those of a summary.
    pub rows: Option<ResultRows>,
    /// The calls whose costs are shown.
    pub calls: &'a CallsRequest,
    /// Whether they are divided among classes of units of work.
    pub has_classes: bool,
    /// The tables of a sample, whose results are estimates.
    pub estimates: Option<EstimateTables<M>>,
}

/// Results on machines, with their names.
pub type MachineSums<'m, M> = [(&'m str, SummedOverProcesses<'m, M>)];

/// Makes tables of estimates from the results on machines.
pub(super) struct EstimateTables<M> {
    /// By class of units of work.
    pub by_class: fn(&MachineSums<M>, &UnitClasses) -> Vec<Table>,
    /// By process.
    pub by_process: fn(&MachineSums<M>, &[ProcessLabel]) -> Vec<Table>,
}

impl<'a, M: InstructionResults + MergeableModel + 'static> RowRequest<'a, M> {
    /// These rows. Of a trace that has classes, rows that cannot be divided are those of everything, and so is a summary unless
    /// `is_summary_divided`. An error if the options do not fit together.
    pub fn new(
        simulation: &'a Simulation<'a>,
        rows: Option<ResultRows>,
        calls: &'a CallsRequest,
        is_summary_divided: bool,
    ) -> anyhow::Result<RowRequest<'a, M>> {
        calls.check_rows(rows)?;
        let asks = simulation.asks_for_classes();
        let can_have = match rows {
            None => is_summary_divided,
            Some(rows) => matches!(rows, ResultRows::Own(_) | ResultRows::Calls(_)),
        };
        let has_classes = rows == Some(ResultRows::Class) || asks || can_have && simulation.has_classes();
        match rows {
            Some(ResultRows::Process | ResultRows::Entries(_)) if has_classes => bail!(CLASS_ROWS),
            Some(ResultRows::Process) if simulation.machines.names.is_empty() => {
                bail!("--by process is for count, caches and time with --children")
            }
            Some(ResultRows::Process) if !simulation.all_processes => bail!(ONE_PROCESS),
            Some(ResultRows::Entries(rows)) if simulation.all_processes => bail!(
                "--by {} is of the whole system, whose processes share a processor: leave out --children",
                name_of(rows)
            ),
            _ if has_classes => simulation.check_classes()?,
            _ => {}
        }
        Ok(RowRequest { simulation, rows, calls, has_classes, estimates: None })
    }

    /// The same with estimates from a sample.
    pub fn estimated(self, estimates: EstimateTables<M>) -> anyhow::Result<RowRequest<'a, M>> {
        match self.rows {
            None | Some(ResultRows::Class | ResultRows::Process) => {
                Ok(RowRequest { estimates: Some(estimates), ..self })
            }
            Some(_) => bail!(SAMPLED_ROWS),
        }
    }

    /// The models of the machines that `make` makes, with what divides their results; of a trace with this header.
    pub fn models(
        &self,
        header: Option<&Header>,
        make: impl Fn() -> Vec<M> + Send + 'static,
    ) -> Box<dyn RowModels<M>> {
        let models = self.simulation.machine_models(make);
        match (self.rows, header) {
            (Some(ResultRows::Entries(_)), Some(header)) => {
                // Whole systems are of the first instruction set.
                let name = |number| engine::system_call_name(isa::INSTRUCTION_SETS[0], number);
                Box::new(WithCallTree::of_entries(models, header, name))
            }
            (Some(ResultRows::Calls(_)), _) if self.has_classes => {
                Box::new(WithCallTree::new(DividedByClass::new(models)).with_classes())
            }
            (Some(ResultRows::Calls(_)), _) => Box::new(WithCallTree::new(models)),
            (Some(ResultRows::Own(rows)), _) if self.has_classes && rows != OwnRows::Unit => {
                Box::new(DividedByClass::new(models))
            }
            _ if self.has_classes => Box::new(WithClasses::new(models)),
            _ => Box::new(models),
        }
    }

    /// Simulates models on the execution, which `make` makes for a trace with a header, or for a program.
    pub fn run<O: Model + 'static>(
        &self,
        make: impl FnOnce(Option<&Header>) -> O,
    ) -> anyhow::Result<Simulated<O>> {
        self.run_on(self.simulation, make)
    }

    /// The same on other machines.
    pub fn run_on<O: Model + 'static>(
        &self,
        simulation: &Simulation,
        make: impl FnOnce(Option<&Header>) -> O,
    ) -> anyhow::Result<Simulated<O>> {
        let trace = simulation.open()?;
        if let Some(ResultRows::Entries(rows)) = self.rows {
            check_entries(simulation, rows, trace.as_ref())?;
        }
        let functions = match self.rows {
            Some(ResultRows::Calls(_)) => &self.calls.selection.functions[..],
            _ => &[],
        };
        let units = self.rows == Some(ResultRows::Own(OwnRows::Unit));
        let models = make(trace.as_ref().map(Trace::header));
        let mut simulated =
            simulation.run_on(trace, Needs { units, functions, classes: self.has_classes }, models)?;
        simulated.notes.extend(simulation.has_own_processors().then(|| OWN_PROCESSORS.into()));
        Ok(simulated)
    }
}

impl Simulation<'_> {
    /// Whether each process has a processor of its own.
    pub fn has_own_processors(&self) -> bool {
        self.all_processes && !self.machines.names.is_empty()
    }

    /// Models of machines that `make` makes: one set for each process if each has processors of its own, otherwise one that all share.
    /// What happens on no machine is counted by one model, too.
    pub fn machine_models<M: MergeableModel>(&self, make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        match self.has_own_processors() {
            true => PerProcess::merging(make),
            false => PerProcess::shared(make),
        }
    }
}

/// The word of rows of a whole system's trace.
fn name_of(rows: EntryRows) -> &'static str {
    match rows {
        EntryRows::Mode => "mode",
        EntryRows::Reason => "entry",
        EntryRows::SystemCall => "system-call",
    }
}

/// Whether there is a trace of a whole system.
fn check_entries(simulation: &Simulation, rows: EntryRows, trace: Option<&Trace>) -> anyhow::Result<()> {
    let (file, by) = (&simulation.input, name_of(rows));
    let needed = format!("--by {by} needs a trace of a whole system: record it with pathlength system trace");
    match trace {
        None => bail!("{file} is a program, and {needed}"),
        Some(trace) if !trace.header().has_system() => {
            bail!("{file} is a trace of programs only, and {needed}")
        }
        Some(_) => Ok(()),
    }
}
