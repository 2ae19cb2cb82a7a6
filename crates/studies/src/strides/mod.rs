//! The study of memory access patterns: the loop of the paper by Balle and Steely ("Analyzing Memory Access Patterns
//! of Programs on Alpha-based Architectures", 1997) and the one that they made of it, seen as the paper sees them.

mod figures;
mod page;

use std::path::{Path, PathBuf};

use analysis::models::ExecutionPart;
use analysis::replay::{Replay, ReplayOrder, Selection};
use analysis::strides::{Bins, Count, Patterns, StrideRows, StrideSettings};
use engine::{Configuration, Plan, UnitPlan};
use machine::{Caches, Machine};
use table::{Kind, Table};
use trace::Trace;

use session::live;
use session::measure::{self, Ending};
use session::record;
use session::scratch::temporary_folder;
use workloads::build::{self, Build, BuildFolders, build};
use workloads::toolchain::ORIGINAL;
use workloads::workload::Workload;

use super::environment::{check_library, repeatable};
use super::error::NoLibrary;
use crate::StudyReport;

/// What to study, and where.
#[derive(Clone, Debug)]
pub struct StridesStudySettings {
    /// Where builds are kept.
    pub build: BuildFolders,
    /// Where Alpha's libraries are.
    pub sysroot: PathBuf,
    /// Whether misses are counted too, with the large matrix.
    pub with_misses: bool,
}

/// The progress of the study.
#[derive(Clone, Debug)]
pub enum StridesStudyProgress {
    /// Builds are made.
    Building(build::BuildProgress),
    /// A loop runs, compiled so.
    Running(&'static str, &'static str),
}

/// Why the study came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A build failed.
    #[error(transparent)]
    Build(#[from] build::Error),
    /// The builds could not run.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] measure::Error),
    /// The program itself reported a failure.
    #[error("{0}: the program failed; the two loops must have the same result")]
    Program(&'static str),
    /// A trace could not be read back.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// Files could not be made.
    #[error("cannot keep a trace: {0}")]
    Files(#[from] std::io::Error),
}

/// One of the two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// `original` or `modified`.
    pub name: &'static str,
    /// Its function.
    unit: &'static str,
}

/// How the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The switches.
    pub name: &'static str,
    /// The image with the small matrix.
    small: &'static str,
    /// The image with the large one.
    large: &'static str,
}

/// The loops.
pub const LOOPS: [Loop; 2] =
    [Loop { name: "original", unit: "spmv_original_" }, Loop { name: "modified", unit: "spmv_modified_" }];

/// With and without unrolled loops.
pub const SWITCHES: [Switches; 2] = [
    Switches { name: "-O3 -funroll-loops", small: "spmv-unrolled", large: "spmv-large-unrolled" },
    Switches { name: "-O3", small: "spmv", large: "spmv-large" },
];

/// How one array was accessed.
#[derive(Clone, Debug)]
pub struct Walk {
    /// The array.
    pub array: String,
    /// Stores, or else loads.
    pub is_store: bool,
    /// How many.
    pub references: u64,
    /// Strides in elements.
    pub strides: Vec<Count>,
    /// For a chart.
    pub chart: Table,
}

/// A loop, compiled with some switches, with the results of a call.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which.
    pub of: Loop,
    /// How it was compiled.
    pub switches: Switches,
    /// Its arrays.
    pub walks: Vec<Walk>,
    /// References to memory and misses, with the large matrix.
    pub misses: Option<(u64, u64)>,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct StridesStudy {
    /// Both loops, compiled both ways.
    pub seen: Vec<Seen>,
    build: Build,
}

/// The arrays of the loops, as the source has them.
const ARRAYS: [&str; 6] = ["q", "colstr", "ytemp", "aa", "rowidx", "p"];

/// The cache of the paper; features that the paper does not mention are those of machines of its time.
const CACHE: &str = r#"
title = "A direct-mapped cache of 4 megabytes"
[processor]
name = "any"
clock_mhz = 625
[caches.l2]
level = 1
holds = "data"
size = "4M"
ways = 1
line = 64
replacement = "lru"
write = "back"
allocate_on_write = true
latency = 1
[memory]
latency_ns = 100
"#;

/// Builds and runs both loops, and analyses them.
pub fn strides(
    options: &StridesStudySettings,
    progress: &(dyn Fn(StridesStudyProgress) + Sync),
) -> Result<StridesStudy, Error> {
    check_library(&options.sysroot)?;
    let workload = Workload::named("spmv").expect("the workload is in the table");
    let mut builds =
        build(workload, &[ORIGINAL], &options.build, &|step| progress(StridesStudyProgress::Building(step)))?;
    let build = builds.pop().expect("one was asked for");
    let mut seen = Vec::new();
    for switches in SWITCHES {
        for of in LOOPS {
            progress(StridesStudyProgress::Running(of.name, switches.name));
            let walks = walks(&configuration(&build, switches.small, options), of)?;
            let large = configuration(&build, switches.large, options);
            let misses = options.with_misses.then(|| misses(&large, of)).transpose()?;
            seen.push(Seen { of, switches, walks, misses });
        }
    }
    Ok(StridesStudy { seen, build })
}

fn configuration(build: &Build, image: &str, options: &StridesStudySettings) -> Configuration {
    let program = build.program.with_file_name(image);
    repeatable(program, vec!["1".into()], isa::CpuModel::Ev5, &options.sysroot)
}

/// A call of the loop.
fn plan(of: Loop) -> Plan {
    let unit = UnitPlan { function: of.unit.into(), skip: 0, units: Some(1) };
    Plan { unit: Some(unit), ..Plan::default() }
}

