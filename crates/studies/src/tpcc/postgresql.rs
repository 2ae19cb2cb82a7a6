//! TPC-C on PostgreSQL: the terminals are a program of the host, which is compiled from the sources of the workload `tpcc`
//! with PostgreSQL's own client library.

use std::path::PathBuf;
use std::process::Command;

use analysis::run_counts::RunDescription;
use engine::{ClassPlan, ClassRule, Configuration, Plan, ProcessTreeCounts, UnitOfWork};
use machine::Machine;
use serde::Serialize;
use serde::de::DeserializeOwned;
use session::measure::Ending;
use session::process_tree;
use sha2::{Digest, Sha256};
use workloads::toolchain::{BYTE_WORD, ORIGINAL};
use workloads::workload::{Source, Workload};

use super::{
    CLASSES, CountedRun, DatabaseSystem, MODE, StudyProgress, TpccStudy, TpccStudySettings, details,
    machines, never_called, summary,
};
use crate::error::Error;
use crate::provenance::provenance_of;
use crate::server::{
    Client, PROCESS_START, REPEATABILITY, ServerBuilds, ServerConnection, TRANSACTION, count_server,
};

/// What a server's process executes when the terminals say that a steady state has begun.
const STEADY_STATE: &str = "pg_backend_pid";
/// The terminals name statements after their transactions.
const CLASS: &str = "FetchPreparedStatement($1) ~ ^(new_order|payment|order_status|delivery|stock_level)";

/// Builds, loads a warehouse, counts both servers, and compares.
pub(super) fn study(
    settings: &TpccStudySettings,
    on: &[(String, Machine)],
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<TpccStudy, Error> {
    let server = ServerBuilds::prepare(&[ORIGINAL, BYTE_WORD], &settings.build, &settings.sysroot, progress)?;
    let terminals = Terminals::prepare(&server, progress)?;
    progress(StudyProgress::Running(MODE));
    let rules = class_plan().rules;
    let functions = vec![TRANSACTION.into(), PROCESS_START.into()];
    let of_units = ClassPlan { functions: functions.clone(), rules: rules.clone() };
    let from = Some(STEADY_STATE.parse().expect("it is a name"));
    let plan = Plan { from, classes: Some(of_units), ..Plan::default() };
    let work = UnitOfWork { functions, classes: rules, ..UnitOfWork::default() };
    let (mut counted, mut simulated) = (Vec::new(), Vec::new());
    for (number, build) in server.builds.iter().enumerate() {
        let one = terminals.count(&server, number, &work, settings.transactions)?;
        let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
        counted.push(classes(one).map_err(failed)?);
        let observe = |configuration: &Configuration| machines::observe(configuration, on, &plan);
        let steady_after = settings.steady_after().to_string();
        let more = ["--steady-after", &steady_after];
        simulated.push(terminals.run(&server, number, (settings.transactions, &more), observe)?);
    }
    let simulated: [_; 2] = simulated.try_into().unwrap_or_else(|_| unreachable!("two builds"));
    let counted: [CountedRun; 2] = counted.try_into().unwrap_or_else(|_| unreachable!("two builds"));
    let command = "pathlength study tpcc --database postgresql";
    let system = DatabaseSystem::Postgresql;
    let mut summary = summary(system, &counted);
    summary.iter_mut().for_each(|table| table.notes.push(REPEATABILITY.into()));
    Ok(TpccStudy {
        system,
        summary,
        on_machines: machines::tables(settings, on, [ORIGINAL.name, BYTE_WORD.name], &simulated),
        details: details(&server.builds, &counted),
        provenance: provenance_of(
            command,
            ("PostgreSQL", server.version()),
            &server.builds,
            &settings.sysroot,
        ),
    })
}

/// The classes of transactions, by the names of their statements.
pub(crate) fn class_plan() -> ClassPlan {
    let class: ClassRule = CLASS.parse().expect("it is a rule");
    ClassPlan { functions: vec![TRANSACTION.into()], rules: vec![class] }
}

/// The transactions in the order of their names, and all owners.
fn classes(mut tree: ProcessTreeCounts) -> Result<CountedRun, String> {
    for (function, name) in CLASSES {
        let class = function.strip_prefix("tpcc_").unwrap_or(function);
        tree.rename_class(class, name);
    }
    tree.rename_class(PROCESS_START, "(start of a process)");
    let found = process_tree::classes(&tree);
    let transaction = |(function, name): (&str, &str)| {
        let class = found.iter().find(|class| class.name == name).cloned();
        class.ok_or_else(|| never_called(function))
    };
    let transactions = CLASSES.into_iter().map(transaction).collect::<Result<_, _>>()?;
    let owners = process_tree::run_counts(&tree, RunDescription::default(), None);
    Ok(CountedRun { transactions, owners })
}

/// Which terminals' transactions clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOrder {
    /// Those of all, each client in another random order.
    Shuffled,
    /// Each client those of a warehouse of its own.
    OwnWarehouse,
}

