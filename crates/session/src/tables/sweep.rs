//! Sweeps: misses or cycles of machines that differ in one or two fields, of one execution.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use analysis::models::{
    self, InstructionResults, SummedOverProcesses, SweptCycles, SweptMisses, cross_table, main_causes,
    swept_cycles, swept_misses, swept_rows, varying_columns,
};
use anyhow::{Context, bail};
use machine::{Caches, Machine, MachineSetting, MergeableModel, ParallelModels, Sweep, TimingModel};
use report::{Arrangement, Chart, Page, PageBlock, PageSection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use table::Table;
use trace::Trace;

use super::classes::RowTable;
use super::row_models::{NOTHING_SIMULATED, RowModels, TableContext};
use super::rows::RowRequest;
use super::sweep_file::SweepFile;
use super::{ESTIMATES, ModelTables, ResultRows};
use crate::console::check_output;
use crate::machines::{SelectedMachines, timing_model};
use crate::simulation::{KnownProcesses, OWN_PROCESSORS, Simulated, Simulation};

/// The most configurations of a sweep.
const MOST: usize = 256;
/// The most series of a chart: more colours cannot be distinguished.
const SERIES: usize = 12;

/// What is swept.
pub struct SweepRequest<'a> {
    /// The execution, the machine, the rows of each configuration, and the calls whose costs are shown; without rows, one of its own.
    pub tables: ModelTables<'a>,
    /// The changes of the machine.
    pub settings: &'a [MachineSetting],
    /// The fields that are swept, with their values.
    pub sweeps: &'a [Sweep],
    /// The file that keeps the results.
    pub resume: Option<&'a Path>,
}

/// A machine with the values of the fields that are swept.
struct SweptMachine {
    values: Vec<String>,
    machine: Machine,
}

/// Simulates the caches of each configuration, and writes a table or charts of misses; with their classes if those are asked for.
pub fn sweep_misses(request: &SweepRequest, is_classified: bool) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    let make = if is_classified { Caches::classified } else { Caches::new };
    let rows = request.rows()?;
    if rows.rows.is_some() || rows.has_classes {
        return sweep_rows(request, &rows, &configurations, make);
    }
    let fields = fields(request);
    if is_classified {
        let structures = |_: &Simulated<()>, _: &SweptMachine, models: &dyn RowModels<Caches>| {
            Ok(RowTable::Whole(models::structures_without_name(&only(models)?, true)))
        };
        let (simulated, tables) = run(request, &rows, &configurations, make, structures)?;
        let table = request.table_of_rows(&configurations, tables)?;
        return write(request, &simulated, &table, || request.lines(&table, &["misses"]));
    }
    let (simulated, swept) =
        run(request, &rows, &configurations, make, |_, _, models| Ok(SweptMisses::from(&only(models)?)))?;
    let swept: Vec<_> = configurations.iter().map(|one| one.values.clone()).zip(&swept).collect();
    let table = request.arranged(swept_misses(&fields, &swept))?;
    let columns = varying_columns(&table, fields.len());
    let charts = || match fields.len() {
        1 => Ok(vec![report::lines(&table, &fields[0], &columns, "misses")?]),
        _ => crossed(&table, &columns),
    };
    write(request, &simulated, &table, charts)
}

