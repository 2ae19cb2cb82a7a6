//! The workloads of the study, each recorded once: its trace is kept beside the builds, and is named on the page.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use session::measure::Ending;
use session::{forked_run, record};
use trace::Trace;
use workloads::build::{Build, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::Workload;

use super::settings::SmpStudySettings;
use crate::database::{StudyProgress, check_success};
use crate::environment::{processor, repeatable};
use crate::error::Error;
use crate::recorded_server::{
    ServerLoad, ServerRecording, TransactionBenchmark, trace_folder, trace_name, unit_plan,
};
use crate::server::ServerBuilds;

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
/// As many as fit the server's buffers.
const WAREHOUSES: u32 = 2;
/// The folder of traces.
const FOLDER: &str = "smp";
/// The number of the build that is recorded.
const BUILD: usize = 0;
/// What runs are called in errors.
const MODE: &str = "cached";

/// A technical workload: its kernel, its size in each mode, and its iterations. Data are larger than the caches of 1 MB.
struct BenchmarkKernel {
    name: &'static str,
    size: u32,
    iterations: u32,
}

/// The technical workloads: 4.8 MB of vectors, 3.1 MB of a matrix, 2 x 1 MB of grids.
const KERNELS: [BenchmarkKernel; 3] = [
    BenchmarkKernel { name: "stream", size: 200_000, iterations: 2 },
    BenchmarkKernel { name: "cg", size: 20_000, iterations: 3 },
    BenchmarkKernel { name: "stencil", size: 360, iterations: 4 },
];
/// Processes, or threads, of a technical workload.
const WORKERS: u32 = 4;

fn opened(name: &str, kind: WorkloadKind, path: PathBuf, warm_up: u64) -> Result<RecordedWorkload, Error> {
    match Trace::open(&path) {
        Ok(trace) => Ok(RecordedWorkload { name: name.into(), kind, path, trace, warm_up }),
        Err(error) => Err(Error::Trace { path, reason: error.to_string() }),
    }
}

/// TPC-C on PostgreSQL, with several clients at the same time.
pub(super) fn commercial(
    settings: &SmpStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<(RecordedWorkload, Vec<(String, String)>), Error> {
    let server = ServerBuilds::prepare(&[BYTE_WORD], &settings.build, &settings.sysroot, progress)?;
    let build = &server.builds[BUILD];
    let each = settings.transactions.div_ceil(CLIENTS);
    let load = ServerLoad { benchmark: TransactionBenchmark::Tpcc(&[]), size: WAREHOUSES, is_placed: false };
    let recording = ServerRecording { load, clients: CLIENTS, each, number: 1, heap: false };
    let path = recording.trace(&server, BUILD, &trace_folder(&settings.build, FOLDER)?, progress)?;
    let provenance = vec![
        ("PostgreSQL".into(), server.version().unwrap_or_else(|| "unknown".into())),
        ("Compiler".into(), build.compiler.clone()),
        (format!("{} build", build.name), build.commands.join("\n")),
    ];
    let warm_up = u64::from(recording.transactions()) / 4;
    Ok((opened("TPC-C, PostgreSQL", WorkloadKind::Commercial, path, warm_up)?, provenance))
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
            let path = trace_folder(&settings.build, FOLDER)?
                .join(trace_name(&format!("{}-{mode}", kernel.name), &build));
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
    kernel: &BenchmarkKernel,
    mode: &str,
    path: &Path,
) -> Result<(), Error> {
    let numbers = [WORKERS, kernel.size, kernel.iterations].map(|number| number.to_string());
    let arguments = [kernel.name, mode].into_iter().map(OsString::from).chain(numbers.map(OsString::from));
    let configuration =
        repeatable(build.program.clone(), arguments.collect(), processor(build), &settings.sysroot);
    let plan = unit_plan("iteration", 0);
    let unfinished = path.with_extension("unfinished");
    let run = |_: &mut (dyn FnMut(()) + Send)| -> Result<Ending, session::measure::Error> {
        let recording = record::record(&configuration, &plan, &unfinished);
        recording.map(|it| it.ending)
    };
    let of_run = |error| Error::Run { build: build.name, mode: MODE, error };
    let (ending, output) = forked_run::start(run).map_err(of_run)?.wait(&mut |()| {}).map_err(of_run)?;
    let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
    check_success(&ending, &output).map_err(failed)?;
    fs::rename(&unfinished, path).map_err(|error| Error::Files { path: path.into(), error })
}
