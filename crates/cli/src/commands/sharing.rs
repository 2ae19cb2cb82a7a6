//! `pathlength sharing`: cache lines that move between processors.

use std::process::ExitCode;

use analysis::models::{ExecutionPart, OwnRows, UnitClasses, swept_rows};
use analysis::multiprocessor;
use analysis::replay::ReplayOrder;
use analysis::sharing::{self, SharingAnalysis};
use anyhow::{anyhow, bail};
use machine::{Bus, BusProcessor, Coherence, CoherentMemory, Multiprocessor, SamplingPlan};
use session::machines::SelectedMachines;
use session::simulation::{RecordedInput, Simulated, Simulation};
use session::tables::write_classes;
use table::{Table, separated};
use trace::Trace;
use trace::interleave::{Assignment, Schedule};

use crate::arguments::{SharingOptions, SharingRows};

/// Cache lines in the short table.
const LINES: usize = 10;

/// Simulates the coherent caches of several processors on a trace or a program, and writes the tables.
pub fn run(options: &SharingOptions) -> anyhow::Result<ExitCode> {
    let machines = SelectedMachines::find([&options.machine], &options.settings)?;
    let machine = machines.machines[0].clone();
    let console = options.results.console();
    let simulation = &options.results.simulation(machines, &console)?;
    let is_one_table = !options.scaling.is_empty() || options.sample.is_some();
    let several = options.by.is_none() && (!is_one_table || simulation.asks_for_classes());
    options.results.show.output.check(several)?;
    if options.results.input.input.children && simulation.input.attached().is_none() {
        bail!("--children goes with --attach: of a program that is run, all processes are observed");
    }
    let Some(coherence) = &machine.coherence else {
        let name = &options.machine;
        bail!(
            "the machine {name} has one processor: add coherence.protocol = \"mesi\" to its file, or --set coherence.protocol=mesi"
        );
    };
    let is_of_nodes = matches!(options.by, Some(SharingRows::Node | SharingRows::Interconnect));
    if is_of_nodes && coherence.nodes.is_none() {
        bail!(
            "the machine {} has no nodes: add [coherence.nodes] to its file, or use av20000",
            options.machine
        );
    }
    let is_timed = options.time
        || options.sample.is_some()
        || !options.scaling.is_empty()
        || options.by.is_some_and(SharingRows::is_of_time);
    if is_timed {
        check_timed(options)?;
    }
    let bus = if is_timed { Some(timed_bus(options, coherence)?) } else { None };
    // Of a trace that has classes, other rows are those of everything, and so are samples and several numbers of processors.
    let can_have_classes = options.sample.is_none()
        && options.scaling.is_empty()
        && options.by.is_none_or(SharingRows::has_classes);
    let has_classes = options.by == Some(SharingRows::Class)
        || simulation.asks_for_classes()
        || can_have_classes && simulation.has_classes();
    if has_classes {
        check_classes(simulation, options)?;
    }
    let recorded = simulation.record(has_classes)?;
    let trace = &recorded.trace;
    let most = CoherentMemory::MOST_PROCESSORS as u32;
    let threads = u32::try_from(trace.streams().len()).unwrap_or(most);
    let processors = options.processors.unwrap_or(threads.clamp(1, most));
    let SharingOptions { quantum, time_slice, saturated: is_saturated, .. } = *options;
    let assignment = options.assign.into();
    if is_saturated && assignment == Assignment::Recorded {
        bail!("--saturated threads do not wait, as they did in the recorded order: leave out one of both");
    }
    let schedule = Schedule { processors, quantum, assignment, time_slice, is_saturated };
    if let Some((bus, processor)) = bus {
        let model = |processors: u32| {
            let model = Multiprocessor::new(&machine, coherence, bus, processor, processors as usize);
            match options.sample {
                Some(period) => model.with_sampling(SamplingPlan::with_period(period)),
                None => model,
            }
        };
        return timed(options, simulation, has_classes, recorded, schedule, model);
    }
    let order = ReplayOrder::Interleaved(schedule);
    let objects = trace.mapped_objects().clone();
    let mut model = SharingAnalysis::new(&machine, coherence, processors, objects);
    if options.check {
        model.check_coherence();
    }
    if coherence.nodes.is_some() && !(options.device_reads.is_empty() && options.device_writes.is_empty()) {
        bail!(
            "the machine {} has nodes, and devices are simulated on machines with one bus",
            options.machine
        );
    }
    model.set_devices(&options.device_reads, &options.device_writes);
    let mut simulated = simulation.replay_recorded(recorded, order, model)?;
    simulated.model.end();
    simulated.model.check_devices()?;
    if let Some(checked) = simulated.model.checked() {
        let checked = checked.map_err(|error| anyhow!("the simulated caches are not coherent: {error}"))?;
        let count = separated(&checked.to_string());
        simulated.notes.push(format!(
            "{count} accesses were checked: each found what was stored last, and no store left another copy."
        ));
    }
    simulated.notes.extend(simulation.machines.note());
    if has_classes {
        simulated.check_classes(simulation, simulated.model.classes())?;
        if let Some(by) = options.by.filter(|by| *by != SharingRows::Class) {
            let table = |part| table(by, part, &simulated.model, &simulated.trace);
            let parts = simulated.model.parts().into_iter().map(|(name, part)| (name, table(part)));
            return write_classes(simulation, &simulated, parts, table(ExecutionPart::Whole));
        }
    }
    write(options, simulation, has_classes, &simulated)
}

/// Whether the tables can have classes.
fn check_classes(simulation: &Simulation, options: &SharingOptions) -> anyhow::Result<()> {
    if options.by.is_some_and(|by| !by.has_classes()) {
        bail!(
            "with classes of units, rows are classes, cache lines, data, threads, functions, lines or instructions: --by class, --by \
             data, or no --by for a summary"
        );
    }
    simulation.check_classes()
}

