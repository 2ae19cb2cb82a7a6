//! A server on a machine of nodes: which operations on the interconnect a transaction of PostgreSQL needs, and how many fewer
//! once the data that its processes share are laid out for cache lines. D. Suggs asked that of Oracle on CC-NUMA in 1998.

mod page;
mod simulation;
mod tables;

use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::table::Table;
use engine::{Plan, UnitPlan};
use report::Page;
use trace::Trace;
use trace::interleave::Assignment;

use self::simulation::{
    NumaCase, NumaResult, STATEMENTS, ServerTrace, TimedResult, simulate, simulate_in_time,
};
use super::database::StudyProgress;
use super::error::Error;
use super::provenance_of;
use super::server::{ServerBuilds, ServerConnection};
use crate::build::{BuildFolders, build};
use crate::record;
use crate::toolchain::BYTE_WORD;
use crate::workload::POSTGRESQL_CACHE_LINES;

/// What to study.
#[derive(Clone, Debug)]
pub struct NumaStudySettings {
    /// Transactions of each client.
    pub transactions: u32,
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// The machines: that of the talk, and a present-day one.
const MACHINES: [&str; 2] = ["av20000", "present-day-numa"];
/// The numbers of clients, each of which has a process of the server.
const CLIENTS: [u32; 3] = [4, 8, 16];
/// The processors of the talk's machine, four in a node.
const PROCESSORS: u32 = 16;
/// What is recorded: each statement of a client's transaction.
const UNIT: &str = "exec_simple_query";
/// The build whose server is recorded.
const BUILD: usize = 1;

/// Everything that was found.
pub struct NumaStudy {
    /// The talk's machine, with both directories, and the present-day one, with all clients.
    machines: Vec<NumaResult>,
    /// Numbers of nodes.
    nodes: Vec<NumaResult>,
    /// Numbers of clients.
    clients: Vec<NumaResult>,
    /// Scheduling on two nodes, and placement of pages on four.
    schedules: Vec<NumaResult>,
    /// On the talk's machine, before and after the changes to PostgreSQL.
    changes: [NumaResult; 2],
    /// The same in time.
    timed: [TimedResult; 2],
    /// What moves most, by function and by data: before, and by data after.
    functions: Table,
    data: [Table; 2],
    partners: Table,
    provenance: Vec<(String, String)>,
}

/// Builds both servers, records them, and simulates the machines.
pub fn numa(
    settings: &NumaStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<NumaStudy, Error> {
    let mut server = ServerBuilds::prepare(&settings.build, &settings.sysroot, progress)?;
    let building = |step| progress(StudyProgress::Building(step));
    let changed = build(&POSTGRESQL_CACHE_LINES, &[BYTE_WORD], &settings.build, &building)?.remove(0);
    progress(StudyProgress::Loading);
    let scale = CLIENTS[CLIENTS.len() - 1].to_string();
    let load = |connection: &ServerConnection| pgbench(connection, &["-i", "-q", "-s", &scale]);
    server.load_once(&format!("tpcb-{scale}"), &[&load])?;
    let record = |server: &ServerBuilds, clients: u32, name: &str| {
        progress(StudyProgress::Doing(format!("recording {clients} clients of {name}")));
        recorded(server, clients, settings.transactions)
    };
    let traces = CLIENTS.map(|clients| record(&server, clients, "PostgreSQL"));
    let [few, some, before] = traces;
    let (few, some, before) = (few?, some?, before?);
    let mut provenance = provenance_of(
        "pathlength study numa",
        ("PostgreSQL", server.version()),
        &server.builds,
        &settings.sysroot,
    );
    let clients = CLIENTS[CLIENTS.len() - 1];
    provenance.push(("byte-word build, changed".into(), changed.commands.join("\n")));
    server.use_build(BUILD, changed);
    let after = record(&server, clients, "the changed PostgreSQL")?;
    let base = NumaCase {
        machine: MACHINES[0],
        settings: Vec::new(),
        clients,
        processors: PROCESSORS,
        assignment: Assignment::Affinity,
    };
    let run = |trace: &ServerTrace, case: &NumaCase| {
        progress(StudyProgress::Doing(format!("simulating {}", case.label())));
        simulate(trace, case).map_err(Error::Server)
    };
    let (talk, model) = run(&before, &base)?;
    let (changed, changed_model) = run(&after, &base)?;
    let with = |trace: &ServerTrace, case: NumaCase| run(trace, &case).map(|(result, _)| result);
    let set = |setting: &str| with(&before, NumaCase { settings: vec![setting.into()], ..base.clone() });
    let machines = vec![
        talk.clone(),
        set("coherence.nodes.directory=bit-vector")?,
        with(&before, NumaCase { machine: MACHINES[1], ..base.clone() })?,
    ];
    let nodes =
        vec![set("coherence.nodes.processors=8")?, talk.clone(), set("coherence.nodes.processors=2")?];
    let of_clients = |trace, clients| with(trace, NumaCase { clients, ..base.clone() });
    let by_clients = vec![of_clients(&few, CLIENTS[0])?, of_clients(&some, CLIENTS[1])?, talk.clone()];
    let mut schedules = Vec::new();
    for assignment in [Assignment::Affinity, Assignment::RoundRobin, Assignment::RunToBlock] {
        schedules.push(with(&before, NumaCase { processors: PROCESSORS / 2, assignment, ..base.clone() })?);
    }
    schedules.push(talk.clone());
    schedules.push(set("coherence.nodes.placement=round-robin")?);
    schedules.push(set("coherence.nodes.placement=fixed")?);
    progress(StudyProgress::Doing("simulating in time".into()));
    let timed = [&before, &after].map(|trace| simulate_in_time(trace, &base).map_err(Error::Server));
    let [timed_before, timed_after] = timed;
    Ok(NumaStudy {
        functions: tables::by_function(&model, &before.trace),
        partners: tables::partners(&model, &before.trace),
        data: [
            tables::by_data(&model, &before.trace, "before"),
            tables::by_data(&changed_model, &after.trace, "after"),
        ],
        machines,
        nodes,
        clients: by_clients,
        schedules,
        changes: [talk, changed],
        timed: [timed_before?, timed_after?],
        provenance,
    })
}

/// PostgreSQL's client for TPC-B.
fn pgbench(connection: &ServerConnection, options: &[&str]) -> Command {
    let mut command = connection.program("pgbench");
    command.args(options).arg("postgres");
    command
}

/// Records the statements of clients, in a file that is gone when the trace is.
fn recorded(server: &ServerBuilds, clients: u32, transactions: u32) -> Result<ServerTrace, Error> {
    let statements = f64::from(clients) * f64::from(transactions) * STATEMENTS;
    let path = server.folder().join("server.trace");
    let [clients, transactions] = [clients, transactions].map(|number| number.to_string());
    let client = |connection: &ServerConnection| {
        pgbench(connection, &["-n", "--random-seed=1", "-c", &clients, "-j", &clients, "-t", &transactions])
    };
    let unit = UnitPlan { function: UNIT.into(), skip: 0, units: None };
    let plan = Plan { unit: Some(unit), heap: true, ..Plan::default() };
    server.run(BUILD, &client, |configuration| {
        let recording = record::record(configuration, &plan, &path).map_err(|error| error.to_string())?;
        Ok(((), Some(recording.ending)))
    })?;
    server.remove(BUILD);
    Ok(ServerTrace { trace: open(&path)?, statements })
}

fn open(path: &Path) -> Result<Trace, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Server(format!("its trace cannot be read: {error}"));
    let trace = Trace::open(path).map_err(|error| failed(&error))?;
    // What is mapped stays until the end.
    std::fs::remove_file(path).map_err(|error| failed(&error))?;
    Ok(trace)
}

impl NumaStudy {
    /// The answer, for the terminal.
    pub fn summary(&self) -> Vec<Table> {
        vec![tables::machines(&self.machines), tables::changes(self), tables::steps(self)]
    }

    /// Every table.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = self.summary();
        tables.extend([
            tables::nodes(&self.nodes),
            tables::clients(&self.clients),
            tables::schedules(&self.schedules),
            self.functions.clone(),
            self.data[0].clone(),
            self.data[1].clone(),
            self.partners.clone(),
        ]);
        tables
    }

    /// The report as a page.
    pub fn page(&self) -> Result<Page, report::Error> {
        page::page(self)
    }
}
