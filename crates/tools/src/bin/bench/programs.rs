//! The cost of running programs: natively, under qemu-alpha, and on the engine.

use std::path::Path;
use std::process::{Command, Stdio};

use table::Kind;

use crate::measure::{Job, MeasuredCommand, QEMU, SYSROOT, Used, best_of_each, measure};
use crate::record::BenchRecord;
use crate::server::{BenchServer, ServedTransactions};
use crate::{Bench, Error, pathlength};

const COLUMNS: [(&str, Kind); 7] = [
    ("program", Kind::Text),
    ("run by", Kind::Text),
    ("user s", Kind::Real(2)),
    ("system s", Kind::Real(2)),
    ("sum s", Kind::Real(2)),
    ("faster than qemu-alpha", Kind::Real(2)),
    ("in user time", Kind::Real(2)),
];

/// Measures programs under each runner.
pub fn jobs(bench: &Bench, name: &str, jobs: &[&Job], record: &mut BenchRecord) -> Result<(), Error> {
    record.begin(name, &format!("Processor time: {name}"), &COLUMNS)?;
    for job in jobs {
        let run = |runner: &MeasuredCommand| measure(job, runner, &bench.loaded, bench.directory());
        rows(bench, &job.title, run, record)?;
    }
    note(bench, record)
}

/// Measures PostgreSQL's server, which is built first.
pub fn postgresql(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let transactions = 5000.min(bench.options.transactions);
    record.begin("postgresql", "Processor time: postgresql, all processes of the server", &COLUMNS)?;
    let server = BenchServer::new(&bench.folders, bench.directory())?;
    let title = format!("PostgreSQL TPC-B, {transactions} transactions");
    rows(bench, &title, |runner| server.measure(runner, 1, transactions), record)?;
    note(bench, record)
}

const OBSERVED_COLUMNS: [(&str, Kind); 6] = [
    ("observed by", Kind::Text),
    ("user s", Kind::Real(2)),
    ("system s", Kind::Real(2)),
    ("sum s", Kind::Real(2)),
    ("over run", Kind::Change(1)),
    ("with start and end s", Kind::Real(2)),
];
/// The clients of the server that is observed.
const CLIENTS: u32 = 4;

/// Measures what counts and models of a server with several clients cost.
pub fn observed_server(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let transactions = 4000.min(bench.options.transactions);
    let title = format!(
        "Processor time: a server of PostgreSQL with {CLIENTS} clients, {transactions} transactions of TPC-B"
    );
    record.begin("server", &title, &OBSERVED_COLUMNS)?;
    let server = BenchServer::new(&bench.folders, bench.directory())?;
    let (pathlength, csv) = (pathlength()?, bench.directory().join("server/observed.csv"));
    let observing = |name: &str, words: &[&str]| {
        MeasuredCommand::writing(
            name,
            &pathlength,
            &[words, &["--children", "--by", "process", "--format", "csv"]].concat(),
            &csv,
        )
    };
    let run = MeasuredCommand::new("pathlength run", [&*pathlength, "run".as_ref()]);
    let attach: Vec<&Path> = ["count", "--children", "--by", "process", "--format", "csv", "-o"]
        .map(Path::new)
        .into_iter()
        .chain([&*csv, "--attach".as_ref()])
        .collect();
    let attach = [&[&*pathlength][..], &attach[..]].concat();
    let words = ["sample", "--by", "function", "--format", "csv"];
    let sampled = MeasuredCommand::writing("samples", &pathlength, &words, &csv);
    // Those whose costs are compared take turns.
    let counted = [
        ("run", run.clone(), false),
        ("count --children", observing("count", &["count"]), false),
        ("run, and count --attach --children", run.clone(), true),
        ("sample, each 4 ms", sampled, false),
    ];
    let models = [
        ("caches --children, alphastation500", observing("caches", &["caches"]), false),
        ("time --children, alphastation500", observing("time", &["time"]), false),
    ];
    let measure = |(_, runner, attaches): &(&str, MeasuredCommand, bool)| {
        server.measure_serving(runner, attaches.then_some(&attach[..]), CLIENTS, transactions)
    };
    let mut plain = None;
    for (group, runs) in [(&counted[..], bench.options.runs), (&models[..], 1)] {
        eprintln!(
            "PostgreSQL, {CLIENTS} clients: {}",
            group.iter().map(|one| one.0).collect::<Vec<_>>().join("; ")
        );
        let total = |served: ServedTransactions| served.transactions.total();
        for ((name, ..), served) in group.iter().zip(best_of_each(group, runs, total, measure)?) {
            let used = served.transactions;
            let plain = *plain.get_or_insert(used.total());
            let over = 100.0 * (used.total() / plain - 1.0);
            record.row(vec![
                (*name).into(),
                used.user.into(),
                used.system.into(),
                used.total().into(),
                over.into(),
                served.whole.total().into(),
            ])?;
        }
    }
    note(bench, record)?;
    record.note(
        "The transactions are the second half of those that a server serves; with start and end, all are in the time, and the command \
         that counts. Clients are not measured. Models: one run."
            .into(),
    )
}

