//! TPC-H on SQLite: each statement in a process of its own, several at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Plan, UnitPlan};
use session::measure::Ending;
use session::{forked_run, live};
use workloads::build::{Build, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use super::data::TableFiles;
use super::database::{Answered, MODE, TpchDatabase, TpchStudySettings};
use super::measured::{FunctionComponents, MachineModels, Measured};
use super::statements::{AccessPath, SQLITE_PATHS, Statement};
use crate::database::{StudyProgress, check_success, lock};
use crate::environment::{check_library, repeatable};
use crate::error::Error;

/// The builds, and the database that statements are asked of.
pub(super) struct SqliteDatabase {
    alpha: Build,
    native: Build,
    unit: &'static str,
    sysroot: PathBuf,
    /// The folder of databases and of statements.
    folder: PathBuf,
    database: PathBuf,
    /// Keeps others out of the folder.
    _lock: fs::File,
}

impl SqliteDatabase {
    /// Builds SQLite.
    pub(super) fn prepare(
        settings: &TpchStudySettings,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<SqliteDatabase, Error> {
        let workload = Workload::named("tpch").expect("the workload is in the table");
        check_library(&settings.sysroot)?;
        let building = |step| progress(StudyProgress::Building(step));
        let builds = build(workload, &[BYTE_WORD, NATIVE], &settings.build, &building)?;
        let [alpha, native] = builds.try_into().expect("two were asked for");
        let folder = settings.build.folder.join(workload.name).join("runs");
        let _lock = lock(&folder)?;
        let sysroot = settings.sysroot.clone();
        let database = PathBuf::new();
        Ok(SqliteDatabase { alpha, native, unit: workload.unit, sysroot, folder, database, _lock })
    }

    fn write(&self, statement: &Statement) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{}.sql", statement.name));
        fs::write(&path, &statement.sql).map_err(|error| Error::Files { path: path.clone(), error })?;
        Ok(path)
    }

    /// Executes a statement twice, the second time observed by models of the machines: the first fills the page cache.
    fn start(
        &self,
        statement: &Statement,
        models_of: &MachineModels,
    ) -> Result<forked_run::ForkedRun<(Measured, Ending), ()>, Error> {
        let file = self.write(statement)?;
        let arguments = vec!["run".into(), self.database.clone().into(), file.clone().into(), file.into()];
        let configuration =
            repeatable(self.alpha.program.clone(), arguments, isa::CpuModel::Ev56, &self.sysroot);
        let unit = UnitPlan { function: self.unit.into(), skip: 1, units: Some(1) };
        let plan = Plan { unit: Some(unit), ..Plan::default() };
        let run = |_: &mut (dyn FnMut(()) + Send)| -> Result<(Measured, Ending), String> {
            let live = live::run(&configuration, &plan, models_of.make()?, false)
                .map_err(|error| error.to_string())?;
            Ok((FunctionComponents::of(&live.trace).measured(&live.model, &models_of.machines), live.ending))
        };
        forked_run::start(run).map_err(|error| self.failed(error))
    }

    fn answer(&self, running: forked_run::ForkedRun<(Measured, Ending), ()>) -> Result<Answered, Error> {
        let ((measured, ending), rows) = running.wait(&mut |()| {}).map_err(|error| self.failed(error))?;
        let failed = |reason| Error::Workload { build: self.alpha.name, mode: MODE, reason };
        check_success(&ending, &rows).map_err(failed)?;
        // They were printed twice.
        let (first, second) = rows.split_at_checked(rows.len() / 2).unwrap_or((&rows, ""));
        let rows = if first == second { second.into() } else { rows };
        Ok(Answered { measured, rows })
    }

    fn failed(&self, error: forked_run::Error) -> Error {
        Error::Run { build: self.alpha.name, mode: MODE, error }
    }

    fn native(&self, command: &str, arguments: &[&Path]) -> Result<String, Error> {
        let mut native = Command::new(&self.native.program);
        let output = native.arg(command).args(arguments).output();
        let output = output.map_err(|error| Error::Load(error.to_string()))?;
        if !output.status.success() {
            return Err(Error::Load(String::from_utf8_lossy(&output.stderr).trim().into()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl TpchDatabase for SqliteDatabase {
    const EXPLAIN: &str = "explain query plan";

    fn builds(&self) -> Vec<&Build> {
        vec![&self.alpha]
    }

    fn version(&self) -> Option<String> {
        crate::provenance::version_after(&self.alpha.folder.join("sqlite3.h"), b"#define SQLITE_VERSION ")
    }

    fn is_sqlite(&self) -> bool {
        true
    }

    fn paths(&self) -> &'static [AccessPath] {
        SQLITE_PATHS
    }

    fn plan<'a>(&self, row: &'a str) -> &'a str {
        // Before it are the numbers of nodes.
        row.rsplit_once('|').map_or(row, |(_, detail)| detail)
    }

    fn load(&mut self, tables: &TableFiles) -> Result<(), Error> {
        let build = self.native.folder.file_name().unwrap_or_default().to_string_lossy();
        self.database = self.folder.join(format!("{}-{build}.db", tables.name()));
        if self.database.exists() {
            return Ok(());
        }
        // An interrupted load leaves no database.
        let unfinished = self.database.with_extension("unfinished");
        self.native("load", &[&unfinished, &tables.folder])?;
        let path = self.database.clone();
        fs::rename(unfinished, &path).map_err(|error| Error::Files { path, error })
    }

    fn ask(&self, statements: &[Statement]) -> Result<Vec<String>, Error> {
        let ask = |statement| self.native("run", &[&self.database, &self.write(statement)?]);
        statements.iter().map(ask).collect()
    }

    fn measure(
        &self,
        statements: &[Statement],
        models_of: &MachineModels,
        progress: &dyn Fn(&str),
    ) -> Result<Vec<Answered>, Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut answered: Vec<Option<Answered>> = statements.iter().map(|_| None).collect();
        let (mut next, mut indexes, mut running) = (0, Vec::new(), Vec::new());
        while next < statements.len() || !running.is_empty() {
            if let Some(statement) = statements.get(next).filter(|_| running.len() < processors) {
                progress(&statement.title);
                running.push(self.start(statement, models_of)?);
                indexes.push(next);
                next += 1;
                continue;
            }
            let done = forked_run::first_done(&running);
            answered[indexes.swap_remove(done)] = Some(self.answer(running.swap_remove(done))?);
        }
        Ok(answered.into_iter().flatten().collect())
    }
}
