//! Simulates a model of a machine on a trace, or on a program while it runs.

use std::convert::Infallible;
use std::num::NonZero;
use std::process::ExitCode;

use analysis::models::Rows;
use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use anyhow::bail;
use engine::{Configuration, Plan};
use host::without_signals;
use lab::live;
use lab::measure::Ending;
use machine::{Machine, Model, SamplingPlan, TimingModel, TimingModelError, WarmUp};
use table::{Table, separated};
use trace::Trace;

use super::selected_machines::SelectedMachines;
use super::show::report_problems;
use super::trace::{counts_units, plan};
use super::{
    check_ending, check_names, configuration, left_out, named, protect_images, until, with_output_apart,
    write, write_after_run,
};
use crate::arguments::{EngineOptions, OutputOptions, ResultRows, RowOptions, SimulationOptions};
use crate::messages;
use crate::progress::{LiveProgress, Replaying};

/// A finished simulation.
pub struct Simulated<M> {
    /// The model.
    pub model: M,
    /// The trace; that of a program has no records.
    pub trace: Trace,
    /// The note on the part of the execution that was simulated.
    pub part: Option<String>,
    /// Other notes on what was not simulated, for readers of the tables.
    pub notes: Vec<String>,
    /// How the program ended, if one was run.
    pub ending: Option<Ending>,
    /// Whether all of the trace could be read.
    pub is_whole: bool,
}

/// The processor that programs run on: as the options say, or the newest of the machines'.
fn cpu(options: &SimulationOptions, machines: &[Machine]) -> isa::Cpu {
    let own = machines.iter().filter_map(|machine| machine.processor.cpu.as_deref()?.parse().ok());
    options.cpu.or(own.max()).unwrap_or(isa::Cpu::Ev67)
}

/// Makes timing models, of a sample with windows of this period if one is given.
pub fn timing_model(
    period: Option<u64>,
) -> impl Fn(&Machine) -> Result<TimingModel, TimingModelError> + Send + 'static {
    let plan = period.map(SamplingPlan::with_period);
    move |machine| {
        let model = TimingModel::new(machine)?;
        Ok(match plan {
            Some(plan) => model.with_sampling(plan),
            None => model,
        })
    }
}

/// Simulates a model of these machines on a trace or a program, for tables with these rows and functions.
pub fn simulate<M: Model + 'static>(
    options: &SimulationOptions,
    output: &OutputOptions,
    rows: Option<ResultRows>,
    functions: &[String],
    machines: &SelectedMachines,
    model: M,
) -> anyhow::Result<Simulated<M>> {
    let mut simulated = simulate_any(options, output, rows, functions, &machines.machines, model)?;
    simulated.notes.extend(machines.note());
    Ok(simulated)
}

fn simulate_any<M: Model + 'static>(
    options: &SimulationOptions,
    output: &OutputOptions,
    rows: Option<ResultRows>,
    functions: &[String],
    machines: &[Machine],
    model: M,
) -> anyhow::Result<Simulated<M>> {
    if Trace::is_trace(options.file.path()) {
        return replay(options, rows, model);
    }
    check_units(options, rows)?;
    let planned = prepare(options, functions, machines, model.wants_heap())?;
    run(options, output, planned, model)
}

/// Whether options that need units of work have them.
pub fn check_units(options: &SimulationOptions, rows: Option<ResultRows>) -> anyhow::Result<()> {
    if options.plan.unit.is_empty() {
        if rows == Some(ResultRows::Own(Rows::Unit)) {
            bail!("--by unit needs a unit of work: name its function with --unit FUNCTION");
        }
        if options.warm_up > 0 {
            bail!("--warm-up counts calls of a function: name it with --unit FUNCTION");
        }
    }
    Ok(())
}

/// The number of units to simulate: warm-up units and counted ones.
fn simulated_units(options: &SimulationOptions) -> Option<u64> {
    options.plan.units.map(|units| units.saturating_add(options.warm_up))
}

/// The model with its warm-up, which begins with the unit `first`.
pub fn with_warm_up<M: Model>(options: &SimulationOptions, model: M, first: u64) -> WarmUp<M> {
    WarmUp::new(model, first..first.saturating_add(options.warm_up))
}

/// The model after the simulation. An error if no unit was counted.
pub fn without_warm_up<M: Model>(
    options: &SimulationOptions,
    trace: &Trace,
    warm_up: WarmUp<M>,
) -> anyhow::Result<M> {
    if warm_up.is_warming() {
        bail!(only_warm_up(options, trace));
    }
    Ok(warm_up.model)
}

/// The error of a simulation whose units all belong to the warm-up.
pub fn only_warm_up(options: &SimulationOptions, trace: &Trace) -> String {
    let (unit, calls) = (trace.header().unit.as_deref().unwrap_or_default(), options.warm_up);
    format!("all calls of {unit} that were simulated belong to the warm-up: give less than --warm-up {calls}")
}