/// Simulates the pipeline of each configuration, of a sample with windows of a period if one is given, and writes a table or charts of
/// cycles.
pub fn sweep_cycles(request: &SweepRequest, period: Option<u64>) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    // Machines without a pipeline are reported before the program runs.
    configurations.iter().try_for_each(|one| timing_model(&one.machine, period).map(drop))?;
    let make = move |machine: &Machine| timing_model(machine, period).expect("it was possible before");
    let rows = match period {
        Some(_) => request.rows()?.estimated(ESTIMATES)?,
        None => request.rows()?,
    };
    if rows.rows.is_some() || rows.has_classes {
        return sweep_rows(request, &rows, &configurations, make);
    }
    let fields = fields(request);
    if period.is_some() {
        let summary = |_: &Simulated<()>, one: &SweptMachine, models: &dyn RowModels<TimingModel>| {
            Ok(RowTable::Whole(models::time_without_name(&one.machine, only(models)?)))
        };
        let (simulated, tables) = run(request, &rows, &configurations, make, summary)?;
        let table = request.arranged(request.table_of_rows(&configurations, tables)?)?;
        return write(request, &simulated, &table, || estimates(&fields, &table));
    }
    let (simulated, swept) =
        run(request, &rows, &configurations, make, |_, _, models| Ok(SweptCycles::from(&only(models)?)))?;
    let swept = configurations.iter().zip(&swept);
    let swept: Vec<_> = swept.map(|(one, swept)| (one.values.clone(), &one.machine, swept)).collect();
    let table = request.arranged(swept_cycles(&fields, &swept))?;
    let charts = || match fields.len() {
        1 => {
            let causes = main_causes(&table, SERIES);
            let names: Vec<&str> = causes.columns[1..].iter().map(|column| column.name.as_str()).collect();
            Ok(vec![report::bars(&causes, &fields[0], &names, Arrangement::Stacked)?])
        }
        _ => crossed(&table, &["cycles"]),
    };
    write(request, &simulated, &table, charts)
}

/// The results on the one machine of a configuration.
fn only<M>(models: &dyn RowModels<M>) -> anyhow::Result<SummedOverProcesses<'_, M>> {
    models.of_machines()?.into_iter().next().context(NOTHING_SIMULATED)
}

/// The column of a swept sample that is drawn.
const ESTIMATE: &str = "cycles per instruction";

/// The chart of a swept sample.
fn estimates(fields: &[String], table: &Table) -> Result<Vec<Chart>, report::Error> {
    match fields {
        [field] => Ok(vec![report::lines(table, field, &[ESTIMATE], ESTIMATE)?]),
        _ => crossed(table, &[ESTIMATE]),
    }
}

/// Simulates a model of each configuration, and writes one table with the rows of each, behind the values of its fields.
fn sweep_rows<M: InstructionResults + MergeableModel + 'static>(
    request: &SweepRequest,
    rows: &RowRequest<M>,
    configurations: &[SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let table_of = |simulated: &Simulated<()>, _: &SweptMachine, models: &dyn RowModels<M>| {
        let context = TableContext { request: rows, simulated, names: &[""] };
        models.tables(&context)?.into_iter().next().context(NOTHING_SIMULATED)
    };
    let (simulated, tables) = run(request, rows, configurations, make, table_of)?;
    let table = request.table_of_rows(configurations, tables)?;
    // A line for each class or process.
    let has_lines = matches!(rows.rows, None | Some(ResultRows::Class | ResultRows::Process));
    let columns = match rows.estimates {
        Some(_) => vec![ESTIMATE],
        None => varying_columns(&table, 1),
    };
    let charts = || if has_lines { request.lines(&table, &columns) } else { Ok(Vec::new()) };
    write(request, &simulated, &table, charts)
}

impl SweepRequest<'_> {
    /// The rows of each configuration. A summary has one, or a row for each class if classes are asked for.
    fn rows<M: InstructionResults + MergeableModel + 'static>(&self) -> anyhow::Result<RowRequest<'_, M>> {
        let ModelTables { simulation, rows, calls } = self.tables;
        calls.chain_form(simulation.console, &[], false)?;
        RowRequest::new(simulation, rows, calls, false)
    }

    /// Charts of columns of a table with several rows for each value of the field: a line for each of these.
    fn lines(&self, table: &Table, columns: &[&str]) -> Result<Vec<Chart>, report::Error> {
        if self.sweeps.len() == 1 { crossed(table, columns) } else { Ok(Vec::new()) }
    }

    /// A table with a row for each configuration, sorted and shortened.
    fn arranged(&self, table: Table) -> anyhow::Result<Table> {
        RowTable::Whole(table).arranged(self.tables.simulation.console)
    }

    /// One table of the tables of all configurations, each with its first rows.
    fn table_of_rows(&self, configurations: &[SweptMachine], tables: Vec<RowTable>) -> anyhow::Result<Table> {
        let tables = tables.into_iter().map(|table| table.arranged(self.tables.simulation.console));
        let values = configurations.iter().map(|one| one.values.clone());
        Ok(swept_rows(&fields(self), values.zip(tables.collect::<anyhow::Result<Vec<_>>>()?).collect()))
    }
}

