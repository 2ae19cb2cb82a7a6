//! What traces cost: recording a few transactions, and all of them.

use std::path::Path;

use analysis::table::{Kind, Table};
use trace::Trace;

use crate::{Error, Job, Runner, best, measure};

const COLUMNS: [(&str, Kind); 6] = [
    ("recorded", Kind::Text),
    ("processor s", Kind::Real(2)),
    ("elapsed s", Kind::Real(2)),
    ("instructions", Kind::Count),
    ("millions a second", Kind::Real(0)),
    ("bytes an instruction", Kind::Real(4)),
];

/// Measures TPC-B without recording, with three transactions recorded, and with all of a tenth; the minimum of
/// several runs.
pub fn table(
    pathlength: &Path,
    jobs: [&Job; 2],
    loaded: &Path,
    directory: &Path,
    runs: u32,
) -> Result<Table, Error> {
    let file = directory.join("bench.trace");
    let three = ["--unit", "tpcb_transaction", "--skip", "1000", "--units", "3"];
    let rows: [(&str, &Job, Option<&[&str]>); 3] = [
        ("nothing: pathlength run", jobs[1], None),
        ("3 transactions", jobs[1], Some(&three)),
        ("all", jobs[0], Some(&[])),
    ];
    let mut table = Table::new("traces", "Traces", &COLUMNS);
    for (name, job, options) in rows {
        eprintln!("{}, recorded: {name}", job.title);
        let runner = match options {
            None => Runner::new("pathlength", [pathlength, "run".as_ref()]),
            Some(options) => {
                Runner::writing("pathlength", pathlength, &[&["trace"], options].concat(), &file)
            }
        };
        let run = || {
            let _ = std::fs::remove_file(&file);
            measure(job, &runner, loaded, directory)
        };
        let (used, elapsed) = best(runs, |used, _| used.total(), run)?;
        let title = format!("{}, recorded: {name}", job.title);
        let mut cells = vec![title.into(), used.total().into(), elapsed.into()];
        if options.is_some() {
            let trace = Trace::open(&file)?;
            let instructions: u64 = trace.chunks().iter().map(|chunk| chunk.instructions).sum();
            let bytes = std::fs::metadata(&file)?.len();
            cells.push(instructions.into());
            cells.push((instructions as f64 / 1e6 / elapsed).into());
            cells.push((bytes as f64 / instructions as f64).into());
        } else {
            cells.extend([0u64.into(), f64::NAN.into(), f64::NAN.into()]);
        }
        table.row(cells);
    }
    std::fs::remove_file(&file)?;
    Ok(table)
}