fn check(ending: &Ending, of: Loop) -> Result<(), Error> {
    if matches!(ending, Ending::Exited(0)) { Ok(()) } else { Err(Error::Program(of.name)) }
}

/// How a call of the loop accesses its arrays.
fn walks(configuration: &Configuration, of: Loop) -> Result<Vec<Walk>, Error> {
    let folder = temporary_folder("trace")?;
    let path = folder.path().join("call.trace");
    check(&record::record(configuration, &plan(of), &path)?.ending, of)?;
    arrays(&path)
}

fn arrays(path: &Path) -> Result<Vec<Walk>, Error> {
    let trace = Trace::open(path)?;
    let walks = |replay: &Replay| -> Result<Vec<Walk>, Error> {
        let bins = Bins { is_signed: false, in_elements: true };
        let options = StrideSettings { bins, ..StrideSettings::default() };
        let only = ARRAYS.map(String::from);
        let mut patterns = Patterns::new(replay.dictionary, StrideRows::Array, &only, options);
        if let Some(error) = replay.run(&mut patterns, &mut |_| {})?.pop() {
            return Err(error.into());
        }
        let series = patterns.sorted(ExecutionPart::Whole);
        let charts = patterns.charts(&series);
        let walk = |(series, chart): (&analysis::strides::Series, Table)| Walk {
            array: patterns.name(series),
            is_store: series.is_store,
            references: series.references,
            strides: series.strides().collect(),
            chart,
        };
        Ok(series.iter().zip(charts).map(walk).collect())
    };
    Replay::of_part(&trace, &Selection::default(), ReplayOrder::Time, walks).expect("all is there")
}

/// References and misses of a call of the loop in the paper's cache.
fn misses(configuration: &Configuration, of: Loop) -> Result<(u64, u64), Error> {
    let machine = Machine::from_toml(CACHE).expect("the description is whole");
    let live = live::run(configuration, &plan(of), Caches::new(&machine), true)?;
    check(&live.ending, of)?;
    let cache = live.model.structures().remove(0);
    Ok((cache.accesses, cache.misses))
}

impl Walk {
    /// The share of the references, in percent, with a stride between these numbers of elements to the reference this
    /// number of steps back.
    pub fn share(&self, step: u32, from: i64, to: Option<i64>) -> f64 {
        let is_in = |near: i64| near >= from && to.is_none_or(|to| near <= to);
        let counts = self.strides.iter().filter(|one| one.step == step && is_in(one.range.near));
        100.0 * counts.map(|one| one.count).sum::<u64>() as f64 / self.references as f64
    }
}

impl Seen {
    /// How an array was accessed; none if it was not.
    pub fn walk(&self, array: &str, is_store: bool) -> Option<&Walk> {
        self.walks.iter().find(|walk| walk.array == array && walk.is_store == is_store)
    }
}

impl StridesStudy {
    /// Its tables, all of which are for the terminal, and its page.
    pub fn report(&self) -> Result<StudyReport, report::Error> {
        Ok(StudyReport { summary: self.tables(), tables: self.tables(), page: page::page(self)? })
    }

    /// Every table.
    fn tables(&self) -> Vec<Table> {
        [self.shares()].into_iter().chain(self.misses()).collect()
    }

    /// How each array is accessed, for both loops compiled both ways.
    fn shares(&self) -> Table {
        let columns = [
            ("loop", Kind::Text),
            ("switches", Kind::Text),
            ("array", Kind::Text),
            ("kind", Kind::Text),
            ("references", Kind::Count),
            ("same element", Kind::Percent(1)),
            ("next element", Kind::Percent(1)),
            ("two elements", Kind::Percent(1)),
            ("128 bytes and more", Kind::Percent(1)),
        ];
        let title = "Strides to the reference before, in elements, in a call of each loop";
        let mut table = Table::new("strides", title, &columns);
        for Seen { of, switches, walks, .. } in &self.seen {
            for walk in walks {
                let kind = if walk.is_store { "stores" } else { "loads" };
                // Only long strides are compared with the reference two back.
                let shares = [(1, 0, Some(0)), (1, 1, Some(1)), (1, 2, Some(2)), (2, 0, None)];
                let shares = shares.map(|(step, from, to)| walk.share(step, from, to).into());
                let first = [of.name, switches.name, &walk.array, kind].map(Into::into);
                table.row(first.into_iter().chain([walk.references.into()]).chain(shares).collect());
            }
        }
        table
    }

    /// Misses of both loops, compiled both ways.
    fn misses(&self) -> Option<Table> {
        let columns = [
            ("loop", Kind::Text),
            ("switches", Kind::Text),
            ("references", Kind::Count),
            ("misses", Kind::Count),
            ("of the first", Kind::Change(1)),
        ];
        let title = "References and misses of a call with the large matrix, in a direct-mapped cache of 4 MB";
        let mut table = Table::new("misses", title, &columns);
        let (_, first) = self.seen.first()?.misses?;
        for Seen { of, switches, misses, .. } in &self.seen {
            let (references, misses) = (*misses)?;
            let change = 100.0 * (misses as f64 / first as f64 - 1.0);
            let row = [of.name, switches.name].map(Into::into).into_iter();
            table.row(row.chain([references.into(), misses.into(), change.into()]).collect());
        }
        let paper = figures::PAPER_MISSES;
        for (name, switches, references, misses) in paper {
            let change = 100.0 * (misses as f64 / paper[0].3 as f64 - 1.0);
            let row = vec![name.into(), switches.into(), references.into(), misses.into(), change.into()];
            table.row(row);
        }
        table.notes.push("The paper's figures are a 26th of its figures for 26 calls.".into());
        Some(table)
    }
}