/// Each combination of the values.
fn configurations(request: &SweepRequest) -> anyhow::Result<Vec<SweptMachine>> {
    let &SweepRequest { tables: ModelTables { simulation, .. }, sweeps, .. } = request;
    let names = &simulation.machines.names;
    let ([_], 1..=2) = (&names[..], sweeps.len()) else {
        bail!(
            "a sweep is of one machine, and of one or two fields: give --machine once, --sweep once or twice"
        );
    };
    if let [first, second] = sweeps
        && first.field() == second.field()
    {
        bail!("--sweep {} is given twice: give all values at once", first.field());
    }
    check_output(simulation.console, false)?;
    let mut combinations: Vec<Vec<MachineSetting>> = vec![Vec::new()];
    for sweep in sweeps {
        let with = |before: &[MachineSetting], setting: &MachineSetting| {
            [before, std::slice::from_ref(setting)].concat()
        };
        let next =
            combinations.iter().flat_map(|before| sweep.settings().iter().map(move |one| with(before, one)));
        combinations = next.collect();
    }
    if combinations.len() > MOST {
        bail!("{} configurations are more than {MOST}: give fewer values", combinations.len());
    }
    let configuration = |swept: Vec<MachineSetting>| {
        let settings = [request.settings, &swept].concat();
        let selected = SelectedMachines::find(names, &settings)?;
        let values = swept.iter().map(|setting| setting.text().to_string()).collect();
        let machine = selected.machines.into_iter().next().expect("one was named");
        Ok(SweptMachine { values, machine })
    };
    combinations.into_iter().map(configuration).collect()
}

/// The fields that differ.
fn fields(request: &SweepRequest) -> Vec<String> {
    request.sweeps.iter().map(machine::Sweep::field).collect()
}

/// Simulates a model of each configuration, and makes the results that are kept of it; those that a file has are not made again.
fn run<M: InstructionResults + MergeableModel + 'static, R: Serialize + DeserializeOwned>(
    request: &SweepRequest,
    rows: &RowRequest<M>,
    configurations: &[SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
    result: impl Fn(&Simulated<()>, &SweptMachine, &dyn RowModels<M>) -> anyhow::Result<R>,
) -> anyhow::Result<(Simulated<()>, Vec<R>)> {
    let results = |some: &[&SweptMachine]| -> anyhow::Result<(Simulated<()>, Vec<R>)> {
        let (simulated, models) = run_together(rows, some, make)?;
        let results = some.iter().zip(models).map(|(one, models)| result(&simulated, one, &*models));
        let results = results.collect::<anyhow::Result<_>>()?;
        Ok((simulated, results))
    };
    let Some(path) = request.resume else {
        return results(&configurations.iter().collect::<Vec<_>>());
    };
    let input = &rows.simulation.input;
    if !input.is_trace() {
        bail!("--resume needs a trace: record {input} with pathlength trace -o FILE");
    }
    let mut file = SweepFile::<R>::open(path, &description::<R>(request)?)?;
    let described = |one: &SweptMachine| format!("{:?}", one.machine);
    let mut kept: Vec<Option<R>> = configurations.iter().map(|one| file.take(&described(one))).collect();
    let missing: Vec<usize> = (0..kept.len()).filter(|&number| kept[number].is_none()).collect();
    let mut last = None;
    for group in missing.chunks(group_size()) {
        if io::stderr().is_terminal() {
            let done = kept.iter().flatten().count();
            text::message!("{done} of {} configurations are done", kept.len());
        }
        let some: Vec<&SweptMachine> = group.iter().map(|&number| &configurations[number]).collect();
        let (simulated, results) = results(&some)?;
        for ((&number, one), result) in group.iter().zip(some).zip(results) {
            // Of a damaged trace nothing is kept.
            if simulated.is_whole {
                file.add(&described(one), &result)?;
            }
            kept[number] = Some(result);
        }
        last = Some(simulated);
    }
    let simulated = last.map_or_else(|| replayed_before(request), Ok)?;
    Ok((simulated, kept.into_iter().flatten().collect()))
}

