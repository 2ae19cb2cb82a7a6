//! A server on a machine of nodes: which operations on the interconnect a transaction of PostgreSQL needs, and how many fewer
//! once the data that its processes share are laid out for cache lines. D. Suggs asked that of Oracle on CC-NUMA in 1998.

mod page;
mod simulation;
mod tables;

use std::path::PathBuf;

use report::Page;
use table::Table;
use trace::Trace;
use trace::interleave::Assignment;

use self::simulation::{NumaCase, NumaResult, ServerTrace, TimedResult, simulate, simulate_in_time};
use super::database::StudyProgress;
use super::error::Error;
use super::recorded_server::{ServerLoad, ServerRecording, trace_folder};
use super::server::ServerBuilds;
use crate::provenance::provenance_of;
use workloads::build::{BuildFolders, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::POSTGRESQL_CACHE_LINES;

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
/// Recordings of each build with all clients: each has another order of the clients.
const RECORDINGS: u32 = 3;
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
    /// On the talk's machine, before and after the changes to PostgreSQL, by recording.
    changes: [Vec<NumaResult>; 2],
    /// The same in time.
    timed: [Vec<TimedResult>; 2],
    /// What moves most, by function and by data: before, and by data after. Of the first recordings.
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
    let folder = trace_folder(&settings.build, "numa")?;
    let most = CLIENTS[CLIENTS.len() - 1];
    let recorded = |server: &ServerBuilds, clients: u32, number: u32| -> Result<ServerTrace, Error> {
        let each = settings.transactions;
        let recording = ServerRecording { clients, each, load: ServerLoad::Tpcb(most), number, heap: true };
        let path = recording.trace(server, BUILD, &folder, progress)?;
        let trace = Trace::open(&path).map_err(|error| Error::Trace { path, reason: error.to_string() })?;
        Ok(ServerTrace { trace, transactions: recording.transactions() })
    };
    let all = |server: &ServerBuilds| -> Result<Vec<ServerTrace>, Error> {
        (1..=RECORDINGS).map(|number| recorded(server, most, number)).collect()
    };
    let (few, some) = (recorded(&server, CLIENTS[0], 1)?, recorded(&server, CLIENTS[1], 1)?);
    let before = all(&server)?;
    let mut provenance = provenance_of(
        "pathlength study numa",
        ("PostgreSQL", server.version()),
        &server.builds,
        &settings.sysroot,
    );
    provenance.push(("byte-word build, changed".into(), changed.commands.join("\n")));
    server.use_build(BUILD, changed);
    let after = all(&server)?;
    let base = NumaCase {
        machine: MACHINES[0],
        settings: Vec::new(),
        clients: most,
        processors: PROCESSORS,
        assignment: Assignment::Affinity,
    };
    let run = |trace: &ServerTrace, case: &NumaCase| {
        progress(StudyProgress::Doing(format!("simulating {}", case.label())));
        simulate(trace, case).map_err(Error::Server)
    };
    let with = |trace: &ServerTrace, case: NumaCase| run(trace, &case).map(|(result, _)| result);
    // Of the first recording also the tables, of the others only the numbers.
    let measured = |traces: &[ServerTrace]| -> Result<_, Error> {
        let (first, model) = run(&traces[0], &base)?;
        let others = traces[1..].iter().map(|trace| with(trace, base.clone()));
        Ok((std::iter::once(Ok(first)).chain(others).collect::<Result<Vec<_>, Error>>()?, model))
    };
    let (talks, model) = measured(&before)?;
    let (changed, changed_model) = measured(&after)?;
    let talk = &talks[0];
    let set = |setting: &str| with(&before[0], NumaCase { settings: vec![setting.into()], ..base.clone() });
    let machines = vec![
        talk.clone(),
        set("coherence.nodes.directory=bit-vector")?,
        with(&before[0], NumaCase { machine: MACHINES[1], ..base.clone() })?,
    ];
    let nodes =
        vec![set("coherence.nodes.processors=8")?, talk.clone(), set("coherence.nodes.processors=2")?];
    let of_clients = |trace, clients| with(trace, NumaCase { clients, ..base.clone() });
    let by_clients = vec![of_clients(&few, CLIENTS[0])?, of_clients(&some, CLIENTS[1])?, talk.clone()];
    let mut schedules = Vec::new();
    for assignment in [Assignment::Affinity, Assignment::RoundRobin, Assignment::RunToBlock] {
        schedules
            .push(with(&before[0], NumaCase { processors: PROCESSORS / 2, assignment, ..base.clone() })?);
    }
    schedules.push(talk.clone());
    schedules.push(set("coherence.nodes.placement=round-robin")?);
    schedules.push(set("coherence.nodes.placement=fixed")?);
    progress(StudyProgress::Doing("simulating in time".into()));
    let in_time = |traces: &[ServerTrace]| -> Result<Vec<TimedResult>, Error> {
        traces.iter().map(|trace| simulate_in_time(trace, &base).map_err(Error::Server)).collect()
    };
    let timed = [in_time(&before)?, in_time(&after)?];
    Ok(NumaStudy {
        functions: tables::by_function(&model, &before[0].trace),
        partners: tables::partners(&model, &before[0].trace),
        data: [
            tables::by_data(&model, &before[0].trace, "before"),
            tables::by_data(&changed_model, &after[0].trace, "after"),
        ],
        machines,
        nodes,
        clients: by_clients,
        schedules,
        changes: [talks, changed],
        timed,
        provenance,
    })
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
