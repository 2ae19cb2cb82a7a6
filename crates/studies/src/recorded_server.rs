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
use crate::tpcc::{self, ClientOrder, Terminals, Warehouses, short_hash};

/// What runs are called in errors.
const MODE: &str = "cached";
/// Transactions of each client before recording begins: processes fill their caches of catalogues, and plan statements for the last
/// time.
const START: u32 = 8;
/// Settings of recorded servers, with the changes of settings that make a steady state, or keep the speed of the recording host
/// out of it.
const SETTINGS: [&str; 4] = [
    // Otherwise each page that a transaction changes first goes to the log as a whole: a steady state would begin after many
    // thousand transactions.
    "full_page_writes = off",
    // Clients would wait for the host's disk, and for each other's turn at it.
    "fsync = off",
    // Each process would flush its statistics every second of the host: on a slow one with every transaction.
    "track_counts = off",
    // A wait that a slow host makes long would look for deadlocks, with all locks of the lock table.
    "deadlock_timeout = '1h'",
];
/// Transactions of TPC-B, each in the client's own branch, as TPC-B has tellers.
const OWN_BRANCHES: &str = include_str!("../../../workloads/postgresql/own-branches.sql");
/// One branch or warehouse with its tellers or districts in a page, as administrators place rows that every transaction changes.
const TPCB_PAGES: &str = include_str!("../../../workloads/postgresql/tpcb-pages.sql");
const TPCC_PAGES: &str = include_str!("../../../workloads/postgresql/tpcc-pages.sql");

/// The condition that transactions of TPC-B keep.
const TPCB_CHECK: &str = include_str!("../../../workloads/postgresql/tpcb-check.sql");

/// A benchmark that clients execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionBenchmark {
    /// TPC-B of pgbench: few transactions wait for each other if there are as many branches as clients.
    Tpcb,
    /// TPC-C: the number of items and customers, by the terminals' options.
    Tpcc(&'static [&'static str]),
}

/// What clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerLoad {
    pub(crate) benchmark: TransactionBenchmark,
    /// The number of branches or warehouses.
    pub(crate) size: u32,
    /// Whether each client has a branch or warehouse of its own, whose rows are in pages of their own. Otherwise clients ask for all.
    pub(crate) is_placed: bool,
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
        let name = format!("{}-{clients}x{each}-{number}", load.data_name());
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
        let ServerLoad { benchmark, size, is_placed } = self.load;
        let recording = || {
            progress(StudyProgress::Doing(format!("recording {} clients of PostgreSQL", self.clients)));
        };
        let pages = match benchmark {
            TransactionBenchmark::Tpcb => TPCB_PAGES,
            TransactionBenchmark::Tpcc(_) => TPCC_PAGES,
        };
        let settings = SETTINGS.map(|setting| format!("ALTER SYSTEM SET {setting};\n"));
        let statements = [settings.concat().as_str(), if is_placed { pages } else { "" }].concat();
        let settling = written(server, "settle.sql", &statements)?;
        let settle = |connection: &ServerConnection| psql(connection, &settling);
        let each = START + self.each;
        match benchmark {
            TransactionBenchmark::Tpcb => {
                progress(StudyProgress::Loading);
                let scale = size.to_string();
                let load = |connection: &ServerConnection| pgbench(connection, &["-i", "-q", "-s", &scale]);
                server.load_once(&self.load.data_name(), &[&load, &settle])?;
                let (clients, each) = (self.clients.to_string(), each.to_string());
                let mut options = vec![
                    "-n",
                    "--random-seed=1",
                    "-M",
                    "prepared",
                    "-c",
                    &clients,
                    "-j",
                    &clients,
                    "-t",
                    &each,
                ];
                let file = written(server, "own-branches.sql", OWN_BRANCHES)?;
                let name = file.to_string_lossy();
                if is_placed {
                    options.extend(["-s", &scale, "-f", &name]);
                }
                let condition = written(server, "check.sql", TPCB_CHECK)?;
                let check = |connection: &ServerConnection| psql(connection, &condition);
                recording();
                self.record(server, build, path, [&|connection| pgbench(connection, &options), &check])
            }
            TransactionBenchmark::Tpcc(company) => {
                let data = Warehouses { count: size, company, name: &self.load.data_name() };
                let terminals = Terminals::prepare_warehouses(server, &data, &settle, progress)?;
                recording();
                let order = if is_placed { ClientOrder::OwnWarehouse } else { ClientOrder::Shuffled };
                let clients = terminals.concurrent(self.clients, each, order);
                self.record(server, build, path, [&clients, &terminals.check()])
            }
        }
    }

    /// Records the server while a client asks it; another one checks the data then.
    fn record(
        &self,
        server: &ServerBuilds,
        build: usize,
        path: &Path,
        [client, check]: [Client; 2],
    ) -> Result<(), Error> {
        let recorded = server.folder().join("trace");
        let classes = match self.load.benchmark {
            TransactionBenchmark::Tpcb => None,
            TransactionBenchmark::Tpcc(_) => Some(tpcc::class_plan()),
        };
        let plan = Plan { heap: self.heap, classes, ..unit_plan(TRANSACTION, START * self.clients) };
        let record = |configuration: &Configuration| {
            // The clients keep the server busy: it need not wait for them.
            let mut configuration = configuration.clone();
            configuration.settings.dilation = 1;
            let recording = record::record(&configuration, &plan, &recorded);
            recording.map(|it| (it.recorded.units, Some(it.ending))).map_err(|error| error.to_string())
        };
        let (units, _) = server.run(build, client, record)?;
        server.with_native(server.builds[build].name, &[check])?;
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

impl ServerLoad {
    /// The name of the data, and in those of traces: others if what makes them is.
    fn data_name(&self) -> String {
        let (benchmark, company) = match self.benchmark {
            TransactionBenchmark::Tpcb => ("tpcb", &[][..]),
            TransactionBenchmark::Tpcc(company) => ("tpcc", company),
        };
        let made_by = [SETTINGS.as_slice(), company, &[TPCB_PAGES, TPCC_PAGES, OWN_BRANCHES]].concat();
        let hash = short_hash(made_by.into_iter().map(str::as_bytes));
        format!("{benchmark}-{}{}-{hash}", self.size, if self.is_placed { "-placed" } else { "" })
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

/// PostgreSQL's client for a file of statements.
fn psql(connection: &ServerConnection, file: &Path) -> Command {
    let mut command = connection.program("psql");
    command.args(["-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file).arg("postgres");
    command
}

/// A file with statements, among those of the runs.
fn written(server: &ServerBuilds, name: &str, statements: &str) -> Result<PathBuf, Error> {
    let path = server.folder().join(name);
    match fs::write(&path, statements) {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::Files { path, error }),
    }
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
