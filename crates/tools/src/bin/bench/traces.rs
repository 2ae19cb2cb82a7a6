//! The cost of traces: recording a few transactions, and all of them.

use table::Kind;
use trace::Trace;

use crate::measure::{self, Job, MeasuredCommand, best};
use crate::record::BenchRecord;
use crate::{Bench, Error, pathlength};

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
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let pathlength = pathlength()?;
    let file = bench.directory().join("bench.trace");
    let three = ["--unit", "tpcb_transaction", "--skip", "1000", "--units", "3"];
    let rows: [(&str, &Job, Option<&[&str]>); 3] = [
        ("nothing: pathlength run", &bench.long, None),
        ("3 transactions", &bench.long, Some(&three)),
        ("all", &bench.short, Some(&[])),
    ];
    record.begin("traces", "Traces", &COLUMNS)?;
    for (name, job, options) in rows {
        let title = format!("{}, recorded: {name}", job.title);
        eprintln!("{title}");
        let runner = match options {
            None => MeasuredCommand::new("pathlength", [&*pathlength, "run".as_ref()]),
            Some(options) => {
                MeasuredCommand::writing("pathlength", &pathlength, &[&["trace"], options].concat(), &file)
            }
        };
        let run = || {
            let _ = std::fs::remove_file(&file);
            measure::measure(job, &runner, &bench.loaded, bench.directory())
        };
        let (used, elapsed) = best(bench.options.runs, |used, _| used.total(), run)?;
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
        record.row(cells)?;
    }
    std::fs::remove_file(&file)?;
    Ok(())
}
