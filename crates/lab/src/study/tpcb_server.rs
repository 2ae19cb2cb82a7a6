//! The byte/word question, asked of a server: TPC-B on PostgreSQL, by PostgreSQL's own client `pgbench`, in both builds.

use std::path::PathBuf;
use std::process::Command;

use analysis::classes::{ClassProfiles, UnitClass};
use analysis::components::{Components, component_differences};
use analysis::mix;
use analysis::profile::function_differences;
use analysis::run_counts::{RunCounts, RunDescription};
use analysis::table::{Kind, Table};
use engine::{Family, UnitOfWork};
use report::{Block, Page, Section};

use super::database::StudyProgress;
use super::error::Error;
use super::provenance_of;
use super::server::{PROCESS_START, REPEATABILITY, ServerBuilds, ServerConnection, TRANSACTION};
use crate::build::BuildFolders;
use crate::family;

/// What to study.
#[derive(Clone, Debug)]
pub struct ServerStudySettings {
    /// How many transactions, in each build.
    pub transactions: u32,
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// Everything that was found.
pub struct ServerStudy {
    tables: Vec<Table>,
    provenance: Vec<(String, String)>,
}

/// What the runs are called in errors.
const MODE: &str = "cached";
/// The class of the transactions.
const CLASS: &str = "TPC-B";
const LABELS: [&str; 2] = ["original", "byte-word"];

/// Builds, makes the database, counts both servers, and compares.
pub fn byteword_server(
    settings: &ServerStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<ServerStudy, Error> {
    let server = ServerBuilds::prepare(&settings.build, &settings.sysroot, progress)?;
    progress(StudyProgress::Loading);
    server.load_once("tpcb", &[&|connection: &ServerConnection| pgbench(connection, &["-i", "-q"])])?;
    progress(StudyProgress::Running(MODE));
    let functions = vec![TRANSACTION.into(), PROCESS_START.into()];
    let work = UnitOfWork { functions, ..UnitOfWork::default() };
    let transactions = settings.transactions.to_string();
    let mut counted = Vec::new();
    for (number, build) in server.builds.iter().enumerate() {
        let client = |connection: &ServerConnection| {
            pgbench(connection, &["-n", "--random-seed=1", "-M", "prepared", "-t", &transactions])
        };
        let family = server.count(number, &work, &client)?;
        server.remove(number);
        let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
        counted.push(transactions_of(family, settings.transactions).map_err(failed)?);
    }
    let tables = tables([&counted[0], &counted[1]]);
    let command = "pathlength study byteword --database postgresql";
    let version = ("PostgreSQL", server.version());
    let provenance = provenance_of(command, version, &server.builds, &settings.sysroot);
    Ok(ServerStudy { tables, provenance })
}

/// PostgreSQL's client for TPC-B.
fn pgbench(connection: &ServerConnection, options: &[&str]) -> Command {
    let mut command = connection.program("pgbench");
    command.args(options).arg("postgres");
    command
}

/// The transactions of a run, and who executed its instructions.
struct Transactions {
    class: UnitClass,
    owners: RunCounts,
}

fn transactions_of(mut family: Family, transactions: u32) -> Result<Transactions, String> {
    family.rename_class(TRANSACTION, CLASS);
    family.rename_class(PROCESS_START, "(start of a process)");
    let class = family::classes(&family).into_iter().find(|class| class.name == CLASS);
    match class.filter(|class| class.units() == u64::from(transactions)) {
        Some(class) => {
            let owners = family::run_counts(&family, RunDescription::default(), None);
            Ok(Transactions { class, owners })
        }
        None => Err(format!("the server did not do {transactions} transactions")),
    }
}

fn tables(counted: [&Transactions; 2]) -> Vec<Table> {
    let profiles = counted.map(|it| ClassProfiles::new(&it.owners));
    let images = profiles[0].image_names();
    let components = Components::of_images(images.iter().map(String::as_str));
    let [a, b] = profiles.each_ref().map(|profiles| profiles.mean(CLASS).expect("it was found"));
    let [mix_a, mix_b] = [a.mix(), b.mix()];
    let mut tables = vec![
        path_lengths(counted),
        component_differences(
            "components",
            "Instructions of a transaction by component",
            LABELS,
            [a, b],
            &components,
        ),
        mix::group_shares(
            "groups",
            "Instruction groups of a transaction",
            &[(LABELS[0], &mix_a), (LABELS[1], &mix_b)],
        ),
        function_differences("functions", "Instructions of a transaction by function", LABELS, a, b),
    ];
    for (label, profiles) in LABELS.into_iter().zip(&profiles) {
        for table in [profiles.shares(), profiles.work(&components)] {
            let (name, title) =
                (format!("{}-{label}", table.name), format!("{}: {label} build", table.title));
            tables.push(Table { name, title, ..table });
        }
    }
    tables
}

/// A row for each build.
fn path_lengths(counted: [&Transactions; 2]) -> Table {
    let columns = [
        ("build", Kind::Text),
        ("transactions", Kind::Count),
        ("instructions a transaction", Kind::Real(1)),
        ("% delta", Kind::Change(1)),
        ("share of the server's instructions", Kind::Percent(1)),
    ];
    let mut table = Table::new("path-length", "Path length of TPC-B's transaction", &columns);
    let mean = |it: &Transactions| it.class.instructions() as f64 / it.class.units() as f64;
    for (label, it) in LABELS.into_iter().zip(counted) {
        let all = it.owners.profile().total;
        table.row(vec![
            label.into(),
            it.class.units().into(),
            mean(it).into(),
            (100.0 * (mean(it) / mean(counted[0]) - 1.0)).into(),
            (100.0 * it.class.instructions() as f64 / all).into(),
        ]);
    }
    table.notes.push(
        "A transaction is everything in its server process from BEGIN until the server is ready for the next one. The client \
         is pgbench with one connection and prepared statements; the database fits the shared buffers."
            .into(),
    );
    table.notes.push(REPEATABILITY.into());
    table
}

impl ServerStudy {
    /// The answer, for the terminal.
    pub fn summary(&self) -> Vec<Table> {
        self.tables.iter().take(3).cloned().collect()
    }

    /// Every table.
    pub fn tables(&self) -> Vec<Table> {
        self.tables.clone()
    }

    /// The report as a page.
    pub fn page(&self) -> Result<Page, report::Error> {
        let section = |table: &Table| Section {
            heading: table.title.clone(),
            blocks: vec![Block::Table(super::tpcc::top(table))],
        };
        Ok(Page {
            title: "The byte and word instructions on a server".into(),
            headline: "What byte and word instructions change in a transaction of PostgreSQL".into(),
            lead: vec![
                "TPC-B is the bank's benchmark that the study of 1997 used, on a commercial database. Here PostgreSQL's own client \
                 pgbench asks a PostgreSQL server, which was compiled twice, without and with the six byte and word instructions; \
                 all of its processes run on an engine that counts every instruction."
                    .into(),
            ],
            sections: self.tables.iter().map(section).collect(),
            provenance: self.provenance.clone(),
            ..Page::default()
        })
    }
}
