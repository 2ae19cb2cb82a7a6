//! A model of a machine observes an execution: of a trace, of a program while it runs, or of a process that runs already.

mod part;
mod processes;
mod recorded;
mod simulated;

use std::convert::Infallible;
use std::num::NonZero;

use analysis::replay::{Replay, ReplayOrder, Selection};
use anyhow::bail;
use engine::{ClassRule, Configuration, Plan};
use host::without_signals;
use machine::{MergeableModel, Model, PerProcess, UnitWindow, WarmUp};
use trace::Trace;

pub use self::part::{PlannedPart, SimulatedPart};
pub use self::processes::{KnownProcesses, OWN_PROCESSORS, process_notes};
pub use self::recorded::RecordedInput;
pub use self::simulated::Simulated;
use crate::console::Console;
use crate::input::Input;
use crate::live;
use crate::machines::SelectedMachines;
use crate::measure::Ending;
use crate::program::{ExpectedEnding, ProgramSettings, check_ending, check_names, left_out, names_in, until};
use crate::views::{report_damage, report_unread, selected_instructions};

/// An execution to simulate, and how.
#[derive(Clone)]
pub struct Simulation<'a> {
    /// The execution.
    pub input: Input,
    /// Whether it is a trace whose units of work have classes ([`Input::has_unit_classes`]).
    pub is_recorded_with_classes: bool,
    /// The surroundings of a program.
    pub program: ProgramSettings,
    /// The processor that a program runs on, if not the newest of the machines'.
    pub cpu: Option<isa::Processors>,
    /// The part of it.
    pub part: SimulatedPart,
    /// Whether all processes are simulated.
    pub all_processes: bool,
    /// Processors of the host to use for a program: 1 or 2; otherwise two, if there are two.
    pub host_processors: Option<u32>,
    /// The rules by which units of work get their classes.
    pub class_rules: Vec<ClassRule>,
    /// How a program is to end.
    pub expected: ExpectedEnding,
    /// The machines that are simulated, if any.
    pub machines: SelectedMachines,
    /// Where progress and tables go.
    pub console: &'a dyn Console,
}

/// What the results of a simulation need of the execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs<'a> {
    /// Units of work.
    pub units: bool,
    /// Functions that must exist.
    pub functions: &'a [String],
    /// Units with their classes, and everything outside of them.
    pub classes: bool,
}

impl Needs<'_> {
    /// The needs of results by class of units of work.
    pub const CLASSES: Needs<'static> = Needs { units: false, functions: &[], classes: true };
}

/// What is to be run, and what of it is observed.
pub type PlannedRun = (Configuration, Plan);

