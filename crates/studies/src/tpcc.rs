//! The study of TPC-C on SQLite or PostgreSQL: what each of its transactions costs, in which part of the database, with and
//! without the byte and word instructions.

mod machines;
mod postgresql;

pub(crate) use postgresql::{ClientOrder, Terminals, Warehouses, class_plan, short_hash};

use std::ffi::OsString;
use std::path::PathBuf;

use analysis::classes::{ClassProfiles, UnitClass};
use analysis::components::Components;
use analysis::run_counts::{RunCounts, RunDescription};
use engine::{ClassPlan, Configuration, Plan, UnitOfWork};
use machine::{Machine, TimingModel};
use report::{Arrangement, Page, PageBlock, PageSection};
use table::{Kind, Table};

use self::machines::OnMachine;
use crate::StudyReport;
use crate::database::{DatabaseBuilds, StudyProgress, check_success};
use crate::error::Error;
use crate::provenance::sqlite_provenance;
use session::measure::{self, ClassesCounted};
use workloads::build::{Build, BuildFolders};

/// A run: its transactions, in the order of their names, and who executed its instructions.
struct CountedRun {
    transactions: Vec<UnitClass>,
    owners: RunCounts,
}

/// The transactions, by their functions.
const CLASSES: [(&str, &str); 5] = [
    ("tpcc_new_order", "New-Order"),
    ("tpcc_payment", "Payment"),
    ("tpcc_order_status", "Order-Status"),
    ("tpcc_delivery", "Delivery"),
    ("tpcc_stock_level", "Stock-Level"),
];

/// The database systems of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseSystem {
    /// Embedded in the program.
    Sqlite,
    /// A server, asked by a program of the host.
    Postgresql,
}

impl DatabaseSystem {
    /// Its name, as people write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DatabaseSystem::Sqlite => "SQLite",
            DatabaseSystem::Postgresql => "PostgreSQL",
        }
    }

    /// What a transaction is, and what the counts hold for.
    fn notes(self) -> [&'static str; 2] {
        match self {
            DatabaseSystem::Sqlite => [
                "The database fits the page cache; a transaction is everything from BEGIN to COMMIT, and nothing of its \
                 terminal. Nothing here is tpmC: TPC has not audited it.",
                "are executed on SQLite by an engine that counts every instruction",
            ],
            DatabaseSystem::Postgresql => [
                "The database fits the shared buffers; a transaction is everything in its server process from BEGIN until the \
                 server is ready for the next one. Terminals are a program of the host, which uses prepared statements over \
                 one connection. Nothing here is tpmC: TPC has not audited it.",
                "are asked of a PostgreSQL server, all of whose processes run on an engine that counts every instruction",
            ],
        }
    }
}

/// What the runs are called in errors.
const MODE: &str = "cached";

