//! The cost to record, to repeat and to trace a whole system, beside running it.

use std::ffi::OsString;
use std::io::{self, PipeReader};

use pathlength_engine::Plan;
use system::job::SharedFile;
use system::kernel::{self, KernelConfiguration};
use system::machine::{GuestHardware, ReportedAccesses};
use system::prepared::{GuestSetup, PreparedGuest};
use table::Kind;

use crate::measure::{SYSROOT, Used, best_of_each, measure_here};
use crate::record::BenchRecord;
use crate::{Bench, Error};

const COLUMNS: [(&str, Kind); 5] = [
    ("guest", Kind::Text),
    ("user s", Kind::Real(2)),
    ("system s", Kind::Real(2)),
    ("sum s", Kind::Real(2)),
    ("of the run", Kind::Real(2)),
];

/// The database in the guest.
const DATABASE: &str = "/tpcb.db";
/// Transactions.
const TRANSACTIONS: u32 = 2000;

/// The work with the guest.
#[derive(Clone, Copy)]
enum Work {
    Run,
    Record,
    /// The stream of the recorder is read, and nothing is made of it.
    Stream,
    /// Instructions are counted.
    Count,
    Trace,
}

const WORK: [(Work, &str); 5] = [
    (Work::Run, "runs"),
    (Work::Record, "is recorded"),
    (Work::Stream, "repeats, with every block and address reported"),
    (Work::Count, "repeats, counted"),
    (Work::Trace, "repeats, traced"),
];

/// Measures TPC-B on SQLite, with the guest's start; the cheapest of several runs, which take turns.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    record.begin("system", "A whole system: SQLite in memory, with the guest's start", &COLUMNS)?;
    let database = bench.directory().join("system.db");
    std::fs::copy(&bench.loaded, &database)?;
    let setup = GuestSetup {
        hardware: GuestHardware { memory: 1 << 30, processors: 1, disk: 0, network: None },
        disk: None,
        sysroot: SYSROOT.into(),
        environment: Vec::new(),
        background: Vec::new(),
        awaited: Vec::new(),
        user: 0,
        input: None,
        files: vec![SharedFile { host: database, guest: DATABASE.into() }],
        outputs: Vec::new(),
        folder: "/".into(),
    };
    let words = ["run", DATABASE, "--transactions", &TRANSACTIONS.to_string()];
    let words = words.map(OsString::from);
    let program = std::path::absolute(&bench.short.alpha)?;
    let folder = &bench.folders.folder;
    let build = || kernel::build(folder, None, KernelConfiguration::default(), &|_| {});
    let guest: PreparedGuest = PreparedGuest::new::<Error>(&setup, (&program, &words), || Ok(build()?))?;
    let trace = bench.directory().join("system.trace");
    // What is repeated must have been recorded.
    guest.machine().record(&mut |_, _| {})?;
    let used = best_of_each(&WORK, bench.options.runs, Used::total, |(work, name)| {
        eprintln!("the guest {name}");
        measure_here(|| carry_out(*work, &guest, &trace))
    })?;
    let run = used[0].total();
    for ((_, name), used) in WORK.iter().zip(used) {
        let Used { user, system } = used;
        let sum = used.total();
        record.row(vec![(*name).into(), user.into(), system.into(), sum.into(), (sum / run).into()])?;
    }
    Ok(())
}

fn carry_out(work: Work, guest: &PreparedGuest, trace: &std::path::Path) -> Result<(), Error> {
    let drain = |mut stream: PipeReader| {
        io::copy(&mut stream, &mut io::sink()).map(drop).map_err(system::Error::Files)
    };
    match work {
        Work::Run => drop(guest.machine().run(&mut |_, _| {})?),
        Work::Record => drop(guest.machine().record(&mut |_, _| {})?),
        Work::Stream => guest.machine().replay(ReportedAccesses::All, drain)?,
        Work::Count => drop(guest.replay_counts(trace)?),
        Work::Trace => drop(guest.replay(&Plan::default(), trace)?),
    }
    Ok(())
}