impl Simulation<'_> {
    /// Simulates a model on the execution.
    pub fn run<M: Model + 'static>(&self, needs: Needs, model: M) -> anyhow::Result<Simulated<M>> {
        self.run_on(self.open()?, needs, model)
    }

    /// Opens the trace, if the input is one.
    pub fn open(&self) -> anyhow::Result<Option<Trace>> {
        match &self.input {
            Input::Trace(path) => Ok(Some(Trace::open(path)?)),
            _ => Ok(None),
        }
    }

    /// Simulates a model on the trace that was opened, or on a program that is run or runs already.
    pub fn run_on<M: Model + 'static>(
        &self,
        trace: Option<Trace>,
        needs: Needs,
        mut model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let Some(trace) = trace else { return self.run_planned(self.prepare(needs)?, model) };
        let selection = self.selection(&trace, needs)?;
        if is_parallel(None) {
            model.use_worker_thread()?;
        }
        let mut simulated = self.replay(trace, &selection, ReplayOrder::Time, model)?;
        simulated.notes.extend(self.machines.note());
        Ok(simulated)
    }

    /// Models that `make` makes: one for each process if all are simulated, or one that the processes of a trace share.
    pub fn process_models<M: MergeableModel>(&self, make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        match self.all_processes {
            true => PerProcess::merging(make),
            false => PerProcess::shared(make),
        }
    }

    /// Runs a program as planned, or attaches to it, and simulates a model on it, with the notes on the machines.
    pub fn run_planned<M: Model + 'static>(
        &self,
        planned: PlannedRun,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let mut simulated = self.observe(planned, model)?;
        simulated.notes.extend(self.machines.note());
        Ok(simulated)
    }

    /// The program to run, and the part of it to observe. A program that runs already checks names itself.
    pub fn prepare(&self, needs: Needs) -> anyhow::Result<PlannedRun> {
        if needs.classes {
            return self.configured(self.part.planned.plan_of_classes(&self.class_rules)?, needs.functions);
        }
        self.check_units(needs.units)?;
        self.configured(self.part.plan()?, needs.functions)
    }

    fn configured(&self, plan: Plan, functions: &[String]) -> anyhow::Result<PlannedRun> {
        let file = &self.input;
        if !self.part.threads.is_empty() || !self.part.modes.is_empty() {
            bail!("--thread, --process and --mode choose from a trace, and {file} is none");
        }
        let cpu = self.cpu.or(self.machines.cpu().map(Into::into)).unwrap_or(self.program.cpu);
        let program = ProgramSettings { cpu, ..self.program.clone() };
        let configuration = match &self.input {
            Input::Program { path, arguments } => program.configuration(path, arguments, true),
            Input::Attached(_) => program.configuration("".as_ref(), &[], true),
            Input::Trace(_) => {
                bail!("{file} is a trace, and what is asked for is in no trace: name the program")
            }
            Input::SavedCounts(_) => {
                bail!(
                    "{file} holds saved counts, without the order of execution: name the program, or a trace"
                )
            }
        };
        if self.input.attached().is_none() {
            let mut names = names_in(&plan);
            names.functions.extend(functions.iter().map(String::as_str));
            check_names(&configuration, &names)?;
        }
        Ok((configuration, plan))
    }

    /// The model with its warm-up; if everything is executed for it, with the window that it observes.
    fn with_warm_up<M: Model>(&self, model: M, plan: &Plan) -> WarmUp<M> {
        let window = self.part.window();
        match plan.unit {
            None if plan.classes.is_some() => WarmUp::of_window(model, 0, window),
            _ => WarmUp::new(model, window.skipped..window.skipped.saturating_add(window.warm_up)),
        }
    }

    /// The model after the simulation. An error if no unit was counted.
    fn without_warm_up<M: Model>(&self, warm_up: WarmUp<M>) -> anyhow::Result<M> {
        if warm_up.is_before_window() {
            bail!(
                "no more units of work began than --skip {} leaves out: leave out fewer",
                self.part.planned.skip
            );
        }
        if warm_up.is_warming() {
            bail!(self.only_warm_up());
        }
        Ok(warm_up.model)
    }

    /// The error of a simulation whose units all belong to the warm-up.
    pub(crate) fn only_warm_up(&self) -> String {
        format!(
            "all units of work that were simulated belong to the warm-up: give less than --warm-up {}",
            self.part.warm_up
        )
    }

    /// Runs a program as planned, or attaches to it, and simulates a model on it.
    fn observe<M: Model + 'static>(
        &self,
        (configuration, plan): PlannedRun,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let planned = (configuration, Plan { heap: model.needs().heap, ..plan });
        match self.all_processes {
            true => self.observe_processes(planned, model),
            false => self.observe_first_process(planned, model),
        }
    }

    fn observe_first_process<M: Model + 'static>(
        &self,
        (mut configuration, plan): PlannedRun,
        mut model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let is_parallel = is_parallel(self.host_processors);
        // The program's signals must be delivered to its own threads.
        let has_worker = is_parallel && without_signals(|| model.use_worker_thread())?;
        let model = self.with_warm_up(model, &plan);
        let progress = self.console.begin_run(true);
        configuration.settings.executed = progress.instructions();
        let live = live::run(&configuration, &plan, model, is_parallel && !has_worker);
        drop(progress);
        let live = live?;
        if live.model.is_warming() {
            // There are no results; how the program ended may say why.
            self.check_ending(&live.ending)?;
        }
        let part = self.note(&live.trace);
        let notes = until(&live.ending).into_iter().chain(left_out(live.forked)).collect();
        let model = self.without_warm_up(live.model)?;
        let (trace, ending) = (live.trace, Some(live.ending));
        Ok(Simulated { model, trace, part, notes, processes: KnownProcesses::new(), ending, is_whole: true })
    }

    /// Simulates a model on a part of a trace, whose threads are replayed in some order.
    pub(crate) fn replay<M: Model>(
        &self,
        trace: Trace,
        selection: &Selection,
        order: ReplayOrder,
        model: M,
    ) -> anyhow::Result<Simulated<M>> {
        let (set, file) = (trace.instruction_set(), &self.input);
        if model.needs().pipelines && set.describes() {
            bail!(
                "{file}: a trace of {} has no registers, so that pipelines cannot be simulated; pathlength caches and mrc can",
                set.name()
            );
        }
        let simulated = Replay::of_part(&trace, selection, order, |replay| {
            let instructions = selected_instructions(replay);
            if instructions == 0 {
                bail!("{file}: there are no instructions to simulate in this trace");
            }
            let progress = self.console.begin_replay(instructions, true);
            let Ok(simulated) = replay.run_model(model, self.part.window(), &mut |instructions| {
                progress.advance(instructions);
                Ok::<(), Infallible>(())
            });
            Ok(simulated)
        });
        let (model, problems) = simulated??;
        let is_whole = self.report_problems(&trace, problems);
        let (part, model) = (self.note(&trace), self.without_warm_up(model)?);
        let notes = trace.header().has_system().then(|| REFILLS.into()).into_iter().collect();
        let processes = KnownProcesses::new();
        Ok(Simulated { model, trace, part, notes, processes, ending: None, is_whole })
    }

    /// Reports parts of a trace that could not be read. Returns whether there were none.
    pub(crate) fn report_problems(&self, trace: &Trace, problems: Vec<trace::Error>) -> bool {
        let is_whole = report_unread(self.console, problems) && trace.problems().is_empty();
        if let Some(path) = self.input.path() {
            report_damage(self.console, trace, path);
        }
        is_whole
    }

    /// Checks how the program ended.
    pub fn check_ending(&self, ending: &Ending) -> anyhow::Result<std::process::ExitCode> {
        check_ending(ending, self.input.path().unwrap_or("".as_ref()), &self.expected)
    }

    /// The note on what was not simulated.
    pub(crate) fn note(&self, trace: &Trace) -> Option<String> {
        let planned = &self.part.planned;
        if let Some(unit) = &trace.header().unit {
            let beginning = match self.part.warm_up {
                0 => "caches begin empty, and".to_string(),
                calls => format!(
                    "{} warm up and are not counted, and caches",
                    table::separated(&calls.to_string())
                ),
            };
            return Some(format!(
                "Only calls of {unit} are simulated: {beginning} keep their contents between calls."
            ));
        }
        if planned.counts_units() || self.part.warm_up > 0 {
            return Some(self.note_of_window());
        }
        let is_part = planned.from.is_some() || planned.until.is_some();
        is_part.then(|| "Only a part of the run is simulated: caches begin empty.".into())
    }
}