/// SweptMachines that are simulated together, and whose results are lost together if the sweep is interrupted.
fn group_size() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// What tells a sweep from others: the trace, its part, and what is kept.
fn description<R>(request: &SweepRequest) -> anyhow::Result<String> {
    let ModelTables { simulation, rows, calls } = request.tables;
    let Simulation { input, part, all_processes, .. } = simulation;
    let file = fs::metadata(input.path().unwrap_or("".as_ref())).with_context(|| input.to_string())?;
    Ok(format!(
        "{input} {:?} {} {:?} {part:?} {all_processes} {rows:?} {:?}",
        file.modified().ok(),
        file.len(),
        std::any::type_name::<R>(),
        calls.selection,
    ))
}

/// The sweep of a trace of which all results are kept.
fn replayed_before(request: &SweepRequest) -> anyhow::Result<Simulated<()>> {
    let simulation = request.tables.simulation;
    let trace = Trace::open(simulation.input.path().unwrap_or("".as_ref()))?;
    let part = simulation.note(&trace);
    let notes = simulation.all_processes.then(|| OWN_PROCESSORS.into()).into_iter().collect();
    let processes = KnownProcesses::new();
    Ok(Simulated { model: (), trace, part, notes, processes, ending: None, is_whole: true })
}

/// The models of configurations.
type SweptModels<M> = Vec<Box<dyn RowModels<M>>>;

/// Simulates models of each of these configurations, all on the same execution.
fn run_together<M: InstructionResults + MergeableModel + 'static>(
    rows: &RowRequest<M>,
    configurations: &[&SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<(Simulated<()>, SweptModels<M>)> {
    let machines: Vec<Machine> = configurations.iter().map(|one| one.machine.clone()).collect();
    let selected = rows.simulation.machines.with_machines(machines.clone());
    let simulation = Simulation { machines: selected, ..rows.simulation.clone() };
    let simulated = rows.run_on(&simulation, |header| {
        let models = machines.into_iter().map(|machine| rows.models(header, move || vec![make(&machine)]));
        ParallelModels::new(models.collect())
    })?;
    let (simulated, models) = simulated.take_model();
    let mut models = models.into_models();
    models.iter_mut().for_each(|models| models.finish());
    if let Some(classes) = models.first().and_then(|models| models.classes()) {
        simulated.check_classes(&simulation, classes)?;
    }
    Ok((simulated, models))
}

/// A chart for each column: the first field along the axis, a line for each value of the second one.
fn crossed(table: &Table, columns: &[&str]) -> Result<Vec<Chart>, report::Error> {
    let tables = columns.iter().filter_map(|column| cross_table(table, column));
    let chart = |cross: Table| {
        let series: Vec<&str> = cross.columns[1..].iter().map(|column| column.name.as_str()).collect();
        report::lines(&cross, &cross.columns[0].name, &series[..series.len().min(SERIES)], &cross.title)
    };
    tables.map(chart).collect()
}

fn write(
    request: &SweepRequest,
    simulated: &Simulated<()>,
    table: &Table,
    charts: impl FnOnce() -> Result<Vec<Chart>, report::Error>,
) -> anyhow::Result<ExitCode> {
    match request.tables.simulation.console.page() {
        Some(path) => {
            let charts = charts()?.into_iter().map(PageBlock::Chart);
            let section = PageSection {
                heading: table.title.clone(),
                blocks: charts.chain([PageBlock::Table(table.clone())]).collect(),
            };
            let page = Page {
                title: "Sweep".into(),
                headline: format!("What {} changes", fields(request).join(" and ")),
                sections: vec![section],
                ..Page::default()
            };
            simulated.write_page(request.tables.simulation, page, path)
        }
        None => {
            simulated.write_as_they_are(request.tables.simulation.console, vec![table.clone()])?;
            simulated.finish(request.tables.simulation)
        }
    }
}
