//! Tables of models of machines: one driver for all commands that simulate. A command says which models it makes, which rows
//! it shows, and what its summary is.

mod calls;
mod classes;
mod curves;
mod entries;
mod model_set;
mod sampled;
mod sweep;
mod sweep_file;

use std::collections::BTreeMap;
use std::process::ExitCode;

use analysis::call_tree::{CallRows, EntryRows};
use analysis::models::{
    self, InstructionResults, OwnRows, ProcessLabel, ProcessResults, SummedOverProcesses,
};
use anyhow::bail;
use machine::{MergeableModel, PerProcess};
use table::Table;

pub use self::calls::{CallTreeOutput, CallsRequest, ChainForm, check_chain_output};
pub use self::classes::{ClassPart, write_classes, write_divided};
pub use self::curves::CurvesRequest;
pub use self::model_set::{ModelSet, NOTHING_SIMULATED};
pub use self::sweep::{SweepRequest, sweep_cycles, sweep_misses};
use crate::process_tree;
use crate::simulation::{KnownProcesses, Needs, OWN_PROCESSORS, Simulated, Simulation};

/// The rows of a table of a model's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRows {
    /// Own costs.
    Own(OwnRows),
    /// Costs of calls.
    Calls(CallRows),
    /// Own costs of processes.
    Process,
    /// Costs by mode, or by why the kernel was entered.
    Entries(EntryRows),
    /// Own costs of classes of units of work.
    Class,
}

/// The error of rows of processes without results of each.
const ONE_PROCESS: &str = "--by process needs the results of all processes: add --children";

/// The error of rows that are not divided among classes of units.
const CLASS_ROWS: &str = "with classes of units, rows are classes, units, functions, lines, instructions or calls: --by class, --by function, or no --by \
     for a summary";

/// The tables that a command shows of models of machines.
pub struct ModelTables<'a> {
    /// The execution, and the machines.
    pub simulation: &'a Simulation<'a>,
    /// The rows; without, those of a summary.
    pub rows: Option<ResultRows>,
    /// The calls whose costs are shown.
    pub calls: &'a CallsRequest,
}

/// Makes the tables of a summary, from the results on each machine.
pub type SummaryTables<'a, M> = &'a dyn Fn(&[(&str, SummedOverProcesses<M>)]) -> Vec<Table>;

impl ModelTables<'_> {
    /// Simulates a model of each machine, which `make` makes, and writes the tables. Returns the exit status.
    pub fn write<M: InstructionResults + MergeableModel + 'static>(
        &self,
        make: impl Fn() -> Vec<M> + Send + 'static,
        summary: SummaryTables<M>,
    ) -> anyhow::Result<ExitCode> {
        let simulation = self.simulation;
        self.calls.check_rows(self.rows)?;
        match self.rows {
            Some(ResultRows::Entries(rows)) => entries::write(simulation, rows, make()),
            _ if self.has_classes() => classes::write(self, make, summary),
            // Each process has machines of its own; what happens on none is counted by one model.
            _ if simulation.all_processes && !simulation.machines.names.is_empty() => {
                let models = make();
                self.write_results(PerProcess::merging(make), &models, summary)
            }
            Some(ResultRows::Process) if simulation.machines.names.is_empty() => {
                bail!("--by process is for count, caches and time with --children")
            }
            Some(ResultRows::Process) => {
                bail!(ONE_PROCESS)
            }
            _ => self.write_results(make(), &make(), summary),
        }
    }

    /// Whether rows are divided among classes of units. Of a trace that has classes, other rows are those of everything.
    fn has_classes(&self) -> bool {
        let can_have = matches!(self.rows, None | Some(ResultRows::Own(_) | ResultRows::Calls(_)));
        self.rows == Some(ResultRows::Class)
            || self.simulation.asks_for_classes()
            || can_have && self.simulation.has_classes()
    }

    /// The same with models of the whole execution. `example` has one for each machine.
    fn write_results<S: ModelSet>(
        &self,
        models: S,
        example: &[S::Model],
        summary: SummaryTables<S::Model>,
    ) -> anyhow::Result<ExitCode> {
        let &ModelTables { simulation, rows, calls } = self;
        if let Some(ResultRows::Calls(rows)) = rows {
            return calls.write(simulation, rows, models, example);
        }
        let needs = Needs { units: rows == Some(ResultRows::Own(OwnRows::Unit)), ..Needs::default() };
        let mut simulated = simulation.run(needs, models)?;
        if S::IS_PER_PROCESS {
            simulated.notes.push(OWN_PROCESSORS.into());
        }
        let machines = simulation.machines.named_sums(simulated.model.of_machines()?);
        let mut tables = match rows {
            Some(ResultRows::Own(rows)) => {
                let named: Vec<_> = machines.iter().map(|(name, sum)| (*name, sum)).collect();
                models::by(rows, &named, &simulated.trace)
            }
            _ if S::IS_PER_PROCESS => {
                let named = simulation.machines.named(example);
                let columns: Vec<usize> = example.iter().map(|model| model.columns().len()).collect();
                let totals = simulated.model.process_totals();
                models::by_process(&named, &process_results(&simulated.processes, &totals, &columns))
            }
            _ => Vec::new(),
        };
        // A calling program gets the summary, too.
        if rows.is_none() || simulation.console.is_program() {
            let index = if S::IS_PER_PROCESS { tables.len() } else { 0 };
            tables.splice(index..index, summary(&machines));
        }
        simulated.write(simulation, tables)
    }
}

impl Simulation<'_> {
    /// Simulates a model of each machine, which `make` makes, and shows the results on each; of all processes, they are sums over
    /// models of each one.
    pub fn with_results<M: InstructionResults + MergeableModel + 'static>(
        &self,
        needs: Needs,
        make: impl Fn() -> Vec<M> + Send + 'static,
        show: impl FnOnce(Simulated<()>, &[SummedOverProcesses<M>]) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        if !self.all_processes || self.machines.names.is_empty() {
            let (simulated, models) = self.run(needs, make())?.take_model();
            return show(simulated, &models.of_machines()?);
        }
        let (mut simulated, models) = self.run(needs, PerProcess::merging(make))?.take_model();
        simulated.notes.push(OWN_PROCESSORS.into());
        show(simulated, &models.of_machines()?)
    }
}

/// The processes in the order of their numbers, with their totals on machines whose results have so many columns.
fn process_results(
    processes: &KnownProcesses,
    totals: &BTreeMap<u32, Vec<u64>>,
    columns: &[usize],
) -> Vec<ProcessResults> {
    let results = |label: ProcessLabel| {
        let mut rest = &totals[&label.process][..];
        let of_machine = |&columns: &usize| {
            let (own, others) = rest.split_at(columns);
            rest = others;
            own.to_vec()
        };
        let totals = columns.iter().map(of_machine).collect();
        ProcessResults { label, totals }
    };
    process_labels(processes, totals).into_iter().map(results).collect()
}

/// The processes that have totals, in the order of their numbers.
fn process_labels(processes: &KnownProcesses, totals: &BTreeMap<u32, Vec<u64>>) -> Vec<ProcessLabel> {
    let mut all: Vec<_> = totals.keys().map(|process| (processes.get(process), *process)).collect();
    all.sort_by_key(|(known, process)| (known.map(|known| known.number.clone()), *process));
    let label = |(known, process): (Option<&process_tree::ObservedProcess>, u32)| ProcessLabel {
        process,
        number: known.map_or_else(|| process.to_string(), |known| known.number.to_string()),
        program_and_end: known.map(|known| [known.program.clone(), process_tree::describe(&known.state)]),
    };
    all.into_iter().map(label).collect()
}
