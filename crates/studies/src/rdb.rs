//! The study of an OLTP system's tuning, after that of Oracle Rdb on a new processor: an order-entry program on SQLite has three
//! planted mistakes, each of which is found by a command, cured, and measured.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use analysis::alignment::{self, AlignmentFaults};
use analysis::models::{self, OwnRows};
use analysis::run_counts::RunDescription;
use analysis::samples::{with_errors, without_calls};
use engine::{Configuration, Plan, Sampling, UnitOfWork};
use report::{Arrangement, Page, PageBlock, PageFigure, PageSection};
use table::{Kind, Table, Value};

use crate::StudyReport;
use crate::database::{StudyProgress, lock};
use crate::environment::{LIBRARY, check_library, processor, repeatable};
use crate::error::Error;
use session::measure::{self, Ending};
use session::process_tree::{self, CountFolder};
use session::sampling::{self, SampleRequest};
use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::BYTE_WORD;
use workloads::workload::Workload;

/// The functions of the two phases.
const PHASES: [&str; 2] = ["orders_load", "orders_transaction"];
/// Instructions between samples.
const SAMPLED_EVERY: u64 = 5_000;
/// What the runs are called in errors.
const MODE: &str = "orders";
/// Rows of each table of findings.
const SHOWN: usize = 6;