/// Whether a simulation in time has what the options ask for.
fn check_timed(options: &SharingOptions) -> anyhow::Result<()> {
    if options.by.is_some_and(|by| !by.is_of_time() && by != SharingRows::Class) {
        bail!(
            "in time, rows are processors, transactions, requests and classes: leave out --time, --scaling and --sample, or --by"
        );
    }
    if options.sample.is_some() && options.by.is_some_and(|by| by != SharingRows::Class) {
        bail!("--sample estimates the cycles of everything and of classes: --by class, or no --by");
    }
    let without_time = [
        (options.check, "--check"),
        (!options.device_reads.is_empty(), "--device-reads"),
        (!options.device_writes.is_empty(), "--device-writes"),
    ];
    if let Some((_, option)) = without_time.iter().find(|(is_given, _)| *is_given) {
        bail!("{option} is for caches without time: leave out --time, --scaling, --sample, and rows of time");
    }
    Ok(())
}

/// What a simulation in time needs of a machine.
fn timed_bus<'a>(
    options: &SharingOptions,
    coherence: &'a Coherence,
) -> anyhow::Result<(&'a Bus, &'a BusProcessor)> {
    match (&coherence.bus, &coherence.processor) {
        (Some(bus), Some(processor)) => Ok((bus, processor)),
        _ => bail!(
            "the machine {} has no timed bus: add [coherence.bus] and [coherence.processor] to its file, or use pentium-pro",
            options.machine
        ),
    }
}

/// Simulates the processors of a machine in time, as often as there are numbers of processors, and writes the tables.
fn timed(
    options: &SharingOptions,
    simulation: &Simulation,
    has_classes: bool,
    recorded: RecordedInput,
    schedule: Schedule,
    new_model: impl Fn(u32) -> Multiprocessor,
) -> anyhow::Result<ExitCode> {
    let counts = if options.scaling.is_empty() { vec![schedule.processors] } else { options.scaling.clone() };
    let (simulated, models) = simulation.replay_in_time(recorded, schedule, &counts, new_model)?;
    let classes = UnitClasses::of_trace(&simulated.trace);
    if has_classes {
        simulated.check_classes(simulation, &classes)?;
    }
    // Of several numbers of processors, the rows of each behind it.
    let rows = |by: SharingRows| {
        let table = |model: &Multiprocessor| match by {
            SharingRows::Processor => multiprocessor::by_processor(model),
            SharingRows::Class => multiprocessor::by_class(model, &classes),
            SharingRows::Request => multiprocessor::requests(model),
            _ => multiprocessor::transactions(model),
        };
        of_each(options, &models, table)
    };
    let mut tables = match options.by {
        Some(by) => vec![rows(by)],
        None if options.sample.is_some() => {
            vec![of_each(options, &models, |model| multiprocessor::sampled(model).expect("it is a sample"))]
        }
        None if !options.scaling.is_empty() => vec![multiprocessor::scaling(&models)],
        None => [multiprocessor::summary, multiprocessor::by_processor, multiprocessor::transactions]
            .map(|table| table(&models[0]))
            .into(),
    };
    if has_classes && options.by.is_none() {
        tables.push(rows(SharingRows::Class));
    }
    simulated.write(simulation, tables)
}

/// A table of the processors; with --scaling, the rows of each number of processors behind it.
fn of_each(
    options: &SharingOptions,
    models: &[Multiprocessor],
    table: impl Fn(&Multiprocessor) -> Table,
) -> Table {
    if options.scaling.is_empty() {
        return table(&models[0]);
    }
    let tables = models.iter().map(|model| (vec![model.processors().len().to_string()], table(model)));
    swept_rows(&["processors".into()], tables.collect())
}

fn write(
    options: &SharingOptions,
    simulation: &Simulation,
    has_classes: bool,
    simulated: &Simulated<SharingAnalysis>,
) -> anyhow::Result<ExitCode> {
    let whole = ExecutionPart::Whole;
    if let Some(by) = options.by {
        return simulated.write(simulation, vec![table(by, whole, &simulated.model, &simulated.trace)]);
    }
    let lines = sharing::by_cache_line(&simulated.model, whole, &simulated.trace);
    let classes = has_classes.then(|| sharing::by_class(&simulated.model));
    let tables: Vec<Table> =
        std::iter::once(sharing::summary(&simulated.model)).chain(classes).chain([lines]).collect();
    let last = tables.len() - 1;
    simulated.write_summary(simulation, tables, (last, LINES, "--by cache-line shows all lines"))
}

fn table(by: SharingRows, part: ExecutionPart, model: &SharingAnalysis, trace: &Trace) -> Table {
    match by {
        SharingRows::CacheLine => sharing::by_cache_line(model, part, trace),
        SharingRows::Data => sharing::by_data(model, part, trace),
        SharingRows::Thread => sharing::by_thread(model, part, trace),
        SharingRows::Function => sharing::by_code(model, part, OwnRows::Function, trace),
        SharingRows::Line => sharing::by_code(model, part, OwnRows::Line, trace),
        SharingRows::Instruction => sharing::by_code(model, part, OwnRows::Instruction, trace),
        SharingRows::Class => sharing::by_class(model),
        SharingRows::Partner => sharing::by_partner(model, trace),
        SharingRows::State => sharing::state_changes(model),
        SharingRows::Node => sharing::by_node(model),
        SharingRows::Interconnect => sharing::by_interconnect_operation(model),
        SharingRows::Processor | SharingRows::Transaction | SharingRows::Request => {
            unreachable!("they are of a simulation in time")
        }
    }
}
