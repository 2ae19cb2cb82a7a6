//! The byte/word study: TPC-B on SQLite, built with and without the byte and word instructions,
//! run in two modes, compared. The question is that of the 1997 paper (Hunter and Betts).

mod page;
mod schemes;
pub mod strides;
mod tables;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::profile::{Attribution, Profile};
use analysis::statics::ImageStatics;
use analysis::table::Table;
use analysis::units::{Measurement, Phase, SteadyRules};
use engine::{Configuration, Settings, UnitOfWork};
use image::Image;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::schemes::{SCHEMES, Scheme, SchemeTime};
use crate::build::{self, Build, BuildFolders, build};
use crate::isolated;
use crate::measure::{self, CountRequest, Counted, Ending};
use crate::record;
use crate::toolchain::{BYTE_WORD, NATIVE, ORIGINAL};
use crate::workload::Workload;

/// A way to run the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// `cached` or `scaled`.
    pub name: &'static str,
    /// A description.
    pub meaning: &'static str,
    /// Transactions in a run: enough to reach the steady state and to measure.
    pub transactions: u32,
}

/// The paper's two modes.
pub const MODES: [Mode; 2] = [
    Mode {
        name: "cached",
        meaning: "the whole database fits SQLite's page cache, and the log write is the only input or output",
        transactions: 4000,
    },
    Mode {
        name: "scaled",
        meaning: "the database is larger than the page cache, so that transactions also read and write pages",
        transactions: 4000,
    },
];

/// The CPUs that the builds run on: an instruction that a build must not have is a fault.
const PROCESSORS: [isa::Cpu; 2] = [isa::Cpu::Ev5, isa::Cpu::Ev56];

/// Transactions in a window: as many as lie between two checkpoints, for a transaction gets longer as
/// the log does.
const WINDOW: usize = 250;

/// Transactions measured in the steady state: two checkpoints' worth.
const MEASURED: usize = 500;

/// Page-cache hits that make a steady state, as in the paper.
const HIT_RATIO: f64 = 0.95;

/// The C library under the sysroot.
const LIBRARY: &str = "lib/libc.so.6.1";

/// What to study.
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// Which modes to run.
    pub modes: Vec<Mode>,
    /// Where builds and databases are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// The progress of a study.
#[derive(Clone, Debug)]
pub enum StudyProgress {
    /// Builds are made.
    Building(build::BuildProgress),
    /// The database is made.
    Loading,
    /// Both builds run in this mode.
    Running(&'static str),
    /// Units of work so far in the first build's run, and the phase of the measurement.
    Units(u64, Phase),
    /// The machines are simulated on both builds in this mode.
    Timing(&'static str),
}

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A build failed.
    #[error(transparent)]
    Build(#[from] build::Error),
    /// A run failed.
    #[error("{build} build, {mode}: {error}")]
    Run {
        /// The build.
        build: &'static str,
        /// The mode.
        mode: &'static str,
        /// What went wrong.
        error: isolated::Error,
    },
    /// The workload itself reported a failure.
    #[error("{build} build, {mode}: {reason}")]
    Workload {
        /// The build.
        build: &'static str,
        /// The mode.
        mode: &'static str,
        /// How it ended, and its output.
        reason: String,
    },
    /// The database could not be made.
    #[error("cannot make the database: {0}")]
    Load(String),
    /// An image that was just built cannot be read.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// The builds could not run.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// Another study uses the same folder.
    #[error("another study is running in {}: wait for it, or work in another directory", .0.display())]
    Busy(PathBuf),
    /// Files could not be made or copied.
    #[error("cannot prepare {}: {error}", .path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Programs for Alpha cannot run.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no C library for Alpha at {}: install it (Debian: apt-get install libc6.1-alpha-cross) or \
     name its sysroot with --sysroot DIR", .0.display()
)]
pub struct NoLibrary(PathBuf);

/// One build's run in one mode.
pub struct StudyRun {
    /// Exact counts of the whole run.
    pub counted: Counted,
    /// The transactions measured.
    pub measurement: Measurement,
    /// The mean profile of a transaction.
    pub profile: Profile,
    /// The program's output.
    pub output: String,
}

/// A mode with the runs of both builds.
pub struct ModeResult {
    /// The mode.
    pub mode: Mode,
    /// Original, byte-word.
    pub runs: [StudyRun; 2],
    /// How long transactions take, in the order of [`SCHEMES`].
    pub times: [SchemeTime; 3],
}

/// Everything the study found.
pub struct Study {
    /// The workload.
    pub workload: &'static Workload,
    /// Original, byte-word.
    pub builds: [Build; 2],
    /// The contents of their images.
    pub statics: [Vec<ImageStatics>; 2],
    /// The modes, in the requested order.
    pub modes: Vec<ModeResult>,
    /// Commands and versions that made it: what, and its value.
    pub provenance: Vec<(String, String)>,
}

impl Study {
    /// The tables for the terminal: the answer and little more.
    pub fn summary(&self) -> Vec<Table> {
        tables::summary(self)
    }

