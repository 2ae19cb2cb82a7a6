//! A server on a machine of nodes: which operations on the interconnect a transaction of PostgreSQL needs, and how many fewer once
//! clients have rows of their own and the data that all processes share are laid out for cache lines. D. Suggs asked that of Oracle on
//! CC-NUMA in 1998.

mod benchmarks;
mod difference;
mod page;
mod simulation;
mod structures;
mod tables;

use std::path::PathBuf;

use analysis::models::ExecutionPart;
use analysis::sharing::{self, SharingAnalysis};
use table::Table;
use trace::Trace;
use trace::interleave::Assignment;

pub use self::benchmarks::NumaBenchmark;
use self::benchmarks::{NumaStep, STEPS};
use self::difference::{MeanDifference, difference};
use self::simulation::{NumaCase, NumaResult, ServerTrace, TimedResult, simulate, simulate_in_time};
use super::database::StudyProgress;
use super::error::Error;
use super::recorded_server::{ServerRecording, trace_folder};
use super::server::ServerBuilds;
use crate::StudyReport;
use crate::provenance::provenance_of;
use workloads::build::{BuildFolders, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::POSTGRESQL_CACHE_LINES;

/// What to study.
#[derive(Clone, Debug)]
pub struct NumaStudySettings {
    /// Transactions of each client.
    pub transactions: u32,
    /// The benchmarks. Other machines, numbers of clients and schedules are tried with the first one.
    pub benchmarks: Vec<NumaBenchmark>,
    /// The most recordings of each step.
    pub most_recordings: u32,
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// The machines: that of the talk, and a present-day one.
const MACHINES: [&str; 2] = ["av20000", "present-day-numa"];
/// The numbers of clients, each of which has a process of the server.
const CLIENTS: [u32; 3] = [4, 8, 16];
/// All clients.
const MOST_CLIENTS: u32 = CLIENTS[CLIENTS.len() - 1];
/// The processors of the talk's machine, four in a node.
const PROCESSORS: u32 = 16;
/// The most recordings of each step, unless the settings say otherwise.
pub const MOST_RECORDINGS: u32 = 8;
/// Recordings of each step before their differences are looked at.
const LEAST_RECORDINGS: u32 = 3;
/// Recording ends when half of the interval of each difference is less, in percent.
const ACCURACY: f64 = 5.0;

/// Everything that was found.
pub struct NumaStudy {
    benchmarks: Vec<BenchmarkResult>,
    /// Of the first benchmark as it is: the talk's machine, with both directories, and the present-day one.
    machines: Vec<NumaResult>,
    /// Numbers of nodes.
    nodes: Vec<NumaResult>,
    /// Numbers of clients.
    clients: Vec<NumaResult>,
    /// Scheduling on two nodes, and placement of pages on four.
    schedules: Vec<NumaResult>,
    provenance: Vec<(String, String)>,
}

/// The results of a benchmark.
struct BenchmarkResult {
    benchmark: NumaBenchmark,
    /// In the order of [`STEPS`].
    steps: Vec<StepResult>,
    /// What moves most, by function, and what would move together: as it is. Of the first recording.
    functions: Table,
    partners: Table,
    /// The lines that move most in the first step and in the last one.
    lines: [Table; 2],
    /// What is shared, in each step.
    shared: Table,
}

/// The results of a step.
struct StepResult {
    /// On the talk's machine, by recording.
    recordings: Vec<NumaResult>,
    /// The first recording in time.
    timed: TimedResult,
}

/// A server as it is and changed, and where its traces are.
struct StepRecorder<'a> {
    server: ServerBuilds,
    settings: &'a NumaStudySettings,
    folder: PathBuf,
    progress: &'a (dyn Fn(StudyProgress) + Sync),
}

/// Builds both servers, records them, and simulates the machines.
pub fn numa(
    settings: &NumaStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<NumaStudy, Error> {
    let mut server = ServerBuilds::prepare(&[BYTE_WORD], &settings.build, &settings.sysroot, progress)?;
    let building = |step| progress(StudyProgress::Building(step));
    let changed = build(&POSTGRESQL_CACHE_LINES, &[BYTE_WORD], &settings.build, &building)?.remove(0);
    let mut provenance = provenance_of(
        "pathlength study numa",
        ("PostgreSQL", server.version()),
        &server.builds,
        &settings.sysroot,
    );
    provenance.push(("byte-word build, changed".into(), changed.commands.join("\n")));
    server.builds.push(changed);
    let folder = trace_folder(&settings.build, "numa")?;
    let recorder = StepRecorder { server, settings, folder, progress };
    let benchmarks = settings.benchmarks.iter().map(|&benchmark| recorder.benchmark(benchmark));
    let benchmarks = benchmarks.collect::<Result<Vec<_>, _>>()?;
    let first = &benchmarks[0];
    let (as_it_is, talk) = (&STEPS[0], &first.steps[0].recordings[0]);
    let with_clients = |clients| recorder.trace(first.benchmark, as_it_is, clients, 1);
    let (few, some, all) =
        (with_clients(CLIENTS[0])?, with_clients(CLIENTS[1])?, with_clients(MOST_CLIENTS)?);
    let of = |trace: &ServerTrace, case: NumaCase| recorder.simulate(trace, &case).map(|(result, _)| result);
    let set = |setting: &str| of(&all, NumaCase { settings: vec![setting.into()], ..base() });
    let machines = vec![
        talk.clone(),
        set("coherence.nodes.directory=bit-vector")?,
        of(&all, NumaCase { machine: MACHINES[1], ..base() })?,
    ];
    let nodes =
        vec![set("coherence.nodes.processors=8")?, talk.clone(), set("coherence.nodes.processors=2")?];
    let of_clients = |trace, clients| of(trace, NumaCase { clients, ..base() });
    let clients = vec![of_clients(&few, CLIENTS[0])?, of_clients(&some, CLIENTS[1])?, talk.clone()];
    let mut schedules = Vec::new();
    for assignment in [Assignment::Affinity, Assignment::RoundRobin, Assignment::RunToBlock] {
        schedules.push(of(&all, NumaCase { processors: PROCESSORS / 2, assignment, ..base() })?);
    }
    schedules.push(talk.clone());
    schedules.push(set("coherence.nodes.placement=round-robin")?);
    schedules.push(set("coherence.nodes.placement=fixed")?);
    Ok(NumaStudy { machines, nodes, clients, schedules, benchmarks, provenance })
}

/// The talk's machine with all clients.
fn base() -> NumaCase {
    NumaCase {
        machine: MACHINES[0],
        settings: Vec::new(),
        clients: MOST_CLIENTS,
        processors: PROCESSORS,
        assignment: Assignment::Affinity,
    }
}

impl StepRecorder<'_> {
    /// A recording of a step with so many clients, one of several.
    fn trace(
        &self,
        benchmark: NumaBenchmark,
        step: &NumaStep,
        clients: u32,
        number: u32,
    ) -> Result<ServerTrace, Error> {
        let build = usize::from(step.is_changed);
        let load = benchmark.load(MOST_CLIENTS, step);
        let recording =
            ServerRecording { clients, each: self.settings.transactions, load, number, heap: true };
        let path = recording.trace(&self.server, build, &self.folder, self.progress)?;
        let trace = Trace::open(&path).map_err(|error| Error::Trace { path, reason: error.to_string() })?;
        Ok(ServerTrace { benchmark, trace, transactions: recording.transactions() })
    }

    fn simulate(&self, trace: &ServerTrace, case: &NumaCase) -> Result<(NumaResult, SharingAnalysis), Error> {
        let label = format!("simulating {} on {}", trace.benchmark.title(), case.label());
        (self.progress)(StudyProgress::Doing(label));
        simulate(trace, case).map_err(Error::Server)
    }

    /// Records and simulates all steps, until their differences are known or there are enough recordings.
    fn benchmark(&self, benchmark: NumaBenchmark) -> Result<BenchmarkResult, Error> {
        let mut first = Vec::new();
        for step in &STEPS {
            let trace = self.trace(benchmark, step, MOST_CLIENTS, 1)?;
            let (result, model) = self.simulate(&trace, &base())?;
            (self.progress)(StudyProgress::Doing("simulating in time".into()));
            let timed = simulate_in_time(&trace, &base()).map_err(Error::Server)?;
            let data = sharing::by_data(&model, ExecutionPart::Whole, &trace.trace);
            first.push((StepResult { recordings: vec![result], timed }, data, (trace, model)));
        }
        let shared = {
            let steps: Vec<_> = std::iter::zip(&STEPS, &first)
                .map(|(step, (result, data, _))| (step.name, &result.recordings[0], data))
                .collect();
            structures::shared(benchmark, &steps)
        };
        let lines = [(0, "before"), (STEPS.len() - 1, "after")].map(|(index, when)| {
            let (_, _, (trace, model)) = &first[index];
            tables::by_line(model, &trace.trace, benchmark, when)
        });
        let (_, _, (trace, model)) = &first[0];
        let functions = tables::by_function(model, &trace.trace, benchmark);
        let partners = tables::partners(model, &trace.trace, benchmark);
        let steps = first.into_iter().map(|(result, ..)| result).collect();
        let mut result = BenchmarkResult { benchmark, steps, functions, partners, lines, shared };
        for number in 2..=self.settings.most_recordings {
            if number > LEAST_RECORDINGS && result.is_accurate() {
                break;
            }
            for (index, step) in STEPS.iter().enumerate() {
                let trace = self.trace(benchmark, step, MOST_CLIENTS, number)?;
                result.steps[index].recordings.push(self.simulate(&trace, &base())?.0);
            }
        }
        Ok(result)
    }
}

impl BenchmarkResult {
    /// A value of each recording of a step.
    fn values(&self, step: usize, of: impl Fn(&NumaResult) -> f64) -> Vec<f64> {
        self.steps[step].recordings.iter().map(of).collect()
    }

    /// The operations of the transaction that is compared, by recording of a step.
    fn operations(&self, step: usize) -> Vec<f64> {
        self.values(step, |result| result.of_unit(self.benchmark))
    }

    /// What a step changes since another one.
    fn change(&self, from: usize, to: usize) -> MeanDifference {
        difference(&self.operations(from), &self.operations(to))
    }

    /// Whether the steps' differences are known well enough: of each from the first one, and of the last one from the one before.
    fn is_accurate(&self) -> bool {
        let last = STEPS.len() - 1;
        let pairs = (1..=last).map(|step| (0, step)).chain([(last - 1, last)]);
        let is_known = |(from, to)| self.change(from, to).half_width.is_some_and(|half| half < ACCURACY);
        pairs.into_iter().all(is_known)
    }
}

impl NumaStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: page::page(self)? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        let mut tables = vec![tables::steps(&self.benchmarks)];
        tables.extend(self.benchmarks.iter().map(tables::changes));
        tables
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        let mut tables = self.summary();
        tables.extend([
            tables::machines(&self.machines, self.benchmarks[0].benchmark),
            tables::nodes(&self.nodes),
            tables::clients(&self.clients),
            tables::schedules(&self.schedules),
        ]);
        for result in &self.benchmarks {
            tables.extend([result.shared.clone(), result.functions.clone()]);
            tables.extend(result.lines.iter().cloned());
            tables.push(result.partners.clone());
        }
        tables
    }
}