/// What to study.
#[derive(Clone, Debug)]
pub struct TpccStudySettings {
    /// The database system.
    pub system: DatabaseSystem,
    /// How many transactions of all kinds, in each build.
    pub transactions: u32,
    /// The machines on which some of them are simulated, with their names, instead of two that are chosen here.
    pub machines: Vec<(String, Machine)>,
    /// Where builds and databases are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// Everything that was found.
pub struct TpccStudy {
    system: DatabaseSystem,
    /// The summary's tables, then the others.
    summary: Vec<Table>,
    on_machines: Vec<Table>,
    details: Vec<Table>,
    provenance: Vec<(String, String)>,
}

/// Builds, loads a warehouse, runs both builds, and compares.
pub fn tpcc(
    settings: &TpccStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<TpccStudy, Error> {
    let machines = settings.machines()?;
    if settings.system == DatabaseSystem::Postgresql {
        return postgresql::study(settings, &machines, progress);
    }
    let database = DatabaseBuilds::prepare("tpcc", &settings.build, &settings.sysroot, progress)?;
    progress(StudyProgress::Running(MODE));
    let counted = count(settings, &database)?;
    let simulated = simulate(settings, &machines, &database)?;
    Ok(TpccStudy {
        system: settings.system,
        on_machines: machines::tables(
            settings,
            &machines,
            database.builds.each_ref().map(|build| build.name),
            &simulated,
        ),
        summary: summary(settings.system, &counted),
        details: details(&database.builds, &counted),
        provenance: sqlite_provenance("pathlength study tpcc", &database.builds, &settings.sysroot),
    })
}

/// Counts the units of both builds.
fn count(settings: &TpccStudySettings, database: &DatabaseBuilds) -> Result<[CountedRun; 2], Error> {
    let arguments = ["--transactions".into(), settings.transactions.to_string().into()];
    let run = |configuration, _, _: &mut (dyn FnMut(()) + Send)| count_one(&configuration);
    let mut counted = Vec::new();
    for (build, (classes, output)) in
        database.builds.iter().zip(database.run_both(MODE, &arguments, run, &mut |()| {})?)
    {
        let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
        let counts = finished(classes, &output).map_err(failed)?;
        let description = RunDescription::default();
        let owners = RunCounts::of_owners(description, &counts.counts, &counts.classes, Vec::new(), None);
        counted.push(CountedRun { transactions: counts.classes, owners });
    }
    Ok(counted.try_into().unwrap_or_else(|_| unreachable!("two builds make two runs")))
}

impl TpccStudySettings {
    /// The machines on which transactions are simulated.
    fn machines(&self) -> Result<Vec<(String, Machine)>, Error> {
        let own = |name: &str| (name.to_string(), Machine::find(name).expect("it comes with pathlength"));
        let machines = match &self.machines[..] {
            [] => machines::MACHINES.map(own).into(),
            machines => machines.to_vec(),
        };
        machines.iter().try_for_each(|(_, machine)| TimingModel::new(machine).map(drop))?;
        Ok(machines)
    }

    /// How many transactions are simulated in each build: the last ones.
    fn simulated(&self) -> u32 {
        machines::simulated(self.system, self.transactions)
    }

    /// How many are executed before these.
    fn steady_after(&self) -> u32 {
        self.transactions - self.simulated()
    }
}

/// Simulates some transactions of both builds.
fn simulate(
    settings: &TpccStudySettings,
    machines: &[(String, Machine)],
    database: &DatabaseBuilds,
) -> Result<[Vec<OnMachine>; 2], Error> {
    let numbers = [("--transactions", settings.transactions), ("--steady-after", settings.steady_after())];
    let arguments: Vec<OsString> = numbers
        .iter()
        .flat_map(|(option, number)| [OsString::from(option), number.to_string().into()])
        .collect();
    let functions: Vec<String> = CLASSES.iter().map(|(function, _)| function.to_string()).collect();
    // Not the checks before and after them, which also fill the page cache.
    let location = |function: &str| Some(function.parse().expect("it is a name"));
    let plan = Plan {
        from: location("tpcc_steady_state"),
        until: location("finalize_transactions"),
        classes: Some(ClassPlan { functions, rules: Vec::new() }),
        ..Plan::default()
    };
    let run =
        |configuration, _, _: &mut (dyn FnMut(()) + Send)| machines::observe(&configuration, machines, &plan);
    let mut simulated = Vec::new();
    for (build, ((on_machines, ending), output)) in
        database.builds.iter().zip(database.run_both(MODE, &arguments, run, &mut |()| {})?)
    {
        let failed = |reason| Error::Workload { build: build.name, mode: MODE, reason };
        let ending = ending.ok_or_else(|| failed("the program did not end".into()))?;
        check_success(&ending, &output).map_err(failed)?;
        simulated.push(on_machines);
    }
    Ok(simulated.try_into().unwrap_or_else(|_| unreachable!("two builds make two runs")))
}

/// The transaction that a class of units is, by its function or by what the terminals call its statements.
pub(crate) fn class_name(class: &str) -> &str {
    let is_of = |function: &str| function == class || function.strip_prefix("tpcc_") == Some(class);
    CLASSES.iter().find(|(function, _)| is_of(function)).map_or(class, |(_, name)| name)
}

fn count_one(configuration: &Configuration) -> Result<ClassesCounted, measure::Error> {
    let functions = CLASSES.iter().map(|(function, _)| function.to_string()).collect();
    measure::count_classes(configuration, &UnitOfWork { functions, ..UnitOfWork::default() }, &mut |_| {})
}

fn finished(mut counted: ClassesCounted, output: &str) -> Result<ClassesCounted, String> {
    check_success(&counted.ending, output)?;
    if let Some(function) = counted.never_called.first() {
        return Err(never_called(function));
    }
    for (class, (_, name)) in counted.classes.iter_mut().zip(CLASSES) {
        class.name = name.into();
    }
    Ok(counted)
}

fn never_called(function: &str) -> String {
    format!("{function} was never called: run more transactions, with --transactions")
}

/// The path length of each transaction in both builds, weighed by how often it is executed.
fn summary(system: DatabaseSystem, counted: &[CountedRun; 2]) -> Vec<Table> {
    let columns = [
        ("transaction", Kind::Text),
        ("units", Kind::Count),
        ("original", Kind::Count),
        ("byte-word", Kind::Count),
        ("delta", Kind::Delta),
        ("% delta", Kind::Change(1)),
        ("share of the instructions", Kind::Percent(1)),
    ];
    let mut table = Table::new("transactions", "Instructions a transaction, in both builds", &columns);
    let [original, byte_word] = counted.each_ref().map(|run| &run.transactions);
    let all: u64 = original.iter().map(|class| class.instructions()).sum();
    for (a, b) in original.iter().zip(byte_word) {
        let [mean_a, mean_b] = [a, b].map(|class| class.instructions() as f64 / class.units() as f64);
        table.row(vec![
            a.name.clone().into(),
            a.units().into(),
            (mean_a.round() as u64).into(),
            (mean_b.round() as u64).into(),
            ((mean_b - mean_a).round() as i64).into(),
            (100.0 * (mean_b / mean_a - 1.0)).into(),
            (100.0 * a.instructions() as f64 / all as f64).into(),
        ]);
    }
    table.notes.push(system.notes()[0].into());
    vec![table]
}

/// Both builds' tables: path lengths, images, components and functions by class, and all that is executed by owner.
fn details(builds: &[Build], counted: &[CountedRun; 2]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (build, counted) in builds.iter().zip(counted) {
        let profiles = ClassProfiles::new(&counted.owners);
        let images = profiles.image_names();
        let components = Components::of_images(images.iter().map(String::as_str));
        for mut table in [
            profiles.path_lengths(),
            profiles.shares(),
            profiles.components(&components),
            profiles.work(&components),
            profiles.images(),
            profiles.functions(),
        ] {
            table.name = format!("{}-{}", table.name, build.name);
            table.title = format!("{}: {} build", table.title, build.name);
            tables.push(table);
        }
    }
    tables
}

impl TpccStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.tables(), page: self.page()? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        let components = self.details.iter().find(|table| table.name == "components-byte-word");
        self.summary.iter().chain(components).chain(&self.on_machines).cloned().collect()
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        self.summary.iter().chain(&self.on_machines).chain(&self.details).cloned().collect()
    }

