//! Sweeps: misses or cycles of machines that differ in one or two fields, of one execution.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use analysis::models::{
    self, InstructionResults, OwnRows, SummedOverProcesses, SweptCycles, SweptMisses, UnitClasses,
    WithClasses, by_class, cross_table, main_causes, sampled_by_class, sampled_by_process, swept_cycles,
    swept_misses, swept_rows, units_of_classes, varying_columns,
};
use anyhow::{Context, bail};
use machine::{
    Caches, Machine, MachineSetting, MergeableModel, ParallelModels, PerProcess, Sweep, TimingModel,
};
use report::{Arrangement, Chart, Page, PageBlock, PageSection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use table::Table;
use trace::Trace;

use super::sampled::SAMPLED_ROWS;
use super::sweep_file::SweepFile;
use super::{CLASS_ROWS, NOTHING_SIMULATED, ONE_PROCESS, ResultRows, process_labels, process_results};
use crate::console::check_output;
use crate::machines::{SelectedMachines, timing_model};
use crate::simulation::{KnownProcesses, Needs, OWN_PROCESSORS, Simulated, Simulation};

/// The most configurations of a sweep.
const MOST: usize = 256;
/// The most series of a chart: more colours cannot be distinguished.
const SERIES: usize = 12;

/// What is swept.
pub struct SweepRequest<'a> {
    /// The execution, and the machine.
    pub simulation: &'a Simulation<'a>,
    /// The rows of each configuration; without, one of its own.
    pub rows: Option<ResultRows>,
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

/// The run of a configuration, without its models, and the classes of its units of work.
type SweptRun = (Simulated<()>, UnitClasses);

/// Simulates the caches of each configuration, and writes a table or charts of misses.
pub fn sweep_misses(request: &SweepRequest) -> anyhow::Result<ExitCode> {
    if let Some(rows) = request.result_rows()? {
        return sweep_rows(request, rows, Caches::new);
    }
    let configurations = configurations(request)?;
    let (simulated, swept) = run(request, &configurations, Caches::new, merged::<_, SweptMisses>)?;
    let rows: Vec<_> = configurations.iter().map(|one| one.values.clone()).zip(&swept).collect();
    let fields = fields(request);
    let table = swept_misses(&fields, &rows);
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
    match request.result_rows()? {
        Some(rows) if period.is_none() => return sweep_rows(request, rows, make),
        Some(ResultRows::Class | ResultRows::Process) => return sweep_estimates(request, make),
        Some(_) => bail!(SAMPLED_ROWS),
        None => {}
    }
    let fields = fields(request);
    if period.is_some() {
        let summary = |_: &SweptRun, one: &SweptMachine, models: PerProcess<TimingModel>| {
            Ok(models::time_without_name(&one.machine, sum(&models)?))
        };
        let (simulated, tables) = run(request, &configurations, make, summary)?;
        let table = request.table_of_rows(&configurations, tables)?;
        return write(request, &simulated, &table, || estimates(&fields, &table));
    }
    let (simulated, swept) = run(request, &configurations, make, merged::<_, SweptCycles>)?;
    let rows = configurations.iter().zip(&swept);
    let rows: Vec<_> = rows.map(|(one, swept)| (one.values.clone(), &one.machine, swept)).collect();
    let table = swept_cycles(&fields, &rows);
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

/// Estimates of classes or processes of each configuration, from a sample.
fn sweep_estimates(
    request: &SweepRequest,
    make: impl Fn(&Machine) -> TimingModel + Copy + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    let table_of = |(simulated, classes): &SweptRun, _: &SweptMachine, models: PerProcess<TimingModel>| {
        let machine = [("", sum(&models)?)];
        let tables = match request.has_classes() {
            true => sampled_by_class(&machine, classes),
            false => sampled_by_process(&machine, &process_labels(&simulated.processes, &models.totals())),
        };
        tables.into_iter().next().context(NOTHING_SIMULATED)
    };
    let (simulated, tables) = run(request, &configurations, make, table_of)?;
    let table = request.table_of_rows(&configurations, tables)?;
    let fields = fields(request);
    let charts = || if fields.len() == 1 { crossed(&table, &[ESTIMATE]) } else { Ok(Vec::new()) };
    write(request, &simulated, &table, charts)
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
    rows: ResultRows,
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    let table_of = |(simulated, classes): &SweptRun, _: &SweptMachine, models: PerProcess<M>| {
        let sum = sum(&models)?;
        let tables = match rows {
            ResultRows::Own(OwnRows::Unit) if !classes.names().is_empty() => {
                units_of_classes(&[("", sum)], classes)
            }
            ResultRows::Own(rows) => models::by(rows, &[("", &sum)], &simulated.trace),
            ResultRows::Process => {
                let columns = [sum.columns().len()];
                let results = process_results(&simulated.processes, &models.totals(), &columns);
                models::by_process(&[("", &sum)], &results)
            }
            _ => by_class(&[("", sum)], classes),
        };
        tables.into_iter().next().context(NOTHING_SIMULATED)
    };
    let (simulated, tables) = run(request, &configurations, make, table_of)?;
    let table = request.table_of_rows(&configurations, tables)?;
    let fields = fields(request);
    // A line for each class or process.
    let has_lines = fields.len() == 1 && matches!(rows, ResultRows::Class | ResultRows::Process);
    let charts = || if has_lines { crossed(&table, &varying_columns(&table, 1)) } else { Ok(Vec::new()) };
    write(request, &simulated, &table, charts)
}

impl SweepRequest<'_> {
    /// The rows of each configuration, if it has more than one. An error if these cannot be swept.
    fn result_rows(&self) -> anyhow::Result<Option<ResultRows>> {
        let simulation = self.simulation;
        let has_classes = simulation.asks_for_classes();
        match self.rows {
            None | Some(ResultRows::Class) if has_classes || self.rows.is_some() => {
                simulation.check_classes(true)?;
                Ok(Some(ResultRows::Class))
            }
            Some(ResultRows::Own(rows)) if has_classes => match rows {
                OwnRows::Unit => simulation.check_classes(true).map(|()| self.rows),
                _ => {
                    bail!("rows of a sweep with classes of units are classes or units: --by class, --by unit")
                }
            },
            Some(ResultRows::Process) if !simulation.all_processes => bail!(ONE_PROCESS),
            Some(ResultRows::Process) if has_classes => bail!(CLASS_ROWS),
            None | Some(ResultRows::Own(_) | ResultRows::Process) => Ok(self.rows),
            Some(_) => bail!(
                "rows of a sweep are functions, lines, instructions, units, classes or processes, with their own costs: \
                 --by function, --by class"
            ),
        }
    }

    /// Whether units of work have their classes in the results.
    fn has_classes(&self) -> bool {
        let simulation = self.simulation;
        let are_units = self.rows == Some(ResultRows::Own(OwnRows::Unit));
        self.rows == Some(ResultRows::Class)
            || simulation.asks_for_classes()
            || are_units && simulation.has_classes()
    }

    /// One table of the tables of all configurations, each with its first rows.
    fn table_of_rows(&self, configurations: &[SweptMachine], tables: Vec<Table>) -> anyhow::Result<Table> {
        let mut tables = tables;
        for table in &mut tables {
            self.simulation.console.arrange(std::slice::from_mut(table))?;
        }
        let values = configurations.iter().map(|one| one.values.clone());
        Ok(swept_rows(&fields(self), values.zip(tables).collect()))
    }
}

/// The results of all processes on a configuration.
fn sum<M>(models: &PerProcess<M>) -> anyhow::Result<SummedOverProcesses<'_, M>>
where
    M: MergeableModel,
{
    let models: Vec<&M> = models.all_models().collect();
    if models.is_empty() {
        bail!(NOTHING_SIMULATED);
    }
    Ok(SummedOverProcesses(models))
}

/// The results that a sweep keeps of the models of all processes.
fn merged<M: MergeableModel, R: for<'a> From<&'a M>>(
    _: &SweptRun,
    _: &SweptMachine,
    models: PerProcess<M>,
) -> anyhow::Result<R> {
    Ok(R::from(&models.into_merged().context(NOTHING_SIMULATED)?))
}

/// Each combination of the values.
fn configurations(request: &SweepRequest) -> anyhow::Result<Vec<SweptMachine>> {
    let &SweepRequest { simulation, sweeps, .. } = request;
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
fn run<M: MergeableModel + 'static, R: Serialize + DeserializeOwned>(
    request: &SweepRequest,
    configurations: &[SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
    result: impl Fn(&SweptRun, &SweptMachine, PerProcess<M>) -> anyhow::Result<R>,
) -> anyhow::Result<(Simulated<()>, Vec<R>)> {
    let results = |some: &[&SweptMachine]| -> anyhow::Result<(Simulated<()>, Vec<R>)> {
        let (observed, models) = run_together(request, some, make)?;
        let results = some.iter().zip(models).map(|(one, models)| result(&observed, one, models));
        let results = results.collect::<anyhow::Result<_>>()?;
        Ok((observed.0, results))
    };
    let Some(path) = request.resume else {
        return results(&configurations.iter().collect::<Vec<_>>());
    };
    let input = &request.simulation.input;
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
    let Simulation { input, part, all_processes, .. } = request.simulation;
    let file = fs::metadata(input.path().unwrap_or("".as_ref())).with_context(|| input.to_string())?;
    Ok(format!(
        "{input} {:?} {} {:?} {part:?} {all_processes} {:?}",
        file.modified().ok(),
        file.len(),
        std::any::type_name::<R>(),
        request.rows,
    ))
}

/// The sweep of a trace of which all results are kept.
fn replayed_before(request: &SweepRequest) -> anyhow::Result<Simulated<()>> {
    let simulation = request.simulation;
    let trace = Trace::open(simulation.input.path().unwrap_or("".as_ref()))?;
    let part = simulation.note(&trace);
    let notes = simulation.all_processes.then(|| OWN_PROCESSORS.into()).into_iter().collect();
    let processes = KnownProcesses::new();
    Ok(Simulated { model: (), trace, part, notes, processes, ending: None, is_whole: true })
}

/// Simulates models of each of these configurations, all on the same execution.
fn run_together<M: MergeableModel + 'static>(
    request: &SweepRequest,
    configurations: &[&SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<(SweptRun, Vec<PerProcess<M>>)> {
    let machines = configurations.iter().map(|one| one.machine.clone());
    let selected = request.simulation.machines.with_machines(machines.clone().collect());
    let simulation = Simulation { machines: selected, ..request.simulation.clone() };
    let of_machine = |machine: Machine| simulation.process_models(move || make(&machine));
    let models = WithClasses::new(ParallelModels::new(machines.map(of_machine).collect()));
    let mut simulated = match request.has_classes() {
        true => simulation.run_with_classes(models)?,
        false => {
            let units = request.rows == Some(ResultRows::Own(OwnRows::Unit));
            simulation.run(Needs { units, ..Needs::default() }, models)?
        }
    };
    if simulation.all_processes {
        simulated.notes.push(OWN_PROCESSORS.into());
    }
    let (simulated, WithClasses { model, classes }) = simulated.take_model();
    if request.has_classes() {
        simulated.check_classes(&simulation, &classes)?;
    }
    Ok(((simulated, classes), model.into_models()))
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
    match request.simulation.console.page() {
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
            simulated.write_page(request.simulation, page, path)
        }
        None => {
            simulated.write_as_they_are(request.simulation.console, vec![table.clone()])?;
            simulated.finish(request.simulation)
        }
    }
}
