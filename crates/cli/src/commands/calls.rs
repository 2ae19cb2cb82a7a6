//! `pathlength calls`: instructions, loads and stores of calls.

use std::process::ExitCode;

use analysis::call_tree::{CallRows, WithCallTree, call_tables};
use analysis::models::InstructionResults;
use machine::InstructionCounts;
use session::machines::SelectedMachines;
use session::simulation::Needs;
use session::tables::{ModelTables, ResultRows};

use super::count::SUMMARY_FUNCTIONS;
use crate::arguments::CallsOptions;
use crate::console::CommandConsole;

/// Counts calls in the trace or the program, and writes the tables.
pub fn run(options: &CallsOptions) -> anyhow::Result<ExitCode> {
    let (output, calls) = (&options.output, options.calls.request());
    let console = CommandConsole::new(output, Some(&options.rows));
    let simulation = options.input.simulation(&options.classes, SelectedMachines::default(), &console)?;
    let rows = options.by.map(|by| by.results(true));
    let tree = ResultRows::Calls(CallRows::Tree);
    let has_summary = rows.is_none() && !simulation.has_classes();
    output.check(has_summary)?;
    let columns = InstructionCounts::new().columns();
    let form = calls.chain_form(&console, &columns, rows.is_none_or(|rows| rows == tree))?;
    if !has_summary {
        let tables = ModelTables { simulation: &simulation, rows: rows.or(Some(tree)), calls: &calls };
        return tables.write(|| vec![InstructionCounts::new()], &|_| Vec::new());
    }
    let needs = Needs { functions: &calls.selection.functions, ..Needs::default() };
    let simulated = simulation.run(needs, WithCallTree::new(InstructionCounts::new()))?;
    if let Some(output) = form {
        calls.write_chains(&simulated, &simulated.model.model, output)?;
        return simulated.finish(&simulation);
    }
    calls.selection.check(simulated.model.tree())?;
    let tables =
        |rows| call_tables(rows, &calls.selection, &simulated.model, &[("", &simulated.model.model)]);
    let mut functions = tables(CallRows::Function);
    let sorted = options.rows.sort(&mut functions);
    for table in &mut functions {
        let usual = output.summary_rows(SUMMARY_FUNCTIONS);
        options.rows.shorten(table, usual, "--by function shows all functions");
    }
    let tables = functions.into_iter().chain(tables(CallRows::Tree)).collect();
    simulated.write_as_they_are(simulation.console, tables)?;
    sorted?;
    simulated.finish(&simulation)
}
