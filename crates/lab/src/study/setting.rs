//! What the builds of a study run in.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::profile::Attribution;
use analysis::units::{Phase, SteadyRules};
use engine::{Configuration, Settings, UnitOfWork};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::result::{Error, Mode, StudyRun};
use crate::build::{self, Build, BuildFolders};
use crate::isolated;
use crate::measure::{self, CountRequest, Counted, Ending};
use crate::workload::Workload;

/// The CPUs that the builds run on: an instruction that a build must not have is a fault.
pub(super) const PROCESSORS: [isa::Cpu; 2] = [isa::Cpu::Ev5, isa::Cpu::Ev56];

/// Transactions in a window: as many as lie between two checkpoints, for a transaction gets longer as
/// the log does.
const WINDOW: usize = 250;

/// Transactions measured in the steady state: two checkpoints' worth.
const MEASURED: usize = 500;

/// Page-cache hits that make a steady state, as in the paper.
const HIT_RATIO: f64 = 0.95;

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

/// A run that is the same everywhere.
pub(super) fn repeatable(
    program: PathBuf,
    arguments: Vec<OsString>,
    model: isa::Cpu,
    sysroot: &Path,
) -> Configuration {
    Configuration {
        program,
        name: None,
        arguments,
        // The environment may change a program's behaviour.
        environment: vec!["LC_ALL=C".into()],
        model,
        settings: Settings { sysroot: Some(sysroot.into()), ..Settings::default() },
    }
}

/// What both builds run in.
pub(super) struct Setting<'a> {
    pub(super) mode: Mode,
    pub(super) workload: &'static Workload,
    /// Original, byte-word.
    pub(super) builds: &'a [Build; 2],
    /// Where databases are while programs run.
    pub(super) folder: &'a Path,
    /// The one that each run begins with.
    pub(super) database: &'a Path,
    pub(super) options: &'a StudySettings,
}

impl Setting<'_> {
    /// Counts both builds' instructions.
    pub(super) fn count(&self, progress: &(dyn Fn(StudyProgress) + Sync)) -> Result<[StudyRun; 2], Error> {
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
    pub(super) fn both<T: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned, E: ToString>(
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

    pub(super) fn configuration(&self, build: usize, database: &Path) -> Configuration {
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
