//! Sweeps: misses or cycles of machines that differ in one or two fields, of one execution.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use analysis::models::{
    SweptCycles, SweptMisses, cross_table, main_causes, swept_cycles, swept_misses, varying_columns,
};
use anyhow::{Context, bail};
use machine::{
    Caches, FieldSetting, Machine, MergeableModel, ParallelModels, PerProcess, Sweep, TimingModel,
};
use report::{Arrangement, Chart, Page, PageBlock, PageSection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use table::Table;
use trace::Trace;

use super::NOTHING_SIMULATED;
use super::sweep_file::SweepFile;
use crate::console::check_output;
use crate::machines::SelectedMachines;
use crate::simulation::{KnownProcesses, Needs, OWN_PROCESSORS, Simulated, Simulation};

/// The most configurations of a sweep.
const MOST: usize = 256;
/// The most series of a chart: more colours cannot be distinguished.
const SERIES: usize = 12;

/// What is swept.
pub struct SweepRequest<'a> {
    /// The execution, and the machine.
    pub simulation: &'a Simulation<'a>,
    /// The changes of the machine.
    pub settings: &'a [FieldSetting],
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

/// Simulates the caches of each configuration, and writes a table or charts of misses.
pub fn sweep_misses(request: &SweepRequest) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    let (simulated, swept): (_, Vec<SweptMisses>) = run(request, &configurations, Caches::new)?;
    let rows: Vec<_> = configurations.iter().map(|one| one.values.clone()).zip(&swept).collect();
    let fields = fields(request);
    let table = swept_misses(&fields, &rows);
    let columns = varying_columns(&table);
    let charts = || match fields.len() {
        1 => Ok(vec![report::lines(&table, &fields[0], &columns, "misses")?]),
        _ => crossed(&table, &columns),
    };
    write(request, &simulated, &table, charts)
}

/// Simulates the pipeline of each configuration, and writes a table or charts of cycles.
pub fn sweep_cycles(request: &SweepRequest) -> anyhow::Result<ExitCode> {
    let configurations = configurations(request)?;
    // Machines without a pipeline are reported before the program runs.
    configurations.iter().try_for_each(|one| TimingModel::new(&one.machine).map(drop))?;
    let make = |machine: &Machine| TimingModel::new(machine).expect("it was possible before");
    let (simulated, swept): (_, Vec<SweptCycles>) = run(request, &configurations, make)?;
    let rows = configurations.iter().zip(&swept);
    let rows: Vec<_> = rows.map(|(one, swept)| (one.values.clone(), &one.machine, swept)).collect();
    let fields = fields(request);
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

/// Each combination of the values.
fn configurations(request: &SweepRequest) -> anyhow::Result<Vec<SweptMachine>> {
    let &SweepRequest { simulation, sweeps, .. } = request;
    let names = &simulation.machines.names;
    if simulation.has_classes() {
        bail!("--sweep has no classes: give the machines one by one, --machine A --machine B --by class");
    }
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
    let mut combinations: Vec<Vec<FieldSetting>> = vec![Vec::new()];
    for sweep in sweeps {
        let with = |before: &[FieldSetting], setting: &FieldSetting| {
            [before, std::slice::from_ref(setting)].concat()
        };
        let next =
            combinations.iter().flat_map(|before| sweep.settings().iter().map(move |one| with(before, one)));
        combinations = next.collect();
    }
    if combinations.len() > MOST {
        bail!("{} configurations are more than {MOST}: give fewer values", combinations.len());
    }
    let configuration = |swept: Vec<FieldSetting>| {
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

/// Simulates a model of each configuration; those whose results a file has are not simulated again.
fn run<M: MergeableModel + 'static, R: for<'a> From<&'a M> + Serialize + DeserializeOwned>(
    request: &SweepRequest,
    configurations: &[SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<(Simulated<()>, Vec<R>)> {
    let results = |models: Vec<M>| models.iter().map(R::from).collect();
    let Some(path) = request.resume else {
        let all: Vec<&SweptMachine> = configurations.iter().collect();
        return run_together(request, &all, make).map(|(simulated, models)| (simulated, results(models)));
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
        let (simulated, models) = run_together(request, &some, make)?;
        for ((&number, one), result) in group.iter().zip(some).zip(results(models)) {
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
        "{input} {:?} {} {:?} {part:?} {all_processes}",
        file.modified().ok(),
        file.len(),
        std::any::type_name::<R>(),
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

/// Simulates a model of each of these configurations, all on the same execution.
fn run_together<M: MergeableModel + 'static>(
    request: &SweepRequest,
    configurations: &[&SweptMachine],
    make: impl Fn(&Machine) -> M + Copy + Send + 'static,
) -> anyhow::Result<(Simulated<()>, Vec<M>)> {
    let machines = configurations.iter().map(|one| one.machine.clone());
    let selected = request.simulation.machines.with_machines(machines.clone().collect());
    let simulation = Simulation { machines: selected, ..request.simulation.clone() };
    if simulation.all_processes {
        let of_processes = |machine: Machine| PerProcess::merging(move || make(&machine));
        let model = ParallelModels::new(machines.map(of_processes).collect());
        let mut simulated = simulation.run(Needs::default(), model)?;
        simulated.notes.push(OWN_PROCESSORS.into());
        let (simulated, model) = simulated.take_model();
        let models = model.into_models().into_iter().map(PerProcess::into_merged);
        return Ok((simulated, models.collect::<Option<_>>().context(NOTHING_SIMULATED)?));
    }
    let model = ParallelModels::new(machines.map(|machine| make(&machine)).collect());
    let simulated = simulation.run(Needs::default(), model)?;
    let (simulated, model) = simulated.take_model();
    Ok((simulated, model.into_models()))
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
