//! How fast the strides of programs are counted while they run.

use std::path::Path;

use table::Kind;
use workloads::build::{BuildFolders, build};
use workloads::toolchain::ORIGINAL;
use workloads::workload::Workload;

use crate::measure::{self, Job, MeasuredCommand, best};
use crate::record::BenchRecord;
use crate::{Bench, Error, pathlength};

const COLUMNS: [(&str, Kind); 5] = [
    ("program", Kind::Text),
    ("references", Kind::Count),
    ("processor s", Kind::Real(2)),
    ("elapsed s", Kind::Real(2)),
    ("millions of references a second", Kind::Real(0)),
];

/// Counts the strides of every instruction of TPC-B, and of the paper's loop; the fastest of several runs.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    record.begin("strides", "Strides counted while programs run", &COLUMNS)?;
    let file = bench.directory().join("strides.json");
    let words = ["strides", "--by", "instruction", "--format", "json"];
    let runner = MeasuredCommand::writing("pathlength strides", &pathlength()?, &words, &file);
    for job in [&bench.short, &spmv(&bench.folders)?] {
        eprintln!("{}: {}", job.title, runner.name);
        let run = || measure::measure(job, &runner, &bench.loaded, bench.directory());
        let (used, elapsed) = best(bench.options.runs, |_, elapsed| elapsed, run)?;
        let references = references(&file)?;
        let rate = references as f64 / 1e6 / elapsed;
        record.row(vec![
            job.title.clone().into(),
            references.into(),
            used.total().into(),
            elapsed.into(),
            rate.into(),
        ])?;
    }
    Ok(())
}

/// The paper's loop with the paper's matrix.
fn spmv(options: &BuildFolders) -> Result<Job, Error> {
    let workload = Workload::named("spmv").ok_or("no such workload")?;
    let builds = build(workload, &[ORIGINAL], options, &|_| {})?;
    let [alpha] = &builds[..] else { return Err("one build was asked for".into()) };
    let program = alpha.program.with_file_name("spmv-large");
    Ok(Job { title: "spmv-large".into(), native: program.clone(), alpha: program, arguments: vec![] })
}

/// The references in a table of strides.
fn references(file: &Path) -> Result<u64, Error> {
    let table: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let rows = table["rows"].as_array().ok_or("there are no rows")?;
    Ok(rows.iter().filter_map(|row| row["references"].as_u64()).sum())
}