fn note(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    let runs = bench.options.runs;
    record.note(format!("The smallest of {runs} runs; user and system time of all processes."))
}

/// Measures a program under each runner; a baseline takes turns with the program that it is compared with.
fn rows(
    bench: &Bench,
    title: &str,
    measure: impl Fn(&MeasuredCommand) -> Result<Used, Error>,
    record: &mut BenchRecord,
) -> Result<(), Error> {
    let mut peer = None;
    for group in runners(bench.options.baseline.as_deref())? {
        eprintln!("{title}: {}", group[0].name);
        let used = best_of_each(&group, bench.options.runs, Used::total, &measure)?;
        for (runner, used) in group.iter().zip(used) {
            if runner.name == QEMU {
                peer = Some(used);
            }
            let ratio = |of: fn(Used) -> f64| peer.map_or(f64::NAN, |peer| of(peer) / of(used));
            record.row(vec![
                title.into(),
                runner.name.clone().into(),
                used.user.into(),
                used.system.into(),
                used.total().into(),
                ratio(Used::total).into(),
                ratio(|used| used.user).into(),
            ])?;
        }
    }
    Ok(())
}

/// The runners, in groups that take turns.
fn runners(baseline: Option<&Path>) -> Result<Vec<Vec<MeasuredCommand>>, Error> {
    let mut groups =
        vec![vec![MeasuredCommand { is_native: true, ..MeasuredCommand::new("native", [""; 0]) }]];
    if Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().is_ok() {
        groups.insert(0, vec![MeasuredCommand::new(QEMU, [QEMU, "-L", SYSROOT])]);
    } else {
        eprintln!("bench: qemu-alpha is not installed (Debian's package qemu-user): left out");
    }
    let ours = of_command(&pathlength()?, "")?;
    match baseline {
        None => groups.extend(ours.map(|runner| vec![runner])),
        Some(baseline) => {
            let pairs = ours.into_iter().zip(of_command(baseline, ", baseline")?);
            groups.extend(pairs.map(|(runner, older)| vec![older, runner]));
        }
    }
    Ok(groups)
}

/// The measurements of a command, and of the engine's example beside it.
fn of_command(pathlength: &Path, remark: &str) -> Result<[MeasuredCommand; 3], Error> {
    let run = pathlength.with_file_name("examples").join("run");
    for (file, build) in [(pathlength, ""), (&run, " --workspace --example run")] {
        if !file.exists() {
            return Err(format!("{} is missing: cargo build --release{build}", file.display()).into());
        }
    }
    let command =
        |word: &str| MeasuredCommand::new(format!("pathlength {word}{remark}"), [pathlength, word.as_ref()]);
    let trace = MeasuredCommand::new(format!("full trace, added up{remark}"), [run]);
    let trace = MeasuredCommand { variable: Some(("PATHLENGTH_HOT", "trace")), ..trace };
    Ok([command("run"), command("count"), trace])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_its_example_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("pathlength");
        let error = of_command(&command, "").err().unwrap().to_string();
        assert!(error.contains("pathlength is missing"), "{error}");
        std::fs::write(&command, "").unwrap();
        let error = of_command(&command, "").err().unwrap().to_string();
        assert!(error.contains("examples/run is missing") && error.contains("--example run"), "{error}");
        std::fs::create_dir(folder.path().join("examples")).unwrap();
        std::fs::write(folder.path().join("examples/run"), "").unwrap();
        let names = of_command(&command, ", baseline").unwrap().map(|runner| runner.name);
        assert_eq!(names[..2], ["pathlength run, baseline", "pathlength count, baseline"]);
    }
}
