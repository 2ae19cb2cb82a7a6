//! `pathlength calls`: instructions, loads and stores of calls.

use std::process::ExitCode;

use analysis::call_tree::{CallRows, WithCallTree, call_tables};
use analysis::models::InstructionResults;
use machine::InstructionCounts;
use session::console::SUMMARY_FUNCTIONS;
use session::machines::SelectedMachines;
use session::simulation::Needs;
use session::tables::{ModelTables, ResultRows, check_chain_output};

use crate::arguments::CallsOptions;

/// Counts calls in the trace or the program, and writes the tables.
pub fn run(options: &CallsOptions) -> anyhow::Result<ExitCode> {
    let calls = options.calls.request();
    let console = options.results.console();
    let simulation = options.results.simulation(SelectedMachines::default(), &console)?;
    let rows = options.by.map(|by| by.results(true));
    let tree = ResultRows::Calls(CallRows::Tree);
    let has_summary = rows.is_none() && !simulation.has_classes();
    let is_tree = rows.is_none_or(|rows| rows == tree);
    check_chain_output(&console, has_summary, is_tree)?;
    let columns = InstructionCounts::new().columns();
    let form = calls.chain_form(&console, &columns, is_tree)?;
    if !has_summary {
        let tables = ModelTables { simulation: &simulation, rows: rows.or(Some(tree)), calls: &calls };
        return tables.write(|| vec![InstructionCounts::new()], &|_| Vec::new());
    }
    let needs = Needs { functions: &calls.selection.functions, ..Needs::default() };
    let simulated = simulation.run(needs, WithCallTree::new(InstructionCounts::new()))?;
    if let Some(output) = form {
        calls.write_chains(&simulated, &simulated.model, &simulated.model.model, output)?;
        return simulated.finish(&simulation);
    }
    calls.selection.check(simulated.model.tree())?;
    let tables =
        |rows| call_tables(rows, &calls.selection, &simulated.model, &[("", &simulated.model.model)]);
    let tables = tables(CallRows::Function).into_iter().chain(tables(CallRows::Tree)).collect();
    let functions = (0, SUMMARY_FUNCTIONS, "--by function shows all functions");
    simulated.write_summary(&simulation, tables, functions)
}
