//! The shared part of `caches` and `time`: machines, the execution, rows of tables.

use analysis::call_tree::CallRows;
use machine::Machine;
use session::machines::SelectedMachines;
use session::simulation::Simulation;
use session::tables::{CallsRequest, ModelTables, ResultRows, SweepRequest, check_chain_output};

use crate::arguments::ModelOptions;
use crate::console::CommandConsole;

/// A command that writes tables of models of machines.
pub struct ModelCommand<'a> {
    options: &'a ModelOptions,
    rows: Option<ResultRows>,
    calls: CallsRequest,
    machines: SelectedMachines,
}

impl<'a> ModelCommand<'a> {
    /// With the machines that the options name.
    pub fn new(options: &'a ModelOptions) -> anyhow::Result<ModelCommand<'a>> {
        let machines = SelectedMachines::find(&options.machines, &options.settings.settings)?;
        Ok(ModelCommand { options, rows: options.result_rows()?, calls: options.calls.request(), machines })
    }

    /// Where tables go.
    pub fn console(&self) -> CommandConsole<'a> {
        self.options.results.console()
    }

    /// The execution.
    pub fn simulation<'c>(&self, console: &'c CommandConsole<'c>) -> anyhow::Result<Simulation<'c>> {
        self.options.results.simulation(self.machines.clone(), console)
    }

    /// The sweep, if there is one.
    pub fn sweep<'s>(&'s self, simulation: &'s Simulation<'s>) -> Option<SweepRequest<'s>> {
        let settings = &self.options.settings;
        let request = || SweepRequest {
            tables: self.tables(simulation),
            settings: &settings.settings,
            sweeps: &settings.sweeps,
            resume: settings.resume.as_deref(),
        };
        (!settings.sweeps.is_empty()).then(request)
    }

    /// Whether the tables can be written. `is_long` says whether a summary has several.
    pub fn check_output(&self, simulation: &Simulation, is_long: bool) -> anyhow::Result<()> {
        let several = if self.rows.is_some() { simulation.machines.names.len() > 1 } else { is_long };
        let is_tree = self.rows == Some(ResultRows::Calls(CallRows::Tree));
        check_chain_output(simulation.console, several, is_tree)
    }

    /// The tables.
    pub fn tables<'s>(&'s self, simulation: &'s Simulation<'s>) -> ModelTables<'s> {
        ModelTables { simulation, rows: self.rows, calls: &self.calls }
    }
}

/// Makes a model for each machine.
pub fn models_of<M>(
    machines: &SelectedMachines,
    new: impl Fn(&Machine) -> M + Clone + Send + 'static,
) -> impl Fn() -> Vec<M> + Clone + Send + 'static {
    let machines = machines.machines.clone();
    move || machines.iter().map(&new).collect()
}
