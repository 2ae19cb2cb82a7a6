//! `pathlength units`: the distribution of what calls of a function cost.

use std::path::Path;
use std::process::ExitCode;

use analysis::call_tree::find_event;
use analysis::distribution::{DistributionRequest, distribution_tables};
use analysis::models::{InstructionResults, Rows};
use analysis::table::{Table, Value, separated};
use analysis::unit_blocks::{ComparedUnits, WithUnitBlocks, difference_tables};
use anyhow::bail;
use machine::{Caches, InstructionCounts, Model, TimingModel};
use report::{Arrangement, Block, Figure, Format, Page, Section};
use trace::Trace;

use super::selected_machines::SelectedMachines;
use super::simulate::{Simulated, simulate};
use crate::arguments::{ResultRows, RowOptions, UnitsOptions};

/// Runs the program, or reads the trace, and writes the tables.
pub fn run(options: &UnitsOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(true)?;
    if options.input.plan.unit.is_empty() && !Trace::is_trace(options.input.file.path()) {
        bail!("name the function whose calls are the units of work with --unit FUNCTION");
    }
    let machine = |name| SelectedMachines::find_one(name, &options.settings);
    let (caches, time) = (machine(&options.caches)?, machine(&options.time)?);
    match (&caches.machines[..], &time.machines[..]) {
        ([machine], _) => show(options, &caches, Caches::new(machine)),
        (_, [machine]) => show(options, &time, TimingModel::new(machine)?),
        _ => {
            let counts = InstructionCounts::new();
            match options.compared() {
                Some(compared) => explain(options, compared, counts),
                None => show(options, &SelectedMachines::default(), counts),
            }
        }
    }
}

fn show<M: InstructionResults + Model + 'static>(
    options: &UnitsOptions,
    selected: &SelectedMachines,
    model: M,
) -> anyhow::Result<ExitCode> {
    find_event(&model.columns(), options.event.as_deref())?;
    let mut simulated = simulate(&options.input, &options.output, UNITS, &[], selected, model)?;
    // It says how caches begin.
    simulated.part = simulated.part.filter(|_| !selected.machines.is_empty());
    let tables = distribution(options, &simulated, &simulated.model)?;
    write(options, &simulated, tables)
}

/// Shows what one call executed that another did not, below the distribution.
fn explain(
    options: &UnitsOptions,
    compared: ComparedUnits,
    counts: InstructionCounts,
) -> anyhow::Result<ExitCode> {
    find_event(&InstructionResults::columns(&counts), options.event.as_deref())?;
    let model = WithUnitBlocks::new(counts, compared.numbers());
    let mut simulated =
        simulate(&options.input, &options.output, UNITS, &[], &SelectedMachines::default(), model)?;
    simulated.part = None;
    let mut tables = distribution(options, &simulated, &simulated.model.model)?;
    tables.extend(difference_tables(compared, simulated.model.kept(), &simulated.trace)?);
    write(options, &simulated, tables)
}

/// What the rows of the results must be, for units to be required.
const UNITS: Option<ResultRows> = Some(ResultRows::Own(Rows::Unit));

fn distribution<M, R: InstructionResults>(
    options: &UnitsOptions,
    simulated: &Simulated<M>,
    results: &R,
) -> anyhow::Result<Vec<Table>> {
    let has_bars = options.output.page().is_none()
        && matches!(options.output.format(), Format::Table | Format::Markdown);
    let request = DistributionRequest { event: options.event.clone(), has_bars };
    match distribution_tables(results, &simulated.trace, &request)? {
        Some(tables) => Ok(tables),
        None => {
            // How the program ended may say why.
            simulated.finish(&options.input)?;
            bail!("no call of {} ended by its return", unit(simulated))
        }
    }
}

fn write<M>(
    options: &UnitsOptions,
    simulated: &Simulated<M>,
    tables: Vec<Table>,
) -> anyhow::Result<ExitCode> {
    match options.output.page() {
        Some(path) => write_page(simulated, tables, path)?,
        None => simulated.write(tables, &RowOptions::default(), &options.output)?,
    }
    simulated.finish(&options.input)
}

/// The function whose calls are the units of work.
fn unit<M>(simulated: &Simulated<M>) -> &str {
    simulated.trace.header().unit.as_deref().unwrap_or_default()
}

/// A page with the histogram as a chart.
fn write_page<M>(simulated: &Simulated<M>, tables: Vec<Table>, path: &Path) -> anyhow::Result<()> {
    let mut chart = None;
    if let Some(table) = tables.iter().find(|table| table.name == "histogram") {
        chart = Some(report::bars(table, "from", &["calls"], Arrangement::Grouped)?);
    }
    let figures = tables.first().map_or(Vec::new(), figures);
    let section = |table: Table| Section { heading: table.title.clone(), blocks: vec![Block::Table(table)] };
    let page = Page {
        title: "Units of work".into(),
        headline: format!("What one call of {} costs", unit(simulated)),
        figures,
        chart,
        sections: tables.into_iter().map(section).collect(),
        provenance: simulated.provenance(),
        ..Page::default()
    };
    simulated.protect();
    Ok(report::write_file(path, |out| page.write(out))?)
}

/// The median, the 99th percentile and the maximum of the first event.
fn figures(distribution: &Table) -> Vec<Figure> {
    let Some(row) = distribution.rows.first() else { return Vec::new() };
    let Value::Text(event) = &row[0] else { return Vec::new() };
    let cells = distribution.columns.iter().zip(row);
    let shown = cells.filter(|(column, _)| ["p50", "p99", "maximum"].contains(&column.name.as_str()));
    let figure = |(column, value): (&analysis::table::Column, &Value)| match value {
        Value::Integer(number) => {
            Some(Figure { value: separated(&number.to_string()), label: format!("{event}, {}", column.name) })
        }
        _ => None,
    };
    shown.filter_map(figure).collect()
}