/// What to run, and what of it to simulate. A program that runs already checks names itself.
pub fn prepare(
    options: &SimulationOptions,
    functions: &[String],
    machines: &[Machine],
    heap: bool,
) -> anyhow::Result<(Configuration, Plan)> {
    if !options.threads.is_empty() || !options.processes.is_empty() || !options.modes.is_empty() {
        let file = options.file.path().display();
        bail!("--thread, --process and --mode choose from a trace, and {file} is none");
    }
    let engine = EngineOptions {
        cpu: cpu(options, machines),
        sysroot: options.sysroot.clone(),
        environment: options.environment.clone(),
    };
    let configuration = configuration(&engine, options.file.path(), options.file.arguments(), true);
    let mut plan = Plan { heap, ..plan(&options.plan)? };
    if let Some(unit) = &mut plan.unit {
        unit.units = simulated_units(options);
    }
    if options.attached.is_none() {
        let mut names = named(&plan);
        names.functions.extend(functions.iter().map(String::as_str));
        check_names(&configuration, &names)?;
    }
    Ok((configuration, plan))
}

/// Runs a program as planned, and simulates a model on it.
pub fn run<M: Model + 'static>(
    options: &SimulationOptions,
    output: &OutputOptions,
    (mut configuration, plan): (Configuration, Plan),
    mut model: M,
) -> anyhow::Result<Simulated<M>> {
    let is_parallel = is_parallel(options.host_processors);
    // The program's signals must be delivered to its own threads.
    let has_worker = is_parallel && without_signals(|| model.use_worker_thread())?;
    let model = with_warm_up(options, model, options.plan.skip);
    let progress = LiveProgress::new(output.takes_standard_output());
    configuration.settings.executed = progress.instructions();
    let live =
        with_output_apart(output, || live::run(&configuration, &plan, model, is_parallel && !has_worker));
    drop(progress);
    let live = live?;
    if live.model.is_warming() {
        // There are no results; how the program ended may say why.
        check_ending(&live.ending, options.file.path(), &options.ending)?;
    }
    let part = note(options, &live.trace);
    let notes = until(&live.ending).into_iter().chain(left_out(live.forked)).collect();
    let model = without_warm_up(options, &live.trace, live.model)?;
    Ok(Simulated { model, trace: live.trace, part, notes, ending: Some(live.ending), is_whole: true })
}

/// Whether to use two of the host's processors.
pub fn is_parallel(host_processors: Option<u32>) -> bool {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    host_processors.map_or_else(|| processors() > 1, |processors| processors > 1)
}

/// Simulates a model on a trace.
pub fn replay<M: Model>(
    options: &SimulationOptions,
    rows: Option<ResultRows>,
    mut model: M,
) -> anyhow::Result<Simulated<M>> {
    let trace = Trace::open(options.file.path())?;
    let selection = selection(options, rows, &trace)?;
    if is_parallel(None) {
        model.use_worker_thread()?;
    }
    replay_in_order(options, trace, &selection, ReplayOrder::Time, model)
}

/// Simulates a model on a part of a trace, whose threads are replayed in some order.
pub fn replay_in_order<M: Model>(
    options: &SimulationOptions,
    trace: Trace,
    selection: &Selection,
    order: ReplayOrder,
    model: M,
) -> anyhow::Result<Simulated<M>> {
    let set = trace.instruction_set();
    if model.wants_pipelines() && set.describes() {
        bail!(
            "{}: a trace of {} has no registers, so that pipelines cannot be simulated; pathlength caches and mrc can",
            options.file.path().display(),
            set.name()
        );
    }
    let first_unit = selection.units.as_ref().map_or(0, |units| *units.start());
    let mut model = with_warm_up(options, model, first_unit);
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(selection, &dictionary)?;
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order };
    let chunks = trace.chunks().iter().filter(|chunk| filter.chunk(chunk));
    let instructions = chunks.map(|chunk| chunk.instructions).fold(0, u64::saturating_add);
    if instructions == 0 {
        bail!("{}: there are no instructions to simulate in this trace", options.file.path().display());
    }
    let bar = Replaying::new(instructions, true);
    let Ok(problems) = replay.run_consumer(&mut model, &mut |instructions| {
        bar.show(instructions);
        Ok::<(), Infallible>(())
    });
    bar.clear();
    let is_whole = problems.is_empty() && trace.problems().is_empty();
    for problem in problems {
        messages::report_problem(&format!("{:#}", anyhow::Error::from(problem)));
    }
    report_problems(&trace, options.file.path());
    let (part, model) = (note(options, &trace), without_warm_up(options, &trace, model)?);
    let notes = trace.header().has_system().then(|| REFILLS.into()).into_iter().collect();
    Ok(Simulated { model, trace, part, notes, ending: None, is_whole })
}

/// What a whole system's trace lacks, and what stands for it.
const REFILLS: &str = "The emulator walks page tables and carries out some calls of PALcode itself: the instructions of TLB refills \
     and of these calls are not in the trace. What they take is the machine's miss_cycles of a TLB and its call_pal, in cycles only.";