    /// Every table.
    pub fn tables(&self) -> Vec<Table> {
        tables::all(self)
    }

    /// The report as a page.
    pub fn page(&self) -> Result<report::Page, report::Error> {
        page::page(self)
    }
}

/// Builds, runs and compares.
pub fn byteword(options: &StudySettings, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<Study, Error> {
    let workload = Workload::named("tpcb").expect("the workload is in the table");
    check_library(&options.sysroot)?;
    let building = |step| progress(StudyProgress::Building(step));
    let mut builds = build(workload, &[ORIGINAL, BYTE_WORD, NATIVE], &options.build, &building)?;
    let native = builds.pop().expect("three were asked for");
    let builds: [Build; 2] = builds.try_into().expect("two are left");
    let folder = options.build.folder.join(workload.name).join("runs");
    let _lock = lock(&folder)?;
    progress(StudyProgress::Loading);
    let database = load(&native, &folder)?;
    let mut modes = Vec::new();
    for &mode in &options.modes {
        let setting =
            Setting { mode, workload, builds: &builds, folder: &folder, database: &database, options };
        progress(StudyProgress::Running(mode.name));
        let runs = setting.count(progress)?;
        progress(StudyProgress::Timing(mode.name));
        let times = setting.time(&runs)?;
        modes.push(ModeResult { mode, runs, times });
    }
    let statics = [images(&builds[0])?, images(&builds[1])?];
    let provenance = provenance(&builds, &options.sysroot);
    Ok(Study { workload, builds, statics, modes, provenance })
}

/// Checks, before minutes of work, that programs for Alpha can run.
fn check_library(sysroot: &Path) -> Result<(), NoLibrary> {
    let library = sysroot.join(LIBRARY);
    if library.exists() { Ok(()) } else { Err(NoLibrary(library)) }
}

/// A run that is the same everywhere.
fn repeatable(program: PathBuf, arguments: Vec<OsString>, model: isa::Cpu, sysroot: &Path) -> Configuration {
    Configuration {
        program,
        name: None,
        arguments,
        // The environment may change a program's behaviour.
        environment: vec!["LC_ALL=C".into()],
        model,
        settings: Settings { sysroot: sysroot.into(), ..Settings::default() },
    }
}

/// Makes the folder of the runs and keeps others out of it: its name is the same each time, so that
/// the programs see the same paths.
fn lock(folder: &Path) -> Result<fs::File, Error> {
    let failed = |error| Error::Files { path: folder.into(), error };
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = record::out_of_reach(fs::File::create(folder.join("lock")).map_err(failed)?);
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(Error::Busy(folder.into())),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Makes the database with the host's own build: its bytes do not depend on the build.
fn load(native: &Build, folder: &Path) -> Result<PathBuf, Error> {
    let database = folder.join("loaded.db");
    let output = Command::new(&native.program).arg("load").arg(&database).output();
    let output = output.map_err(|error| Error::Load(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Load(String::from_utf8_lossy(&output.stderr).trim().into()));
    }
    Ok(database)
}

/// What both builds run in.
struct Setting<'a> {
    mode: Mode,
    workload: &'static Workload,
    /// Original, byte-word.
    builds: &'a [Build; 2],
    /// Where databases are while programs run.
    folder: &'a Path,
    /// The one that each run begins with.
    database: &'a Path,
    options: &'a StudySettings,
}

impl Setting<'_> {
    /// Counts both builds' instructions.
    fn count(&self, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<[StudyRun; 2], Error> {
        let count = |configuration: Configuration, _, tell: &mut (dyn FnMut((u64, Phase)) + Send)| {
            let gauges = self.workload.gauges.iter().map(|&gauge| gauge.into()).collect();
            let work = UnitOfWork { function: self.workload.unit.into(), gauges };
            let rules = SteadyRules {
                window: WINDOW,
                measure: MEASURED,
                hit_ratio: Some(HIT_RATIO),
                ..SteadyRules::default()
            };
            let request = CountRequest { configuration, unit: Some((work, rules)) };
            measure::count(&request, &mut |units, phase| {
                if units.is_multiple_of(64) || phase == Phase::Done {
                    tell((units, phase));
                }
            })
        };
        let report = &mut |(units, phase)| progress(StudyProgress::Units(units, phase));
        let mut runs = Vec::new();
        for (build, (counted, output)) in self.builds.iter().zip(self.both(count, report)?) {
            let failed = |reason| Error::Workload { build: build.name, mode: self.mode.name, reason };
            runs.push(finished(counted, output).map_err(failed)?);
        }
        Ok(runs.try_into().unwrap_or_else(|_| unreachable!("two builds make two runs")))
    }

    /// Runs both builds at once, each in a process of its own, and with a copy of the database. `run` gets the
    /// number of the build.
    fn both<T: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned, E: ToString>(
        &self,
        run: impl Fn(Configuration, usize, &mut (dyn FnMut(P) + Send)) -> Result<T, E>,
        progress: &mut dyn FnMut(P),
    ) -> Result<[(T, String); 2], Error> {
        let mode = self.mode.name;
        let mut running = Vec::new();
        for (number, build) in self.builds.iter().enumerate() {
            let own = self.folder.join(format!("{mode}-{}.db", build.name));
            for suffix in ["-wal", "-shm", "-journal"] {
                // An interrupted run may have left one.
                let _ = fs::remove_file(own.with_extension(format!("db{suffix}")));
            }
            fs::copy(self.database, &own).map_err(|error| Error::Files { path: own.clone(), error })?;
            let configuration = self.configuration(number, &own);
            let started =
                isolated::start(|tell: &mut (dyn FnMut(P) + Send)| run(configuration, number, tell));
            running.push((own, started.map_err(|error| Error::Run { build: build.name, mode, error })?));
        }
        let mut ended = Vec::new();
        for (build, (own, running)) in self.builds.iter().zip(running) {
            let result =
                running.wait(progress).map_err(|error| Error::Run { build: build.name, mode, error })?;
            // A copy that cannot be removed is overwritten next time.
            let _ = fs::remove_file(&own);
            ended.push(result);
        }
        Ok(ended.try_into().unwrap_or_else(|_| unreachable!("two builds make two runs")))
    }

    fn configuration(&self, build: usize, database: &Path) -> Configuration {
        let mode = self.mode;
        let arguments = ["run".into(), database.into(), "--mode".into(), mode.name.into()];
        let transactions = ["--transactions".into(), mode.transactions.to_string().into()];
        repeatable(
            self.builds[build].program.clone(),
            arguments.into_iter().chain(transactions).collect(),
            PROCESSORS[build],
            &self.options.sysroot,
        )
    }
}

fn finished(counted: Counted, output: String) -> Result<StudyRun, String> {
    match &counted.ending {
        Ending::Exited(0) => {}
        Ending::Exited(status) => return Err(format!("exit status {status}\n{output}")),
        Ending::Killed { report, .. } => return Err(report.clone()),
    }
    let measurement = counted.measurement.clone().ok_or("nothing was measured")?;
    let profile = Attribution::new(&counted.counts).mean(&measurement.units);
    Ok(StudyRun { counted, measurement, profile, output })
}

fn images(build: &Build) -> Result<Vec<ImageStatics>, Error> {
    build.images.iter().map(|path| Ok(ImageStatics::of(&Image::open(path)?))).collect()
}

/// Who and what made the result: the versions of everything that has one, and the commands.
fn provenance(builds: &[Build; 2], sysroot: &Path) -> Vec<(String, String)> {
    let folder = builds[0].program.parent().unwrap_or(Path::new("."));
    let sqlite = version_after(&folder.join("sqlite3.h"), b"#define SQLITE_VERSION ");
    let library = version_after(&sysroot.join(LIBRARY), b"stable release version ");
    let unknown = || "unknown".to_string();
    let mut facts = vec![
        ("Command".into(), "pathlength study byteword".into()),
        ("pathlength".into(), env!("CARGO_PKG_VERSION").into()),
        ("SQLite".into(), sqlite.unwrap_or_else(unknown)),
        ("Compiler of both builds".into(), builds[0].compiler.clone()),
        (
            "C library, the same for both builds".into(),
            library.map_or_else(unknown, |v| format!("glibc {v}")),
        ),
    ];
    for (build, cpu) in builds.iter().zip(PROCESSORS) {
        facts.push((format!("{} build", build.name), build.commands.join("\n")));
        facts.push((format!("{} build runs on", build.name), format!("--cpu {cpu}")));
    }
    facts
}

/// The version that follows `marker` in a file: digits, letters and points, perhaps in quotes.
fn version_after(path: &Path, marker: &[u8]) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let at = bytes.windows(marker.len()).position(|window| window == marker)? + marker.len();
    let version = bytes[at..].iter().map(|&byte| char::from(byte)).skip_while(|c| !c.is_alphanumeric());
    let version: String = version.take_while(|c| c.is_alphanumeric() || *c == '.').collect();
    Some(version.trim_end_matches('.').into())
}