impl Simulation<'_> {
    /// The note on the window of an execution whose units have classes.
    fn note_of_window(&self) -> String {
        let count = |units: u64| {
            let plural = if units == 1 { "" } else { "s" };
            format!("{} unit{plural} of work", table::separated(&units.to_string()))
        };
        let UnitWindow { skipped, warm_up, units } = self.part.window();
        let begin = match skipped {
            0 => "from the beginning".into(),
            skipped => format!("after {}", count(skipped)),
        };
        let warm_up = match warm_up {
            0 => String::new(),
            units => format!(", of which {} at first warm up and are not counted", count(units)),
        };
        let until = units.map_or(String::new(), |units| format!(", until the end of {}", count(units)));
        format!("Everything {begin} is simulated{warm_up}{until}: caches begin empty.")
    }
}

/// What a whole system's trace lacks, and what stands for it.
const REFILLS: &str = "The emulator walks page tables and carries out some calls of PALcode itself: the instructions of TLB refills \
     and of these calls are not in the trace. What they take is the machine's miss_cycles of a TLB and its call_pal, in cycles only.";

/// Whether to use two of the host's processors.
pub fn is_parallel(host_processors: Option<u32>) -> bool {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    host_processors.map_or_else(|| processors() > 1, |processors| processors > 1)
}
