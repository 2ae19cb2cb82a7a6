//! `pathlength units`: the distribution of what calls of a function cost.

use std::process::ExitCode;

use analysis::call_tree::find_event;
use analysis::distribution::{DistributionRequest, distribution_tables};
use analysis::models::InstructionResults;
use analysis::unit_blocks::{ComparedUnits, WithUnitBlocks, difference_tables};
use anyhow::bail;
use machine::{Caches, InstructionCounts, MergeableModel};
use report::{Arrangement, Page, PageBlock, PageFigure, PageSection};
use session::console::check_output;
use session::machines::timing_models;
use session::simulation::{Needs, Simulated, Simulation};
use table::{Table, Value, separated};

use super::models::models_of;
use crate::arguments::{ClassOptions, MeasuredEvent, UnitsOptions};
use crate::console::CommandConsole;

/// Units are needed.
const NEEDS: Needs = Needs { units: true, functions: &[], classes: false };

/// Runs the program, or reads the trace, and writes the tables.
pub fn run(options: &UnitsOptions) -> anyhow::Result<ExitCode> {
    let console = CommandConsole::new(&options.output);
    check_output(&console, true)?;
    let (event, machines) = options.events.selected()?;
    let simulation = &options.input.simulation(&ClassOptions::default(), machines, &console)?;
    if simulation.part.planned.unit.is_empty() && !simulation.input.is_trace() {
        bail!("name the function whose calls are the units of work with --unit FUNCTION");
    }
    match (event, options.compared()) {
        (MeasuredEvent::Instructions, Some(compared)) => explain(options, simulation, compared),
        (_, Some(_)) => {
            bail!("--slowest, --unit-number and --reference compare instructions: leave out --event")
        }
        (MeasuredEvent::Instructions, None) => show(options, simulation, || vec![InstructionCounts::new()]),
        (MeasuredEvent::Misses, None) => {
            show(options, simulation, models_of(&simulation.machines, Caches::new))
        }
        (MeasuredEvent::Cycles, None) => {
            show(options, simulation, timing_models(&simulation.machines.machines, None)?)
        }
    }
}

fn show<M: InstructionResults + MergeableModel + 'static>(
    options: &UnitsOptions,
    simulation: &Simulation,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    find_event(&make()[0].columns(), options.chart.as_deref())?;
    simulation.with_results(NEEDS, make, |mut simulated, results| {
        // It says how caches begin.
        simulated.part = simulated.part.filter(|_| !simulation.machines.machines.is_empty());
        let tables = distribution(options, simulation, &simulated, &results[0])?;
        write(simulation, &simulated, tables)
    })
}

/// Shows what one call executed that another did not, below the distribution.
fn explain(
    options: &UnitsOptions,
    simulation: &Simulation,
    compared: ComparedUnits,
) -> anyhow::Result<ExitCode> {
    let counts = InstructionCounts::new();
    find_event(&InstructionResults::columns(&counts), options.chart.as_deref())?;
    let mut simulated = simulation.run(NEEDS, WithUnitBlocks::new(counts, compared.numbers()))?;
    simulated.part = None;
    let mut tables = distribution(options, simulation, &simulated, &simulated.model.model)?;
    tables.extend(difference_tables(compared, simulated.model.kept(), &simulated.trace)?);
    write(simulation, &simulated, tables)
}

fn distribution<M, R: InstructionResults>(
    options: &UnitsOptions,
    simulation: &Simulation,
    simulated: &Simulated<M>,
    results: &R,
) -> anyhow::Result<Vec<Table>> {
    let request =
        DistributionRequest { event: options.chart.clone(), has_bars: simulation.console.is_for_people() };
    match distribution_tables(results, &simulated.trace, &request)? {
        Some(tables) => Ok(tables),
        None => {
            // How the program ended may say why.
            simulated.finish(simulation)?;
            bail!("no call of {} ended by its return", unit(simulated))
        }
    }
}

fn write<M>(
    simulation: &Simulation,
    simulated: &Simulated<M>,
    tables: Vec<Table>,
) -> anyhow::Result<ExitCode> {
    match simulation.console.page() {
        Some(path) => simulated.write_page(simulation, page(unit(simulated), tables)?, path),
        None => simulated.write(simulation, tables),
    }
}

/// The function whose calls are the units of work.
fn unit<M>(simulated: &Simulated<M>) -> &str {
    simulated.trace.header().unit.as_deref().unwrap_or_default()
}

/// A page with the histogram as a chart.
fn page(unit: &str, tables: Vec<Table>) -> Result<Page, report::Error> {
    let mut chart = None;
    if let Some(table) = tables.iter().find(|table| table.name == "histogram") {
        chart = Some(report::bars(table, "from", &["calls"], Arrangement::Grouped)?);
    }
    let figures = tables.first().map_or(Vec::new(), figures);
    let section =
        |table: Table| PageSection { heading: table.title.clone(), blocks: vec![PageBlock::Table(table)] };
    Ok(Page {
        title: "Units of work".into(),
        headline: format!("What one call of {unit} costs"),
        figures,
        chart,
        sections: tables.into_iter().map(section).collect(),
        ..Page::default()
    })
}

/// The median, the 99th percentile and the maximum of the first event.
fn figures(distribution: &Table) -> Vec<PageFigure> {
    let Some(row) = distribution.rows.first() else { return Vec::new() };
    let Value::Text(event) = &row[0] else { return Vec::new() };
    let cells = distribution.columns.iter().zip(row);
    let shown = cells.filter(|(column, _)| ["p50", "p99", "maximum"].contains(&column.name.as_str()));
    let figure = |(column, value): (&table::Column, &Value)| match value {
        Value::Integer(number) => Some(PageFigure {
            value: separated(&number.to_string()),
            label: format!("{event}, {}", column.name),
        }),
        _ => None,
    };
    shown.filter_map(figure).collect()
}
