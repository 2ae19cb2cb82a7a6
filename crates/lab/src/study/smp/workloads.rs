//! The workloads of the study, each recorded once: its trace is kept beside the builds, and is named on the page.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Configuration, Plan, UnitPlan};
use trace::Trace;

use super::settings::SmpStudySettings;
use crate::build::{Build, build};
use crate::isolated;
use crate::measure::Ending;
use crate::record;
use crate::study::database::{StudyProgress, check_success};
use crate::study::environment::{PROCESSORS, repeatable};
use crate::study::error::Error;
use crate::study::server::{ServerBuilds, ServerConnection, TRANSACTION};
use crate::toolchain::BYTE_WORD;
use crate::workload::Workload;

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkloadKind {
    /// A database.
    Commercial,
    /// Processes that share nothing.
    Rates,
    /// Threads that share their work.
    Parallel,
}

/// A recorded workload.
pub(super) struct RecordedWorkload {
    pub(super) name: String,
    pub(super) kind: WorkloadKind,
    /// The file, and what it has.
    pub(super) path: PathBuf,
    pub(super) trace: Trace,
    /// Units of work that warm machines up.
    pub(super) warm_up: u64,
}

/// The clients of the server: more than processors, so that one has work while a transaction waits.
pub(super) const CLIENTS: u32 = 8;
/// Transactions of each client before recording begins: processes fill their caches of catalogues, and plan statements for the last
/// time.
const START: u32 = 8;
/// Branches of the bank of TPC-B, so that few transactions wait for each other.
const BRANCHES: &str = "8";
/// The number of the build that is recorded.
const BUILD: usize = 1;
/// What runs are called in errors.
const MODE: &str = "cached";

/// A technical workload: its kernel, its size in each mode, and its iterations. Data are larger than the caches of 1 MB.
struct Kernel {
    name: &'static str,
    size: u32,
    iterations: u32,
}

/// The technical workloads: 4.8 MB of vectors, 3.1 MB of a matrix, 2 x 1 MB of grids.
const KERNELS: [Kernel; 3] = [
    Kernel { name: "stream", size: 200_000, iterations: 2 },
    Kernel { name: "cg", size: 20_000, iterations: 3 },
    Kernel { name: "stencil", size: 360, iterations: 4 },
];
/// Processes, or threads, of a technical workload.
const WORKERS: u32 = 4;

/// The folder of traces.
fn folder(settings: &SmpStudySettings) -> Result<PathBuf, Error> {
    let folder = settings.build.folder.join("smp");
    fs::create_dir_all(&folder).map_err(|error| Error::Files { path: folder.clone(), error })?;
    Ok(folder)
}

/// The name of a trace: it is another one if the build is.
fn file_name(name: &str, build: &Build) -> String {
    let build = build.folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-{build}.trace")
}

fn opened(name: &str, kind: WorkloadKind, path: PathBuf, warm_up: u64) -> Result<RecordedWorkload, Error> {
    match Trace::open(&path) {
        Ok(trace) => Ok(RecordedWorkload { name: name.into(), kind, path, trace, warm_up }),
        Err(error) => Err(Error::Trace { path, reason: error.to_string() }),
    }
}

/// The plan of a recording: calls of a function, but for the first ones.
fn plan(function: &str, skip: u32) -> Plan {
    let unit = UnitPlan { function: function.into(), skip: skip.into(), units: None };
    Plan { unit: Some(unit), ..Plan::default() }
}