/// A step of the story.
struct Step {
    name: &'static str,
    /// The program's options from this step on.
    options: [&'static str; 6],
    /// What was found before it, by which command, and what the cure is.
    finding: &'static str,
    command: &'static str,
    cure: &'static str,
}

/// The steps, the program as it is found first.
const STEPS: [Step; 4] = [
    Step {
        name: "as found",
        options: ["--records", "packed", "--commit", "scan", "--statements", "compiled"],
        finding: "",
        command: "pathlength count --children --unit orders_transaction ./orders orders.db",
        cure: "",
    },
    Step {
        name: "records aligned",
        options: ["--records", "aligned", "--commit", "scan", "--statements", "compiled"],
        finding: "Accesses to the fields of packed records are alignment faults.",
        command: "pathlength faults --by line ./orders orders.db",
        cure: "Fields are at multiples of their size: --records aligned.",
    },
    Step {
        name: "list of touched records",
        options: ["--records", "aligned", "--commit", "touched", "--statements", "compiled"],
        finding: "A commit looks at every record: release_records is among the functions with the most samples.",
        command: "pathlength sample --by function ./orders --records aligned orders.db",
        cure: "A list has the records that the transaction has touched: --commit touched.",
    },
    Step {
        name: "statements prepared",
        options: ["--records", "aligned", "--commit", "touched", "--statements", "prepared"],
        finding: "Most of the samples are below sqlite3_prepare_v2, which compiles each statement each time.",
        command: "pathlength sample --by function --inclusive ./orders --records aligned --commit touched orders.db",
        cure: "Statements are compiled once: --statements prepared.",
    },
];

/// What to study.
#[derive(Clone, Debug)]
pub struct RdbStudySettings {
    /// Transactions of each run.
    pub transactions: u32,
    /// Where builds and databases are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}

/// Everything that was found.
pub struct RdbStudy {
    steps: Table,
    findings: Vec<Table>,
    provenance: Vec<(String, String)>,
    /// Instructions of a transaction with its fix-ups, as found and in the end.
    transaction: [f64; 2],
}

/// What was measured of a step.
struct RdbStepResult {
    /// Instructions of the load phase for each item, and of a transaction.
    path: [f64; 2],
    /// Alignment faults of each.
    faults: [f64; 2],
    /// Lines with faults.
    fault_lines: Table,
    /// Samples by function, by function with all that it calls, and by line.
    samples: [Table; 3],
}

/// Builds the program, runs it as it is found and after each cure, and compares.
pub fn rdb(
    settings: &RdbStudySettings,
    progress: &(dyn Fn(StudyProgress) + Sync),
) -> Result<RdbStudy, Error> {
    let workload = Workload::named("orders").expect("the workload is in the table");
    check_library(&settings.sysroot)?;
    let building = |step| progress(StudyProgress::Building(step));
    let build = build(workload, &[BYTE_WORD], &settings.build, &building)?.remove(0);
    let folder = settings.build.folder.join(workload.name).join("runs");
    let _lock = lock(&folder)?;
    let mut measured = Vec::new();
    for step in &STEPS {
        progress(StudyProgress::Doing(format!("running the program: {}", step.name)));
        measured.push(measure_step(settings, &build, &folder, step)?);
    }
    let total = |measured: &RdbStepResult| measured.path[1] + fix_ups(measured.faults[1]);
    Ok(RdbStudy {
        steps: steps_table(&measured),
        findings: findings(&measured),
        transaction: [&measured[0], &measured[STEPS.len() - 1]].map(total),
        provenance: provenance(&build, &settings.sysroot),
    })
}

/// How the result was made.
fn provenance(build: &Build, sysroot: &Path) -> Vec<(String, String)> {
    let folder = build.program.parent().unwrap_or(Path::new("."));
    let unknown = || "unknown".to_string();
    let sqlite = crate::provenance::version_after(&folder.join("sqlite3.h"), b"#define SQLITE_VERSION ");
    let library = crate::provenance::version_after(&sysroot.join(LIBRARY), b"stable release version ");
    [
        ("Command", "pathlength study rdb".to_string()),
        ("pathlength", env!("CARGO_PKG_VERSION").into()),
        ("SQLite", sqlite.unwrap_or_else(unknown)),
        ("Compiler", build.compiler.clone()),
        ("C library", library.map_or_else(unknown, |version| format!("glibc {version}"))),
        ("Build", build.commands.join("\n")),
        ("Runs on", format!("--cpu {}", processor(build))),
    ]
    .map(|(what, value)| (what.to_string(), value))
    .into()
}

/// The items that the load phase stores.
const ITEMS: u32 = 2000;

fn measure_step(
    settings: &RdbStudySettings,
    build: &Build,
    folder: &Path,
    step: &Step,
) -> Result<RdbStepResult, Error> {
    let database = folder.join("orders.db");
    let sizes = [("--items", ITEMS), ("--transactions", settings.transactions)];
    let sizes = sizes.iter().flat_map(|(option, number)| [OsString::from(option), number.to_string().into()]);
    let options = step.options.iter().map(OsString::from).chain(sizes).chain([database.into_os_string()]);
    let configuration =
        repeatable(build.program.clone(), options.collect(), processor(build), &settings.sysroot);
    let failed = |reason: String| Error::Workload { build: build.name, mode: MODE, reason };
    let simulation = |error: measure::Error| failed(error.to_string());
    let path = path_lengths(&configuration, settings).map_err(failed)?;
    let mut faults = [0.0; 2];
    let mut fault_lines = None;
    for (phase, faults) in PHASES.iter().zip(&mut faults) {
        let unit = engine::UnitPlan { function: (*phase).into(), skip: 0, units: None };
        let plan = Plan { unit: Some(unit), heap: true, ..Plan::default() };
        let observed = process_tree::observe(&configuration, &plan, AlignmentFaults::new(), |_| ())
            .map_err(simulation)?;
        succeeded(observed.ending.as_ref()).map_err(failed)?;
        let number = if *phase == PHASES[0] { ITEMS } else { settings.transactions };
        *faults = observed.model.counts.totals().faults as f64 / f64::from(number);
        fault_lines = Some(alignment::by_line(&observed.model, &observed.trace));
    }
    let folder = CountFolder::new(None).map_err(simulation)?;
    let request = SampleRequest { sampling: Sampling::Instructions(SAMPLED_EVERY), is_exact: true };
    let (profile, ending) =
        sampling::sample(&configuration, request, &folder, &mut |_| ()).map_err(simulation)?;
    succeeded(ending.as_ref()).map_err(failed)?;
    let by = |rows| models::by(rows, &[("", &profile.instructions)], &profile.trace).remove(0);
    let rows = analysis::call_tree::CallRows::Function;
    let calls = [("", &profile.calls.model)];
    let selection = analysis::call_tree::CallSelection::default();
    let inclusive = analysis::call_tree::call_tables(rows, &selection, &profile.calls, &calls).remove(0);
    let samples = [by(OwnRows::Function), without_calls(inclusive), by(OwnRows::Line)];
    let samples = samples.map(|table| with_errors(table, profile.summary.samples));
    Ok(RdbStepResult { path, faults, fault_lines: fault_lines.expect("there are two phases"), samples })
}

/// The instructions of the load phase for each item, and of a transaction.
fn path_lengths(configuration: &Configuration, settings: &RdbStudySettings) -> Result<[f64; 2], String> {
    let work = UnitOfWork { functions: PHASES.map(String::from).into(), ..UnitOfWork::default() };
    let folder = CountFolder::new(None).map_err(|error| error.to_string())?;
    let counted = process_tree::count(configuration, &work, &folder, &RunDescription::default());
    let counted = counted.map_err(|error| error.to_string())?;
    succeeded(counted.ending.as_ref())?;
    let numbers = [ITEMS, settings.transactions];
    let sum = |phase: &str| -> u64 {
        counted.tree.units.iter().filter(|unit| unit.class == phase).map(|unit| unit.instructions).sum()
    };
    Ok([0, 1].map(|phase| sum(PHASES[phase]) as f64 / f64::from(numbers[phase])))
}

fn succeeded(ending: Option<&Ending>) -> Result<(), String> {
    match ending {
        Some(Ending::Exited(0)) => Ok(()),
        Some(Ending::Exited(status)) => Err(format!("exit status {status}")),
        Some(Ending::Killed { report, .. }) => Err(report.clone()),
        None => Err("it was interrupted".into()),
    }
}

/// The instructions with which the operating system carries out unaligned accesses.
fn fix_ups(faults: f64) -> f64 {
    faults * alignment::FIX_UP_INSTRUCTIONS as f64
}

/// What each step gains.
fn steps_table(measured: &[RdbStepResult]) -> Table {
    let columns = [
        ("program", Kind::Text),
        ("load: instructions an item", Kind::Count),
        ("load: faults an item", Kind::Real(2)),
        ("instructions a transaction", Kind::Count),
        ("faults a transaction", Kind::Real(1)),
        ("with fix-ups", Kind::Count),
        ("step's gain", Kind::Change(1)),
        ("all", Kind::Change(1)),
    ];
    let mut table = Table::new("steps", "What each step gains", &columns);
    let total = |measured: &RdbStepResult| measured.path[1] + fix_ups(measured.faults[1]);
    let first = total(&measured[0]);
    let mut before = first;
    for (step, of_step) in STEPS.iter().zip(measured) {
        let now = total(of_step);
        let change = |from: f64| 100.0 * (now / from - 1.0);
        table.row(vec![
            step.name.into(),
            (of_step.path[0].round() as u64).into(),
            of_step.faults[0].into(),
            (of_step.path[1].round() as u64).into(),
            of_step.faults[1].into(),
            (now.round() as u64).into(),
            if step.finding.is_empty() { Value::Missing } else { change(before).into() },
            if step.finding.is_empty() { Value::Missing } else { change(first).into() },
        ]);
        before = now;
    }
    table.notes.push(format!(
        "with fix-ups: the instructions of a transaction, and {} of the operating system for each alignment fault.",
        alignment::FIX_UP_INSTRUCTIONS
    ));
    table
}

/// What the commands showed before each step, and what is left at the end.
fn findings(measured: &[RdbStepResult]) -> Vec<Table> {
    let [as_found, aligned, touched, prepared] = measured else { unreachable!("four steps") };
    let named = |table: &Table, name: &str, title: &str| {
        let mut table = crate::tpcc::top(table);
        let kept = table.rows.len().min(SHOWN);
        table.rows.truncate(kept);
        Table { name: name.into(), title: title.into(), total: false, ..table }
    };
    vec![
        named(&as_found.fault_lines, "faults", "Lines with alignment faults, in transactions"),
        named(&aligned.samples[0], "functions", "Samples by function, records aligned"),
        named(
            &touched.samples[1],
            "compiling",
            "Samples by function with all that it calls, touched records in a list",
        ),
        named(&prepared.samples[2], "left", "Samples by line in the end: SQLite's own"),
    ]
}

impl RdbStudy {
    /// Its tables and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.summary(), tables: self.summary(), page: self.page()? })
    }