/// The note on what was not simulated.
pub fn note(options: &SimulationOptions, trace: &Trace) -> Option<String> {
    let plan = &options.plan;
    if let Some(unit) = &trace.header().unit {
        let beginning = match options.warm_up {
            0 => "caches begin empty, and".to_string(),
            calls => format!("{} warm up and are not counted, and caches", separated(&calls.to_string())),
        };
        return Some(format!(
            "Only calls of {unit} are simulated: {beginning} keep their contents between calls."
        ));
    }
    let is_part = plan.from.is_some() || plan.until.is_some();
    is_part.then(|| "Only a part of the run is simulated: caches begin empty.".into())
}

/// The part of a trace to simulate. The options have the same meaning as for programs.
pub fn selection(
    options: &SimulationOptions,
    rows: Option<ResultRows>,
    trace: &Trace,
) -> anyhow::Result<Selection> {
    let plan = &options.plan;
    let for_programs = [
        (plan.from.is_some(), "--from"),
        (plan.until.is_some(), "--until"),
        (options.cpu.is_some(), "--cpu"),
        (options.environment.is_given(), "an environment"),
        (options.host_processors.is_some(), "--host-processors"),
        (!options.file.arguments().is_empty(), "an argument"),
    ];
    let file = options.file.path().display();
    if let Some((_, what)) = for_programs.iter().find(|(is_given, _)| *is_given) {
        bail!("{file} is a trace: {what} is for a program that is run");
    }
    let unit = trace.header().unit.as_ref();
    if let Some(function) = plan.unit.iter().find(|function| Some(*function) != unit) {
        match unit {
            Some(unit) => bail!("the units of work in {file} are calls of '{unit}', not of '{function}'"),
            None => bail!("{file} has no units of work: record it with --unit {function}"),
        }
    }
    // The function of a trace's units is named in the trace.
    let chooses_units = !plan.unit.is_empty() || counts_units(plan) || options.warm_up > 0;
    if unit.is_none() && (chooses_units || rows == Some(ResultRows::Own(Rows::Unit))) {
        bail!("{file} has no units of work: record it with --unit FUNCTION");
    }
    let first = trace.first_unit().unwrap_or(0);
    let first = first.saturating_add(plan.skip);
    if chooses_units && matches!(trace.unit(first), Ok(None)) {
        bail!("{file} has no unit of work {first}: leave out fewer than {} with --skip", plan.skip);
    }
    let last =
        simulated_units(options).map_or(u64::MAX, |units| first.saturating_add(units).saturating_sub(1));
    let processes = options.processes.iter().map(|&process| (process, None));
    Ok(Selection {
        threads: options.threads.iter().copied().chain(processes).collect(),
        modes: options.modes.iter().map(|mode| mode.mode()).collect(),
        units: chooses_units.then_some(first..=last),
        ..Selection::default()
    })
}

impl<M> Simulated<M> {
    /// Protects the program's images from being overwritten.
    pub fn protect(&self) {
        protect_images(self.trace.images().iter().map(|image| image.path.as_path()));
    }

    /// What readers of the results must know.
    pub fn all_notes(&self) -> impl Iterator<Item = &String> {
        self.part.iter().chain(&self.notes)
    }

    /// How the results were made, for the end of a page.
    pub fn provenance(&self) -> Vec<(String, String)> {
        let header = self.trace.header();
        let program = header.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let command: Vec<_> = std::iter::once(program).chain(header.arguments.iter().cloned()).collect();
        let notes = self.all_notes().map(|note| ("simulated".into(), note.clone()));
        std::iter::once(("program".into(), command.join(" "))).chain(notes).collect()
    }

    /// The model, and everything else.
    pub fn take_model(self) -> (Simulated<()>, M) {
        let Simulated { model, trace, part, notes, ending, is_whole } = self;
        (Simulated { model: (), trace, part, notes, ending, is_whole }, model)
    }

    /// The same with another model.
    pub fn with_model<N>(self, model: N) -> Simulated<N> {
        let Simulated { trace, part, notes, ending, is_whole, .. } = self;
        Simulated { model, trace, part, notes, ending, is_whole }
    }

    /// Writes tables with these rows, and the notes.
    pub fn write(
        &self,
        mut tables: Vec<Table>,
        rows: &RowOptions,
        output: &OutputOptions,
    ) -> anyhow::Result<()> {
        self.protect();
        let sorted = rows.apply(&mut tables);
        if let Some(last) = tables.last_mut() {
            last.notes.extend(self.all_notes().cloned());
        }
        match self.ending {
            Some(_) => write_after_run(&tables, output)?,
            None => write(&tables, output)?,
        }
        sorted
    }

    /// Reports how the program ended, if not with success. Returns the exit status.
    pub fn finish(&self, options: &SimulationOptions) -> anyhow::Result<ExitCode> {
        match &self.ending {
            Some(ending) => check_ending(ending, options.file.path(), &options.ending),
            None => Ok(if self.is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        }
    }
}
