//! `pathlength caches --children` and `time --children`: models of all processes of a program or a trace.

use std::collections::HashMap;
use std::process::ExitCode;

use analysis::models::{self, InstructionResults, ProcessResults, Together};
use anyhow::bail;
use engine::{Configuration, Plan, ProcessState};
use events::Consumer;
use lab::family::{self, Observed, ObservedProcess};
use machine::{Caches, MergeableModel, Model, PerProcess, WarmUp};
use trace::Trace;

use super::calls::{self, CallsRequest};
use super::selected_machines::SelectedMachines;
use super::simulate::{self, Simulated, check_units, is_parallel, prepare, with_warm_up, without_warm_up};
use super::{until, with_output_apart};
use crate::arguments::{
    AttachedProgram, CachesOptions, OutputOptions, ResultRows, SimulationOptions, TimeOptions,
};
use crate::messages;

/// The programs and ends of observed processes, by the numbers of their models.
pub type KnownProcesses = HashMap<u32, ObservedProcess>;

/// The misses of all processes.
pub fn caches(
    options: &CachesOptions,
    input: &SimulationOptions,
    rows: Option<ResultRows>,
    selected: &SelectedMachines,
) -> anyhow::Result<ExitCode> {
    let new = if options.classify { Caches::classified } else { Caches::new };
    let machines = selected.machines.clone();
    let make = move || machines.iter().map(new).collect();
    if let Some(ResultRows::Calls(rows)) = rows {
        let request = CallsRequest {
            input,
            rows,
            options: &options.calls,
            rows_shown: &options.rows,
            output: &options.output,
            selected,
            children: true,
        };
        return calls::simulate_processes(&request, make);
    }
    let simulated = simulate(input, &options.output, rows, selected, make)?;
    let mut tables = simulated.tables(rows, selected);
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        let together: Vec<_> = simulated.together(selected).collect();
        tables.push(models::structures(&together, options.classify));
    }
    simulated.simulated.write(tables, &options.rows, &options.output)?;
    simulated.simulated.finish(input)
}

/// The cycles of all processes.
pub fn time(
    options: &TimeOptions,
    input: &SimulationOptions,
    rows: Option<ResultRows>,
    selected: &SelectedMachines,
) -> anyhow::Result<ExitCode> {
    let machines = selected.machines.clone();
    // Machines without a pipeline are reported before the program runs.
    let new = simulate::timing_model(options.sample);
    machines.iter().try_for_each(|machine| new(machine).map(drop))?;
    let make = move || {
        let models = machines.iter().map(&new);
        models.collect::<Result<Vec<_>, _>>().expect("it was possible before")
    };
    if let Some(ResultRows::Calls(rows)) = rows {
        let request = CallsRequest {
            input,
            rows,
            options: &options.calls,
            rows_shown: &options.rows,
            output: &options.output,
            selected,
            children: true,
        };
        return calls::simulate_processes(&request, make);
    }
    let simulated = simulate(input, &options.output, rows, selected, make)?;
    let mut tables = simulated.tables(rows, selected);
    // A calling program gets the summary, too.
    if rows.is_none() || messages::is_connected() {
        let together = simulated.together(selected).zip(&selected.machines);
        let described: Vec<_> = together.map(|((name, time), machine)| (name, machine, time)).collect();
        tables.extend(models::times(&described));
    }
    simulated.simulated.write(tables, &options.rows, &options.output)?;
    simulated.simulated.finish(input)
}

/// Models of processes: of each process, one for each machine.
struct SimulatedProcesses<M> {
    simulated: Simulated<PerProcess<Vec<M>>>,
    /// Empty, if it is a trace.
    processes: KnownProcesses,
}

fn simulate<M: InstructionResults + MergeableModel + 'static>(
    options: &SimulationOptions,
    output: &OutputOptions,
    rows: Option<ResultRows>,
    selected: &SelectedMachines,
    make: impl Fn() -> Vec<M> + Send + 'static,
) -> anyhow::Result<SimulatedProcesses<M>> {
    let model = PerProcess::merging(make);
    let (mut simulated, processes) = simulate_all(options, output, rows, &[], selected, model)?;
    if simulated.model.all_models().next().is_none() {
        bail!(NOTHING_SIMULATED);
    }
    simulated.notes.push(OWN_PROCESSORS.into());
    Ok(SimulatedProcesses { simulated, processes })
}

/// The error of a simulation without results.
pub const NOTHING_SIMULATED: &str = "no process executed anything that was to be simulated";
/// The note on models of processes.
pub const OWN_PROCESSORS: &str =
    "Each process has caches and predictors of its own, as if it had a processor to itself.";

/// Simulates a model on all processes of a trace or of a program.
pub fn simulate_all<M: Model>(
    options: &SimulationOptions,
    output: &OutputOptions,
    rows: Option<ResultRows>,
    functions: &[String],
    selected: &SelectedMachines,
    model: M,
) -> anyhow::Result<(Simulated<M>, KnownProcesses)> {
    let (mut simulated, processes) = if Trace::is_trace(options.file.path()) {
        (simulate::replay(options, rows, model)?, HashMap::new())
    } else {
        check_units(options, rows)?;
        run(options, output, prepare(options, functions, &selected.machines, model.wants_heap())?, model)?
    };
    simulated.notes.extend(selected.note());
    Ok((simulated, processes))
}

