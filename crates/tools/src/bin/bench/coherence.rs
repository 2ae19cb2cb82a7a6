//! The speed of coherent caches, buses in time, out-of-order cores and samples, from the trace of a server with four clients.

use std::path::Path;

use table::{Kind, Value};
use trace::Trace;

use crate::measure::{self, Job, MeasuredCommand, best};
use crate::record::BenchRecord;
use crate::server::BenchServer;
use crate::{Bench, Error, pathlength};

const COLUMNS: [(&str, Kind); 4] = [
    ("modelled", Kind::Text),
    ("sum s", Kind::Real(2)),
    ("millions of instructions a second", Kind::Real(1)),
    ("goal", Kind::Real(0)),
];
/// Clients of the server, and processors of the machines.
const CLIENTS: u32 = 4;
/// Transactions of all clients.
const TRANSACTIONS: u32 = 240;

/// The command that models multiprocessors.
const SHARING: [&str; 5] = ["sharing", "--processors", "4", "--assign", "run-to-block"];
/// The command that models cores.
const TIME: [&str; 2] = ["time", "--children"];

/// A model, and the millions of instructions a second that it is to reach, if any.
struct Modelled {
    name: &'static str,
    command: &'static [&'static str],
    machine: &'static str,
    options: &'static [&'static str],
    goal: Option<f64>,
}

const fn modelled(
    name: &'static str,
    command: &'static [&'static str],
    machine: &'static str,
    options: &'static [&'static str],
    goal: Option<f64>,
) -> Modelled {
    Modelled { name, command, machine, options, goal }
}

const SAMPLED: [&str; 2] = ["--sample", "30000"];
const MODELS: [Modelled; 10] = [
    modelled("coherent caches of four processors, who shares what", &SHARING, "pentium-pro", &[], Some(60.0)),
    modelled("the same, of clients that always ask", &SHARING, "pentium-pro", &["--saturated"], Some(60.0)),
    modelled("the same, with more than one level and larger", &SHARING, "present-day", &[], Some(60.0)),
    modelled("on their bus, in time", &SHARING, "pentium-pro", &["--time"], None),
    modelled(
        "the same in time, 3,000 of 30,000 instructions, of clients that always ask",
        &SHARING,
        "pentium-pro",
        &["--saturated", SAMPLED[0], SAMPLED[1]],
        Some(200.0),
    ),
    modelled("pentium-pro-core", &TIME, "pentium-pro-core", &[], Some(10.0)),
    modelled("alpha21264", &TIME, "alpha21264", &[], Some(10.0)),
    modelled("present-day-core", &TIME, "present-day-core", &[], Some(10.0)),
    modelled(
        "present-day-core, 3,000 of 30,000 instructions in detail",
        &TIME,
        "present-day-core",
        &SAMPLED,
        Some(200.0),
    ),
    modelled("alphastation500, in order, the same sample", &TIME, "alphastation500", &SAMPLED, Some(200.0)),
];

/// Published figures of others. Hosts, programs and detail differ: magnitudes, not comparisons.
const PUBLISHED: [&str; 4] = [
    "Published: gem5, Flexus and MARSS 0.2 M instructions a second; zsim up to 300 M with out-of-order cores and 1,500 M with simple ones, of \
     1,024 cores together on a host of 16 processors (D. Sanchez and C. Kozyrakis, \"ZSim\", ISCA 2013).",
    "Simulators of whole systems with one out-of-order core 0.1 M, simplified modes 1 to 10 M (A. Sandberg, E. Hagersten and D. \
     Black-Schaffer, \"Full Speed Ahead\", IISWC 2015).",
    "Sniper's authors speak of simulation at up to several million instructions a second with interval models (T. Carlson, W. Heirman and \
     L. Eeckhout, SC 2011; from memory).",
    "ChampSim's documentation has no figure.",
];

/// Records the server once, and measures each model on the trace.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let (pathlength, directory) = (&*pathlength()?, bench.directory());
    record.begin("coherence", "Models of multiprocessors, cores and samples", &COLUMNS)?;
    let server = BenchServer::new(&bench.folders, directory)?;
    let file = server.directory().join("server.trace");
    eprintln!("PostgreSQL: recording {CLIENTS} clients");
    let words = ["trace", "--unit", "exec_simple_query"];
    server.measure(
        &MeasuredCommand::writing("pathlength trace", pathlength, &words, &file),
        CLIENTS,
        TRANSACTIONS,
    )?;
    let instructions: u64 = Trace::open(&file)?.chunks().iter().map(|chunk| chunk.instructions).sum();
    let millions = instructions as f64 / 1e6;
    let job = Job { title: "a server".into(), native: file.clone(), alpha: file, arguments: Vec::new() };
    for model in &MODELS {
        eprintln!("{}", model.name);
        let words = [model.command, &["--machine", model.machine], model.options].concat();
        let runner =
            MeasuredCommand::new(model.name, [pathlength].into_iter().chain(words.iter().map(Path::new)));
        let run = || measure::measure(&job, &runner, &bench.loaded, directory);
        let (used, _) = best(bench.options.runs, |used, _| used.total(), run)?;
        record.row(vec![
            model.name.into(),
            used.total().into(),
            Value::from(millions / used.total()),
            model.goal.map_or(Value::Missing, Value::from),
        ])?;
    }
    record.note(format!(
        "{TRANSACTIONS} transactions of pgbench by {CLIENTS} clients of PostgreSQL, {millions:.0} M instructions; the smallest of {} runs, user and \
         system time of all threads, as if on one processor.",
        bench.options.runs
    ))?;
    PUBLISHED.iter().try_for_each(|note| record.note((*note).into()))
}