/// TPC-B on PostgreSQL, with several clients at the same time.
pub(super) fn commercial(
    settings: &SmpStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<(RecordedWorkload, Vec<(String, String)>), Error> {
    let server = ServerBuilds::prepare(&settings.build, &settings.sysroot, progress)?;
    let build = &server.builds[BUILD];
    let each = settings.transactions.div_ceil(CLIENTS);
    let name = format!("tpcb-{CLIENTS}x{each}");
    let path = folder(settings)?.join(file_name(&name, build));
    if !path.exists() {
        progress(StudyProgress::Loading);
        let load = |connection: &ServerConnection| pgbench(connection, &["-i", "-q", "-s", BRANCHES]);
        server.load_once(&format!("tpcb-{BRANCHES}"), &[&load])?;
        progress(StudyProgress::Doing(format!("recording {CLIENTS} clients of PostgreSQL")));
        let recorded = server.folder().join("trace");
        let record = |configuration: &Configuration| {
            // Eight clients keep the server busy: it need not wait for them.
            let mut configuration = configuration.clone();
            configuration.settings.dilation = 1;
            let recording = record::record(&configuration, &plan(TRANSACTION, START * CLIENTS), &recorded);
            recording.map(|it| (it.recorded.units, Some(it.ending))).map_err(|error| error.to_string())
        };
        let (clients, each) = (CLIENTS.to_string(), (START + each).to_string());
        let options =
            ["-n", "--random-seed=1", "-M", "prepared", "-c", &clients, "-j", &clients, "-t", &each];
        let client = |connection: &ServerConnection| pgbench(connection, &options);
        let (units, _) = server.run(BUILD, &client, record)?;
        server.remove(BUILD);
        keep(&recorded, &path)?;
        let expected = u64::from(CLIENTS * (START + settings.transactions.div_ceil(CLIENTS)));
        if units < expected {
            let reason = format!("{units} of {expected} transactions were recorded");
            return Err(Error::Workload { build: build.name, mode: MODE, reason });
        }
    }
    let provenance = vec![
        ("PostgreSQL".into(), server.version().unwrap_or_else(|| "unknown".into())),
        ("Compiler".into(), build.compiler.clone()),
        (format!("{} build", build.name), build.commands.join("\n")),
    ];
    let warm_up = u64::from(CLIENTS * each) / 4;
    Ok((opened("TPC-B, PostgreSQL", WorkloadKind::Commercial, path, warm_up)?, provenance))
}

/// PostgreSQL's client for TPC-B.
fn pgbench(connection: &ServerConnection, options: &[&str]) -> Command {
    let mut command = connection.program("pgbench");
    command.args(options).arg("postgres");
    command
}

/// Moves a trace to where it is kept; an interrupted move leaves none.
fn keep(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error| Error::Files { path: to.into(), error };
    let unfinished = to.with_extension("unfinished");
    fs::copy(from, &unfinished).map_err(failed)?;
    fs::rename(&unfinished, to).map_err(failed)?;
    // What stays is removed with its folder.
    let _ = fs::remove_file(from);
    Ok(())
}

/// The technical workloads, as rates and in parallel.
pub(super) fn technical(
    settings: &SmpStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<Vec<RecordedWorkload>, Error> {
    let workload = Workload::named("technical").expect("the workload is in the table");
    let building = |step| progress(StudyProgress::Building(step));
    let build = build(workload, &[BYTE_WORD], &settings.build, &building)?.remove(0);
    let mut recorded = Vec::new();
    for kernel in &KERNELS {
        for (mode, kind) in [("rates", WorkloadKind::Rates), ("parallel", WorkloadKind::Parallel)] {
            let name = format!("{}, {mode}", kernel.name);
            let path = folder(settings)?.join(file_name(&format!("{}-{mode}", kernel.name), &build));
            if !path.exists() {
                progress(StudyProgress::Doing(format!("recording {name}")));
                record_kernel(settings, &build, kernel, mode, &path)?;
            }
            recorded.push(opened(&name, kind, path, WORKERS.into())?);
        }
    }
    Ok(recorded)
}

fn record_kernel(
    settings: &SmpStudySettings,
    build: &Build,
    kernel: &Kernel,
    mode: &str,
    path: &Path,
) -> Result<(), Error> {
    let numbers = [WORKERS, kernel.size, kernel.iterations].map(|number| number.to_string());
    let arguments = [kernel.name, mode].into_iter().map(OsString::from).chain(numbers.map(OsString::from));
    let configuration =
        repeatable(build.program.clone(), arguments.collect(), PROCESSORS[BUILD], &settings.sysroot);
    let plan = plan("iteration", 0);
    let unfinished = path.with_extension("unfinished");
    let run = |_: &mut (dyn FnMut(()) + Send)| -> Result<Ending, crate::measure::Error> {
        let recording = record::record(&configuration, &plan, &unfinished);
        recording.map(|it| it.ending)
    };
    let of_run = |error| Error::Run { build: build.name, mode: MODE, error };
    let (ending, output) = isolated::start(run).map_err(of_run)?.wait(&mut |()| {}).map_err(of_run)?;
    let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
    check_success(&ending, &output).map_err(failed)?;
    fs::rename(&unfinished, path).map_err(|error| Error::Files { path: path.into(), error })
}