    /// The answer, for the terminal.
    fn summary(&self) -> Vec<Table> {
        std::iter::once(&self.steps).chain(&self.findings).cloned().collect()
    }

    /// The report as a page.
    fn page(&self) -> Result<Page, report::Error> {
        let chart = report::bars(&self.steps, "program", &["with fix-ups"], Arrangement::Grouped)?;
        let [found, left] = self.transaction;
        let mut sections = vec![PageSection {
            heading: "The steps".into(),
            blocks: vec![PageBlock::Table(self.steps.clone())],
        }];
        for (step, table) in STEPS[1..].iter().zip(&self.findings) {
            let text = format!("{} {}", step.finding, step.cure);
            sections.push(PageSection {
                heading: step.name.into(),
                blocks: vec![
                    PageBlock::Paragraph(text),
                    PageBlock::Code(step.command.into()),
                    PageBlock::Table(table.clone()),
                ],
            });
        }
        sections.push(PageSection {
            heading: "What is left".into(),
            blocks: self.findings.last().cloned().map(PageBlock::Table).into_iter().collect(),
        });
        Ok(Page {
            title: "Tuning an OLTP program".into(),
            headline: format!(
                "Three cures make a transaction {:.0} % shorter",
                100.0 * (1.0 - left / found)
            ),
            lead: vec![
                "When Oracle Rdb was ported to OpenVMS on Itanium in 2005, its engineers found what was slow by two tools: FLT, \
                 which counts alignment faults, and PRF, which samples where a program is. They found unaligned fields, a list \
                 that each commit scanned, and statements that were compiled again and again."
                    .into(),
                "Here an order-entry program on SQLite has these three mistakes, planted, and they are found in the same way, \
                 cured one after the other, and measured in instructions. SQLite itself is as it is shipped."
                    .into(),
            ],
            figures: vec![
                PageFigure::rounded(found, "instructions a transaction with fix-ups, as found"),
                PageFigure::rounded(left, "in the end"),
            ],
            chart: Some(chart),
            sections,
            provenance: self.provenance.clone(),
        })
    }
}