/// The data of several warehouses.
pub(crate) struct Warehouses<'a> {
    pub(crate) count: u32,
    /// Options of their size.
    pub(crate) company: &'a [&'a str],
    /// What the data are kept by, beside the terminals that made them.
    pub(crate) name: &'a str,
}

/// Starts several terminals, and fails if one of them does.
const AT_ONCE: &str = r#"
for seed in $(seq "$2"); do
    case "$4" in own) order="--warehouse $seed" ;; *) order=--shuffle ;; esac
    "$0" run "$1" --transactions "$3" --seed "$seed" --unchecked $order &
    terminals="$terminals $!"
done
for terminal in $terminals; do
    wait "$terminal" || exit 1
done
"#;

/// The program of the terminals, compiled for the host.
pub(crate) struct Terminals(PathBuf);

impl Terminals {
    /// Compiles it, and makes the data: one warehouse.
    pub(crate) fn prepare(
        server: &ServerBuilds,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<Terminals, Error> {
        let terminals = Terminals::compile(server)?;
        progress(StudyProgress::Loading);
        server.load_once(&data_name(), &[&terminals.client("load", &[])])?;
        Ok(terminals)
    }

    /// The same with more warehouses, after whose load another client changes the server's settings.
    pub(crate) fn prepare_warehouses(
        server: &ServerBuilds,
        warehouses: &Warehouses,
        settle: Client,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<Terminals, Error> {
        let terminals = Terminals::compile(server)?;
        progress(StudyProgress::Loading);
        let name = format!("{}-{}", data_name(), warehouses.name);
        let count = warehouses.count.to_string();
        let options = [&["--warehouses", &count], warehouses.company].concat();
        server.load_once(&name, &[&terminals.client("load", &options), settle])?;
        Ok(terminals)
    }

    fn compile(server: &ServerBuilds) -> Result<Terminals, Error> {
        Ok(Terminals(server.compile("terminals", &sources(), &["-DPOSTGRESQL"])?))
    }

    /// So many clients at the same time, with other random numbers, each of which does so many transactions.
    pub(crate) fn concurrent(
        &self,
        clients: u32,
        each: u32,
        order: ClientOrder,
    ) -> impl Fn(&ServerConnection) -> Command {
        let order = if order == ClientOrder::OwnWarehouse { "own" } else { "shuffled" };
        let (clients, each) = (clients.to_string(), each.to_string());
        move |connection| {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(AT_ONCE).arg(&self.0).arg(connection.text()).args([&clients, &each, order]);
            shell
        }
    }

    /// Counts the server of a build, one of two, while the terminals do transactions, and checks what is on the disk then.
    pub(crate) fn count(
        &self,
        server: &ServerBuilds,
        number: usize,
        work: &UnitOfWork,
        transactions: u32,
    ) -> Result<ProcessTreeCounts, Error> {
        self.run(server, number, (transactions, &[]), |configuration| count_server(configuration, work))
    }

    /// Runs the server of a build by `run` while the terminals do so many transactions, with more options.
    fn run<T: Serialize + DeserializeOwned>(
        &self,
        server: &ServerBuilds,
        number: usize,
        (transactions, more): (u32, &[&str]),
        run: impl Fn(&Configuration) -> Result<(T, Option<Ending>), String>,
    ) -> Result<T, Error> {
        let transactions = transactions.to_string();
        let options = [&["--transactions", &transactions, "--unchecked"], more].concat();
        let (result, _) = server.run(number, &self.client("run", &options), run)?;
        server.with_native(server.builds[number].name, &[&self.check()])?;
        server.remove(number);
        Ok(result)
    }

    /// The check of the consistency conditions.
    pub(crate) fn check(&self) -> impl Fn(&ServerConnection) -> Command {
        self.client("check", &[])
    }

    fn client(&self, command: &str, more: &[&str]) -> impl Fn(&ServerConnection) -> Command {
        move |connection| {
            let mut tpcc = Command::new(&self.0);
            tpcc.arg(command).arg(connection.text()).args(more);
            tpcc
        }
    }
}

/// The sources of the terminals, which load the data, too.
fn sources() -> Vec<(&'static str, &'static str)> {
    let workload = Workload::named("tpcc").expect("the workload is in the table");
    let embedded = workload.sources.iter().filter_map(|source| match source {
        Source::Embedded { name, text } if *name != "database.c" => Some((*name, *text)),
        _ => None,
    });
    let own = ("postgresql.c", include_str!("../../../../workloads/tpcc/postgresql.c"));
    embedded.chain([own]).collect()
}

/// What the data are kept by: they are others if the terminals are.
fn data_name() -> String {
    format!("tpcc-{}", short_hash(sources().into_iter().map(|(_, text)| text.as_bytes())))
}

/// Some digits of a hash of texts.
pub(crate) fn short_hash<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    texts.into_iter().for_each(|text| hash.update(text));
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
