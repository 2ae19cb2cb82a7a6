//! A database workload in both builds: the database is made once, and each run begins with a copy of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::units::Phase;
use engine::Configuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use session::measure::Ending;
use session::{descriptors, forked_run};
use workloads::build::{self, Build, BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE, ORIGINAL};
use workloads::workload::Workload;

use crate::environment::{check_library, processor, repeatable};
use crate::error::Error;

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
    /// Something else, in words.
    Doing(String),
}

/// The builds of a workload, and the database that its runs begin with.
pub(crate) struct DatabaseBuilds {
    /// The workload.
    pub(crate) workload: &'static Workload,
    /// Original, byte-word.
    pub(crate) builds: [Build; 2],
    /// Where databases are while programs run.
    folder: PathBuf,
    /// The one that each run begins with.
    database: PathBuf,
    sysroot: PathBuf,
    /// Keeps others out of the folder.
    _lock: fs::File,
}

impl DatabaseBuilds {
    /// Builds the workload of this name, and makes its database.
    pub(crate) fn prepare(
        workload: &str,
        folders: &BuildFolders,
        sysroot: &Path,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<DatabaseBuilds, Error> {
        let workload = Workload::named(workload).expect("the workload is in the table");
        check_library(sysroot)?;
        let building = |step| progress(StudyProgress::Building(step));
        let mut builds = build(workload, &[ORIGINAL, BYTE_WORD, NATIVE], folders, &building)?;
        let native = builds.pop().expect("three were asked for");
        let builds: [Build; 2] = builds.try_into().expect("two are left");
        let folder = folders.folder.join(workload.name).join("runs");
        let _lock = lock(&folder)?;
        progress(StudyProgress::Loading);
        let database = load(&native, &folder)?;
        Ok(DatabaseBuilds { workload, builds, folder, database, sysroot: sysroot.into(), _lock })
    }

    /// Runs both builds at once, each in a process of its own, and with a copy of the database; `arguments` follow its
    /// name. `run` gets the number of the build. Returns its results, with the programs' output.
    pub(crate) fn run_both<T: Serialize + DeserializeOwned, P: Serialize + DeserializeOwned, E: ToString>(
        &self,
        mode: &'static str,
        arguments: &[OsString],
        run: impl Fn(Configuration, usize, &mut (dyn FnMut(P) + Send)) -> Result<T, E>,
        progress: &mut dyn FnMut(P),
    ) -> Result<[(T, String); 2], Error> {
        let mut running = Vec::new();
        for (number, build) in self.builds.iter().enumerate() {
            let own = self.folder.join(format!("{mode}-{}.db", build.name));
            for suffix in ["-wal", "-shm", "-journal"] {
                // An interrupted run may have left one.
                let _ = fs::remove_file(own.with_extension(format!("db{suffix}")));
            }
            fs::copy(&self.database, &own).map_err(|error| Error::Files { path: own.clone(), error })?;
            let all = ["run".into(), own.clone().into()].into_iter().chain(arguments.iter().cloned());
            let configuration =
                repeatable(build.program.clone(), all.collect(), processor(build), &self.sysroot);
            let started =
                forked_run::start(|tell: &mut (dyn FnMut(P) + Send)| run(configuration, number, tell));
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
}

/// Checks that the workload was content, or returns how it ended, with its output.
pub(crate) fn check_success(ending: &Ending, output: &str) -> Result<(), String> {
    match ending {
        Ending::Exited(0) => Ok(()),
        Ending::Exited(status) => Err(format!("exit status {status}\n{output}")),
        Ending::Killed { report, .. } => Err(report.clone()),
    }
}

/// Makes the folder of the runs and keeps others out of it: its name is the same each time, so that
/// the programs see the same paths.
pub(crate) fn lock(folder: &Path) -> Result<fs::File, Error> {
    let failed = |error| Error::Files { path: folder.into(), error };
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = descriptors::out_of_reach(fs::File::create(folder.join("lock")).map_err(failed)?);
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