/// The models of all processes on each machine, with its name. Models of no machine have empty names.
pub fn together<'a, M: InstructionResults>(
    models: &'a PerProcess<Vec<M>>,
    selected: &'a SelectedMachines,
) -> impl Iterator<Item = (&'a str, Together<'a, M>)>
where
    Vec<M>: Model,
{
    let machines = models.all_models().next().map_or(0, Vec::len);
    let names = selected.names.iter().map(String::as_str).chain(std::iter::repeat(""));
    let together = |index: usize| Together(models.all_models().map(|models| &models[index]).collect());
    names.zip((0..machines).map(together))
}

/// Lets a model observe a program that runs already.
pub fn observe_running<M: Consumer>(
    attached: &AttachedProgram,
    plan: &Plan,
    model: M,
    begin: impl FnOnce(&mut M),
) -> anyhow::Result<Observed<M>> {
    let AttachedProgram { process, children, duration } = *attached;
    Ok(family::observe_running(process, children, plan, duration, model, begin)?)
}

/// The note on a program that ran already.
pub fn observed_note(attached: &AttachedProgram) -> String {
    format!("Process {} was observed while it ran.", attached.process)
}

/// Runs a program as planned, or attaches to one, and simulates a model on all of its processes.
pub fn run<M: Model>(
    options: &SimulationOptions,
    output: &OutputOptions,
    (configuration, plan): (Configuration, Plan),
    model: M,
) -> anyhow::Result<(Simulated<M>, KnownProcesses)> {
    let model = with_warm_up(options, model, options.plan.skip);
    let begin = |warm_up: &mut WarmUp<M>| {
        if is_parallel(options.host_processors) {
            // Without threads the model works on this one.
            let _ = warm_up.model.use_worker_thread();
        }
    };
    let observed = match &options.attached {
        Some(attached) => observe_running(attached, &plan, model, begin)?,
        None => with_output_apart(output, || family::observe(&configuration, &plan, model, begin))?,
    };
    let part = simulate::note(options, &observed.trace);
    let mut notes: Vec<String> = observed.ending.as_ref().and_then(until).into_iter().collect();
    notes.extend(options.attached.as_ref().map(observed_note));
    notes.extend(family_notes(&observed.processes, observed.left_out));
    let model = without_warm_up(options, &observed.trace, observed.model)?;
    let (trace, ending) = (observed.trace, observed.ending);
    let processes = observed.processes.into_iter().map(|process| (process.process, process)).collect();
    Ok((Simulated { model, trace, part, notes, ending, is_whole: true }, processes))
}

/// What readers must know of the processes.
pub fn family_notes(processes: &[ObservedProcess], left_out: u64) -> impl Iterator<Item = String> {
    let still_run = processes.iter().any(|process| process.state == ProcessState::Running);
    let until = still_run.then(|| "Processes that still run were observed until then.".to_string());
    let left_out = (left_out > 0)
        .then(|| format!("{left_out} processes are missing, as too many were observed at the same time."));
    until.into_iter().chain(left_out)
}

impl<M: InstructionResults + MergeableModel> SimulatedProcesses<M> {
    /// The models of all processes on each machine, with its name.
    fn together<'a>(
        &'a self,
        selected: &'a SelectedMachines,
    ) -> impl Iterator<Item = (&'a str, Together<'a, M>)> {
        together(&self.simulated.model, selected)
    }

    /// The tables with these rows.
    fn tables(&self, rows: Option<ResultRows>, selected: &SelectedMachines) -> Vec<table::Table> {
        let trace = &self.simulated.trace;
        match rows {
            None | Some(ResultRows::Process) => {
                let models = self.simulated.model.all_models().next();
                let models = models.map_or_else(Vec::new, |models| selected.named(models));
                models::by_process(&models, &self.results(&models))
            }
            Some(ResultRows::Own(rows)) => {
                let together: Vec<_> = self.together(selected).collect();
                let named: Vec<_> = together.iter().map(|(name, models)| (*name, models)).collect();
                models::by(rows, &named, trace)
            }
            Some(ResultRows::Calls(_) | ResultRows::Entries(_) | ResultRows::Class) => Vec::new(),
        }
    }

    /// The processes in the order of their numbers, on machines with these models.
    fn results(&self, machines: &[(&str, &M)]) -> Vec<ProcessResults> {
        let totals = self.simulated.model.totals().into_iter();
        let mut all: Vec<_> =
            totals.map(|(process, totals)| (self.processes.get(&process), process, totals)).collect();
        all.sort_by_key(|(known, process, _)| (known.map(|known| known.number.clone()), *process));
        let results = |(known, process, totals): (Option<&ObservedProcess>, u32, Vec<u64>)| {
            let mut rest = &totals[..];
            let of_machine = |&(_, model): &(&str, &M)| {
                let (own, others) = rest.split_at(model.columns().len());
                rest = others;
                own.to_vec()
            };
            ProcessResults {
                number: known.map_or_else(|| process.to_string(), |known| known.number.to_string()),
                program_and_end: known.map(|known| [known.program.clone(), family::describe(&known.state)]),
                totals: machines.iter().map(of_machine).collect(),
            }
        };
        all.into_iter().map(results).collect()
    }
}
