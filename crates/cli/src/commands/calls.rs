//! `pathlength calls`: instructions, loads and stores of calls. The costs of calls for other models.

use std::process::ExitCode;

use analysis::call_tree::{CallRows, WithCallTree, call_tables};
use analysis::models::{self, InstructionResults};
use analysis::table::Table;
use machine::{InstructionCounts, Machine, Model};

use super::count::shortened;
use super::simulate;
use crate::arguments::{CallOptions, CallsOptions, OutputOptions, ResultRows, SimulationOptions};

/// Counts calls in the trace or the program, and writes the tables.
pub fn run(options: &CallsOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    report::check(options.by.is_none(), output.format, output.path.as_deref())?;
    let rows = options.by.map(|by| by.results(true));
    let counts = InstructionCounts::new(&isa::Alpha);
    if let Some(ResultRows::Own(own)) = rows {
        let simulated = simulate::simulate(&options.input, rows, &[], counts)?;
        let tables = models::by(own, &[("", &simulated.model)], &simulated.trace);
        simulated.write(tables, output)?;
        return simulated.finish(&options.input);
    }
    let model = WithCallTree::new(counts, &isa::Alpha);
    let simulated = simulate::simulate(&options.input, rows, &[], model)?;
    let selection = options.calls.selection();
    let tables = |rows| call_tables(rows, &selection, &simulated.model, &[("", &simulated.model.model)]);
    let tables: Vec<Table> = match rows {
        Some(ResultRows::Calls(rows)) => tables(rows),
        _ => tables(CallRows::Function).into_iter().map(shortened).chain(tables(CallRows::Tree)).collect(),
    };
    simulated.write(tables, output)?;
    simulated.finish(&options.input)
}

/// Simulates models of machines with the call tree, and writes one table for each machine.
pub fn simulate<M: InstructionResults + Model + 'static>(
    input: &SimulationOptions,
    rows: CallRows,
    options: &CallOptions,
    output: &OutputOptions,
    names: &[String],
    machines: &[Machine],
    models: Vec<M>,
) -> anyhow::Result<ExitCode> {
    let model = WithCallTree::new(models, &isa::Alpha);
    let simulated = simulate::simulate(input, Some(ResultRows::Calls(rows)), machines, model)?;
    let named: Vec<_> = names.iter().map(String::as_str).zip(&simulated.model.model).collect();
    let tables = call_tables(rows, &options.selection(), &simulated.model, &named);
    simulated.write(tables, output)?;
    simulated.finish(input)
}