    /// The report as a page.
    fn page(&self) -> Result<Page, report::Error> {
        let transactions =
            report::bars(&self.summary[0], "transaction", &["original", "byte-word"], Arrangement::Grouped)?;
        let names: Vec<&str> = CLASSES.iter().map(|(_, name)| *name).collect();
        let mut sections = vec![PageSection {
            heading: "Transactions".into(),
            blocks: self.summary.iter().cloned().map(PageBlock::Table).collect(),
        }];
        sections.push(PageSection {
            heading: "On machines".into(),
            blocks: self.on_machines.iter().cloned().map(PageBlock::Table).collect(),
        });
        for build in ["byte-word", "original"] {
            let of_build = self.details.iter().filter(|table| table.name.ends_with(build));
            let mut blocks = Vec::new();
            for table in of_build {
                if table.name.starts_with("components") {
                    let caption = "Which parts of the database a transaction's instructions are executed in.";
                    let rows = Table { rows: without_total(table), total: false, ..table.clone() };
                    blocks.push(PageBlock::Chart(
                        report::shares(&rows, "component", &names)?.captioned(caption),
                    ));
                }
                blocks.push(PageBlock::Table(top(table)));
            }
            sections.push(PageSection { heading: format!("The {build} build"), blocks });
        }
        Ok(Page {
            title: "TPC-C, transaction by transaction".into(),
            headline: format!("What each transaction of TPC-C costs on {}, and where", self.system.name()),
            lead: lead(self.system).into(),
            chart: Some(transactions),
            sections,
            provenance: self.provenance.clone(),
            ..Page::default()
        })
    }
}

fn without_total(table: &Table) -> Vec<Vec<table::Value>> {
    table.rows[..table.rows.len() - usize::from(table.total)].to_vec()
}

/// Long tables are in the files beside the page.
pub(crate) fn top(table: &Table) -> Table {
    const ROWS: usize = 30;
    let mut rows = without_total(table);
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let mut shown = Table { rows, ..table.clone() };
    if table.total {
        shown.rows.extend(table.rows.last().cloned());
    }
    if left_out > 0 {
        shown.notes.push(format!("{left_out} more rows are in the files beside this page."));
    }
    shown
}

fn lead(system: DatabaseSystem) -> [String; 2] {
    let executed = system.notes()[1];
    [
        format!(
            "TPC-C is the order-entry benchmark of a company with warehouses: customers place orders, pay, ask for the state \
             of an order; orders are delivered, and the stock is watched. Its five transactions, after revision 5.11 of the \
             specification, {executed}, and the consistency conditions of clause 3.3 hold before and after each run."
        ),
        "The same program is compiled twice, without and with the six byte and word instructions that Alpha got in 1995."
            .into(),
    ]
}
