//! The byte/word question, asked of a server: TPC-B on PostgreSQL, by PostgreSQL's own client `pgbench`, and TPC-C, by the terminals
//! of that study, in both builds, beside the figures of the paper of 1997.

use std::path::PathBuf;
use std::process::Command;

use analysis::classes::{ClassProfiles, UnitClass};
use analysis::components::{Components, component_differences};
use analysis::mix::{self, Mix};
use analysis::paper;
use analysis::profile::{Profile, function_differences};
use analysis::run_counts::{RunCounts, RunDescription};
use engine::{ProcessTreeCounts, UnitOfWork};
use report::{Page, PageBlock, PageSection};
use table::{Kind, Table, Value};

use super::page::paper_tables;
use crate::StudyReport;
use crate::database::StudyProgress;
use crate::error::Error;
use crate::provenance::provenance_of;
use crate::server::{PROCESS_START, REPEATABILITY, ServerBuilds, ServerConnection, TRANSACTION};
use crate::tpcc::Terminals;
use session::process_tree;
use workloads::build::BuildFolders;
use workloads::toolchain::{BYTE_WORD, ORIGINAL};

/// What to study.
#[derive(Clone, Debug)]
pub struct ServerStudySettings {
    /// How many transactions of each benchmark, in each build.
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
const CLASS: &str = "transaction";
const LABELS: [&str; 2] = ["original", "byte-word"];

/// A benchmark, in both builds.
struct Benchmark {
    name: &'static str,
    runs: [Transactions; 2],
}

/// Builds, makes the databases, counts the servers, and compares.
pub fn byteword_server(
    settings: &ServerStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<ServerStudy, Error> {
    let server = ServerBuilds::prepare(&[ORIGINAL, BYTE_WORD], &settings.build, &settings.sysroot, progress)?;
    let benchmarks = [tpcb(&server, settings, progress)?, tpcc(&server, settings, progress)?];
    let command = "pathlength study byteword --database postgresql";
    let version = ("PostgreSQL", server.version());
    let provenance = provenance_of(command, version, &server.builds, &settings.sysroot);
    Ok(ServerStudy { tables: tables(&benchmarks), provenance })
}

/// TPC-B: the client is PostgreSQL's own.
fn tpcb(
    server: &ServerBuilds,
    settings: &ServerStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<Benchmark, Error> {
    progress(StudyProgress::Loading);
    server.load_once("tpcb", &[&|connection: &ServerConnection| pgbench(connection, &["-i", "-q"])])?;
    progress(StudyProgress::Running(MODE));
    let transactions = settings.transactions.to_string();
    let client = |connection: &ServerConnection| {
        pgbench(connection, &["-n", "--random-seed=1", "-M", "prepared", "-t", &transactions])
    };
    let count = |number| {
        let tree = server.count(number, &work(), &client)?;
        server.remove(number);
        transactions_of(server, number, tree, settings.transactions)
    };
    Ok(Benchmark { name: "TPC-B", runs: [count(0)?, count(1)?] })
}

/// TPC-C, all of its transactions together.
fn tpcc(
    server: &ServerBuilds,
    settings: &ServerStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<Benchmark, Error> {
    let terminals = Terminals::prepare(server, progress)?;
    progress(StudyProgress::Running(MODE));
    let count = |number| {
        let tree = terminals.count(server, number, &work(), settings.transactions)?;
        transactions_of(server, number, tree, settings.transactions)
    };
    Ok(Benchmark { name: "TPC-C", runs: [count(0)?, count(1)?] })
}

fn work() -> UnitOfWork {
    UnitOfWork { functions: vec![TRANSACTION.into(), PROCESS_START.into()], ..UnitOfWork::default() }
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

fn transactions_of(
    server: &ServerBuilds,
    number: usize,
    mut tree: ProcessTreeCounts,
    transactions: u32,
) -> Result<Transactions, Error> {
    tree.rename_class(TRANSACTION, CLASS);
    tree.rename_class(PROCESS_START, "(start of a process)");
    let class = process_tree::classes(&tree).into_iter().find(|class| class.name == CLASS);
    match class.filter(|class| class.units() == u64::from(transactions)) {
        Some(class) => {
            let owners = process_tree::run_counts(&tree, RunDescription::default(), None);
            Ok(Transactions { class, owners })
        }
        None => {
            let reason = format!("the server did not do {transactions} transactions");
            Err(Error::Workload { build: server.builds[number].name, mode: MODE, reason })
        }
    }
}

fn tables(benchmarks: &[Benchmark]) -> Vec<Table> {
    let mut tables = vec![path_lengths(benchmarks), groups(benchmarks)];
    for benchmark in benchmarks {
        tables.extend(tables_of(benchmark));
    }
    tables
}

/// Groups of instructions, 1997's and today's.
fn groups(benchmarks: &[Benchmark]) -> Table {
    let paper = LABELS.iter().zip(paper::cached()).map(|(label, mix)| (format!("1997 {label}"), mix));
    let today = benchmarks.iter().flat_map(|benchmark| {
        let runs = LABELS.iter().zip(&benchmark.runs);
        runs.map(|(label, run)| (format!("{} {label}", benchmark.name), run.mean(&run.profiles()).mix()))
    });
    let mixes: Vec<(String, Mix)> = paper.chain(today).collect();
    let mixes: Vec<(&str, &Mix)> = mixes.iter().map(|(label, mix)| (label.as_str(), mix)).collect();
    mix::group_shares("groups", "Instruction groups of a transaction, 1997's and today's", &mixes)
}

/// A benchmark's tables, whose names begin with its own.
fn tables_of(benchmark: &Benchmark) -> Vec<Table> {
    let profiles = benchmark.runs.each_ref().map(Transactions::profiles);
    let images = profiles[0].image_names();
    let components = Components::of_images(images.iter().map(String::as_str));
    let means = [0, 1].map(|number| benchmark.runs[number].mean(&profiles[number]));
    let by_component = "Instructions of a transaction by component";
    let mut tables = vec![
        component_differences("components", by_component, LABELS, means, &components),
        function_differences(
            "functions",
            "Instructions of a transaction by function",
            LABELS,
            means[0],
            means[1],
        ),
    ];
    for (label, profiles) in LABELS.into_iter().zip(&profiles) {
        for table in [profiles.shares(), profiles.work(&components)] {
            let (name, title) =
                (format!("{}-{label}", table.name), format!("{}: {label} build", table.title));
            tables.push(Table { name, title, ..table });
        }
    }
    for table in &mut tables {
        table.name = format!("{}-{}", benchmark.name.to_lowercase(), table.name);
        table.title = format!("{}: {}", benchmark.name, table.title);
    }
    tables
}

impl Transactions {
    fn profiles(&self) -> ClassProfiles {
        ClassProfiles::new(&self.owners)
    }

    fn mean<'p>(&self, profiles: &'p ClassProfiles) -> &'p Profile {
        profiles.mean(CLASS).expect("it was found")
    }

    /// Instructions of a transaction.
    fn path_length(&self) -> f64 {
        self.class.instructions() as f64 / self.class.units() as f64
    }
}

/// A row for each benchmark and build, and the paper's.
fn path_lengths(benchmarks: &[Benchmark]) -> Table {
    let columns = [
        ("benchmark", Kind::Text),
        ("build", Kind::Text),
        ("transactions", Kind::Count),
        ("instructions a transaction", Kind::Real(1)),
        ("% delta", Kind::Change(1)),
        ("share of the server's instructions", Kind::Percent(1)),
    ];
    let mut table = Table::new("path-length", "Path length of a transaction, 1997's and today's", &columns);
    let delta = |lengths: [f64; 2], number: usize| (100.0 * (lengths[number] / lengths[0] - 1.0)).into();
    let paper = paper::cached().map(|mix| mix::total(&mix) as f64);
    for (number, label) in LABELS.into_iter().enumerate() {
        table.row(vec![
            "TPC-B, 1997".into(),
            label.into(),
            Value::Missing,
            paper[number].into(),
            delta(paper, number),
            Value::Missing,
        ]);
    }
    for benchmark in benchmarks {
        let lengths = benchmark.runs.each_ref().map(Transactions::path_length);
        for (number, label) in LABELS.into_iter().enumerate() {
            let run = &benchmark.runs[number];
            table.row(vec![
                benchmark.name.into(),
                label.into(),
                run.class.units().into(),
                lengths[number].into(),
                delta(lengths, number),
                (100.0 * run.class.instructions() as f64 / run.owners.profile().total).into(),
            ]);
        }
    }
    let notes = [
        "A transaction is everything in its server process from BEGIN until the server is ready for the next one. The database fits \
         the shared buffers. TPC-B's client is pgbench with one connection and prepared statements; TPC-C's are the terminals of \
         `pathlength study tpcc`, which has its transactions one by one.",
        "In 1997 (Table 12, cached mode) the database was Microsoft SQL Server, whose sources were compiled by another compiler.",
        REPEATABILITY,
    ];
    table.notes.extend(notes.map(String::from));
    table
}

impl ServerStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: self.page()? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        let components = self.tables.iter().filter(|table| table.name.ends_with("-components"));
        self.tables.iter().take(2).chain(components).cloned().collect()
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        self.tables.clone()
    }

    /// The report as a page.
    fn page(&self) -> Result<Page, report::Error> {
        let section = |table: &Table| PageSection {
            heading: table.title.clone(),
            blocks: vec![PageBlock::Table(crate::tpcc::top(table))],
        };
        Ok(Page {
            title: "The byte and word instructions on a server".into(),
            headline: "What byte and word instructions change in a transaction of PostgreSQL".into(),
            lead: vec![
                "TPC-B is the bank's benchmark that the study of 1997 used, on a commercial database; TPC-C has the transactions of a \
                 company with warehouses. Here PostgreSQL's own client pgbench and the terminals of TPC-C ask a PostgreSQL server, \
                 which was compiled twice, without and with the six byte and word instructions; all of its processes run on an \
                 engine that counts every instruction."
                    .into(),
            ],
            sections: self.tables.iter().map(section).chain([paper_tables()]).collect(),
            provenance: self.provenance.clone(),
            ..Page::default()
        })
    }
}
