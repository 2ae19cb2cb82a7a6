//! Tables of models of machines: one driver for all commands that simulate. A command says which models it makes, which rows
//! it shows, and what its summary is.

mod calls;
mod classes;
mod curves;
mod processes;
mod result_rows;
mod row_models;
mod rows;
mod sweep;
mod sweep_file;

use std::process::ExitCode;

use analysis::call_tree::CallRows;
use analysis::models::{InstructionResults, SummedOverProcesses, sampled_by_class, sampled_by_process};
use machine::{MergeableModel, TimingModel};
use table::Table;

pub use self::calls::{CallTreeOutput, CallsRequest, ChainForm, check_chain_output};
use self::classes::RowTable;
pub use self::classes::{ClassPart, write_classes, write_divided};
pub use self::curves::CurvesRequest;
pub use self::result_rows::ResultRows;
use self::row_models::TableContext;
pub use self::row_models::{NOTHING_SIMULATED, sums_of_machines};
pub use self::rows::MachineSums;
use self::rows::{EstimateTables, RowRequest};
pub use self::sweep::{SweepRequest, sweep_cycles, sweep_misses};
use crate::simulation::{Needs, OWN_PROCESSORS, Simulated, Simulation};

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
pub type SummaryTables<'a, M> = &'a dyn Fn(&MachineSums<M>) -> Vec<Table>;

/// The tables of samples.
const ESTIMATES: EstimateTables<TimingModel> =
    EstimateTables { by_class: sampled_by_class, by_process: sampled_by_process };

impl ModelTables<'_> {
    /// Simulates a model of each machine, which `make` makes, and writes the tables. Returns the exit status.
    pub fn write<M: InstructionResults + MergeableModel + 'static>(
        &self,
        make: impl Fn() -> Vec<M> + Send + 'static,
        summary: SummaryTables<M>,
    ) -> anyhow::Result<ExitCode> {
        self.write_rows(RowRequest::new(self.simulation, self.rows, self.calls, true)?, make, summary)
    }

    /// The same of samples.
    pub fn write_sampled(
        &self,
        make: impl Fn() -> Vec<TimingModel> + Send + 'static,
        summary: SummaryTables<TimingModel>,
    ) -> anyhow::Result<ExitCode> {
        let request = RowRequest::new(self.simulation, self.rows, self.calls, false)?;
        self.write_rows(request.estimated(ESTIMATES)?, make, summary)
    }

    fn write_rows<M: InstructionResults + MergeableModel + 'static>(
        &self,
        request: RowRequest<M>,
        make: impl Fn() -> Vec<M> + Send + 'static,
        summary: SummaryTables<M>,
    ) -> anyhow::Result<ExitCode> {
        let &ModelTables { simulation, rows, calls } = self;
        let columns = make().first().map_or(Vec::new(), InstructionResults::columns);
        let is_tree = rows == Some(ResultRows::Calls(CallRows::Tree));
        let chains = calls.chain_form(simulation.console, &columns, is_tree)?;
        let simulated = request.run(|header| request.models(header, make))?;
        let (simulated, mut models) = simulated.take_model();
        models.finish();
        if let Some(classes) = models.classes() {
            simulated.check_classes(simulation, classes)?;
        }
        let names = simulation.machine_names();
        let context = TableContext { request: &request, simulated: &simulated, names: &names };
        if let Some(output) = chains {
            models.write_chains(&context, output)?;
            return simulated.finish(simulation);
        }
        let tables = models.tables(&context)?;
        if tables.iter().any(RowTable::is_divided) {
            return simulated.write_rows(simulation, tables);
        }
        let mut tables: Vec<Table> = tables.into_iter().map(RowTable::whole).collect();
        // A calling program gets the summary, too.
        let has_summary = match rows {
            None => true,
            Some(ResultRows::Own(_)) => simulation.console.is_program() && !request.has_classes,
            Some(ResultRows::Process | ResultRows::Class) => simulation.console.is_program(),
            Some(ResultRows::Calls(_) | ResultRows::Entries(_)) => false,
        };
        if has_summary {
            let is_last = simulation.has_own_processors() && !request.has_classes;
            let index = if is_last { tables.len() } else { 0 };
            let machines: Vec<_> = names.iter().copied().zip(models.of_machines()?).collect();
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
        let (mut simulated, models) = self.run(needs, self.machine_models(make))?.take_model();
        simulated.notes.extend(self.has_own_processors().then(|| OWN_PROCESSORS.into()));
        show(simulated, &sums_of_machines(&models)?)
    }

    /// The names of machines. What happens on no machine has an empty name.
    pub fn machine_names(&self) -> Vec<&str> {
        match &self.machines.names[..] {
            [] => vec![""],
            names => names.iter().map(String::as_str).collect(),
        }
    }
}
