//! Traces of PostgreSQL with several clients at the same time, each kept beside the builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Configuration, Plan, UnitPlan};
use session::record;
use workloads::build::{Build, BuildFolders};

use crate::database::StudyProgress;
use crate::error::Error;
use crate::server::{Client, ServerBuilds, ServerConnection, TRANSACTION};
use crate::tpcc::Terminals;

/// What runs are called in errors.
const MODE: &str = "cached";
/// Transactions of each client before recording begins: processes fill their caches of catalogues, and plan statements for the last
/// time.
const START: u32 = 8;
/// Without it each page that a transaction changes first goes to the log as a whole: a steady state would begin after many
/// thousand transactions.
const NO_IMAGES_OF_PAGES: &str = "ALTER SYSTEM SET full_page_writes = off";

/// What clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerLoad {
    /// TPC-B of pgbench, in a bank with so many branches: few transactions wait for each other if there are as many as clients.
    Tpcb(u32),
    /// TPC-C, with so many warehouses.
    Tpcc(u32),
}

/// A recording of clients whose transactions are units of work.
pub(crate) struct ServerRecording {
    /// What they ask.
    pub(crate) load: ServerLoad,
    /// The clients, each of which has a process of the server.
    pub(crate) clients: u32,
    /// Transactions of each client.
    pub(crate) each: u32,
    /// Of several recordings of the same.
    pub(crate) number: u32,
    /// Whether the calls that allocate memory are recorded, too.
    pub(crate) heap: bool,
}

impl ServerRecording {
    /// Transactions of all clients.
    pub(crate) fn transactions(&self) -> u32 {
        self.clients * self.each
    }

    /// The trace in a folder of this name beside the builds; it is recorded if it is not there.
    pub(crate) fn trace(
        &self,
        server: &ServerBuilds,
        build: usize,
        folder: &Path,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<PathBuf, Error> {
        let ServerRecording { load, clients, each, number, .. } = *self;
        let load = match load {
            ServerLoad::Tpcb(branches) => format!("tpcb-{branches}"),
            ServerLoad::Tpcc(warehouses) => format!("tpcc-{warehouses}"),
        };
        let name = format!("{load}-{clients}x{each}-{number}");
        let path = folder.join(trace_name(&name, &server.builds[build]));
        if !path.exists() {
            self.prepare_and_record(server, build, &path, progress)?;
        }
        Ok(path)
    }

    fn prepare_and_record(
        &self,
        server: &ServerBuilds,
        build: usize,
        path: &Path,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<(), Error> {
        let recording = || {
            progress(StudyProgress::Doing(format!("recording {} clients of PostgreSQL", self.clients)));
        };
        let settle = |connection: &ServerConnection| psql(connection, NO_IMAGES_OF_PAGES);
        let each = START + self.each;
        match self.load {
            ServerLoad::Tpcb(branches) => {
                progress(StudyProgress::Loading);
                let scale = branches.to_string();
                let load = |connection: &ServerConnection| pgbench(connection, &["-i", "-q", "-s", &scale]);
                server.load_once(&format!("tpcb-{branches}-steady"), &[&load, &settle])?;
                let (clients, each) = (self.clients.to_string(), each.to_string());
                let options =
                    ["-n", "--random-seed=1", "-M", "prepared", "-c", &clients, "-j", &clients, "-t", &each];
                recording();
                self.record(server, build, path, &|connection| pgbench(connection, &options))
            }
            ServerLoad::Tpcc(warehouses) => {
                let terminals = Terminals::prepare_warehouses(server, warehouses, &settle, progress)?;
                recording();
                self.record(server, build, path, &terminals.at_once(self.clients, each))
            }
        }
    }

    fn record(&self, server: &ServerBuilds, build: usize, path: &Path, client: Client) -> Result<(), Error> {
        let recorded = server.folder().join("trace");
        let plan = Plan { heap: self.heap, ..unit_plan(TRANSACTION, START * self.clients) };
        let record = |configuration: &Configuration| {
            // The clients keep the server busy: it need not wait for them.
            let mut configuration = configuration.clone();
            configuration.settings.dilation = 1;
            let recording = record::record(&configuration, &plan, &recorded);
            recording.map(|it| (it.recorded.units, Some(it.ending))).map_err(|error| error.to_string())
        };
        let (units, _) = server.run(build, client, record)?;
        server.remove(build);
        keep(&recorded, path)?;
        let expected = u64::from(self.clients * (START + self.each));
        if units < expected {
            let reason = format!("{units} of {expected} transactions were recorded");
            return Err(Error::Workload { build: server.builds[build].name, mode: MODE, reason });
        }
        Ok(())
    }
}

/// The plan of a recording: calls of a function, but for the first ones.
pub(crate) fn unit_plan(function: &str, skip: u32) -> Plan {
    let unit = UnitPlan { function: function.into(), skip: skip.into(), units: None };
    Plan { unit: Some(unit), ..Plan::default() }
}

/// The folder of a study's traces, beside the builds.
pub(crate) fn trace_folder(builds: &BuildFolders, study: &str) -> Result<PathBuf, Error> {
    let folder = builds.folder.join(study);
    fs::create_dir_all(&folder).map_err(|error| Error::Files { path: folder.clone(), error })?;
    Ok(folder)
}

/// The name of a trace: it is another one if the build is.
pub(crate) fn trace_name(name: &str, build: &Build) -> String {
    let build = build.folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-{build}.trace")
}

/// PostgreSQL's client for TPC-B.
fn pgbench(connection: &ServerConnection, options: &[&str]) -> Command {
    let mut command = connection.program("pgbench");
    command.args(options).arg("postgres");
    command
}

fn psql(connection: &ServerConnection, statement: &str) -> Command {
    let mut command = connection.program("psql");
    command.args(["-c", statement, "postgres"]);
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
