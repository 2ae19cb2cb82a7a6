//! The engine's speed, compared with other simulators in one run: `make bench`.
//!
//! ```text
//! bench [TRANSACTIONS [RUNS [TABLE]]]
//! ```
//! Runs each program natively, under qemu-alpha, and on the engine: without counts, with them, and with a
//! full trace, every block and every address, handed to a consumer that adds them up. Prints the processor
//! time of each (user and system, of all its processes, the compiler's included): the run with the smallest
//! sum of RUNS runs (3): the table `bench`. Then what traces cost, of three transactions and of all; what models of
//! caches and of time cost, beside QEMU's plugin for caches and cachegrind, with the same misses as the plugin; and how
//! fast strides are counted. Builds PostgreSQL first if that was not done yet, which takes some minutes. The engine is
//! the command `pathlength` next to this program's directory, and the engine's example `run`. A peer that is not
//! installed is left out, and said.

mod models;
mod server;
mod strides;
mod traces;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use analysis::table::{Kind, Table};
use pathlength_lab::build::{Build, BuildFolders, build};
use pathlength_lab::toolchain::{BYTE_WORD, NATIVE};
use pathlength_lab::workload::Workload;

use server::Server;

const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// How a program is run.
struct Runner {
    name: &'static str,
    /// What stands before the program.
    command: Vec<PathBuf>,
    /// A variable of its environment.
    variable: Option<(&'static str, &'static str)>,
    /// The program's build for the host.
    is_native: bool,
}

impl Runner {
    /// By a command, to which the Alpha program is added.
    fn new(name: &'static str, command: impl IntoIterator<Item = impl Into<PathBuf>>) -> Runner {
        let command = command.into_iter().map(Into::into).collect();
        Runner { name, command, variable: None, is_native: false }
    }

    /// By a subcommand of ours with its options, which writes a file.
    fn writing(name: &'static str, pathlength: &Path, words: &[&str], file: &Path) -> Runner {
        let words = words.iter().map(Path::new);
        Runner::new(name, [pathlength].into_iter().chain(words).chain(["-o".as_ref(), file]))
    }

    /// The command that runs a program.
    fn command(&self, alpha: &Path, native: &Path) -> Command {
        let program = if self.is_native { native } else { alpha };
        let mut words = self.command.iter().map(PathBuf::as_path).chain([program]);
        let mut command = Command::new(words.next().unwrap_or(program));
        command.args(words).envs(self.variable);
        command
    }
}

/// One program and its arguments. `{database}` stands for a fresh copy of the workload's.
struct Job {
    title: String,
    native: PathBuf,
    alpha: PathBuf,
    arguments: Vec<String>,
}

/// Processor seconds.
#[derive(Clone, Copy)]
struct Used {
    user: f64,
    system: f64,
}

impl Used {
    fn new(usage: &libc::rusage) -> Used {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Used { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
    }

    fn total(self) -> f64 {
        self.user + self.system
    }
}

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<(), Error> {
    let number = |index: usize, default: u32| match std::env::args().nth(index) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("{text} is not a number; usage: bench [TRANSACTIONS [RUNS [TABLE]]]")),
        None => Ok(default),
    };
    let (transactions, runs) = (number(1, 200_000)?, number(2, 3)?.max(1));
    // Databases lie in memory where they can: a disk's file system takes more time than the engine.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let workload = Workload::named("tpcb").ok_or("no such workload")?;
    let options = BuildFolders { folder: "build".into(), sources: None };
    let builds = build(workload, &[BYTE_WORD, NATIVE], &options, &|_| {})?;
    let [alpha, native] = &builds[..] else { return Err("two builds were asked for".into()) };
    let loaded = directory.path().join("loaded.db");
    let status = Command::new(&native.program).arg("load").arg(&loaded).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err("the database could not be loaded".into());
    }
    let mut jobs = vec![hello(directory.path())?];
    for transactions in [20_000.min(transactions), transactions] {
        jobs.push(tpcb(alpha, native, transactions));
    }
    jobs.dedup_by(|a, b| a.title == b.title);
    let wanted = std::env::args().nth(3);
    let wants = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let mut tables = Vec::new();
    if wants("bench") {
        tables.push(programs(&jobs, transactions, runs, &options, &loaded, directory.path())?);
    }
    // A short run may be the long one.
    let ([hello, short, .., long] | [hello, short @ long]) = &jobs[..] else { return Err("no run".into()) };
    if wants("traces") {
        tables.push(traces::table(&pathlength()?, [short, long], &loaded, directory.path(), runs)?);
    }
    if wants("models") {
        tables.push(models::table(&pathlength()?, short, hello, &loaded, directory.path(), runs)?);
    }
    if wants("strides") {
        tables.push(strides::table(&pathlength()?, short, &options, &loaded, directory.path(), runs)?);
    }
    report::write_all(&tables, report::Format::Table, None)?;
    Ok(())
}

/// What running programs costs.
fn programs(
    jobs: &[Job],
    transactions: u32,
    runs: u32,
    options: &BuildFolders,
    loaded: &Path,
    directory: &Path,
) -> Result<Table, Error> {
    let runners = runners()?;
    let mut table = Table::new("bench", "Processor time", &COLUMNS);
    for job in jobs {
        rows(&mut table, &job.title, &runners, runs, |runner| measure(job, runner, loaded, directory))?;
    }
    let transactions = 5000.min(transactions);
    let title = format!("PostgreSQL TPC-B, {transactions} transactions");
    let postgresql = |table: &mut Table| {
        let server = Server::new(options, directory)?;
        rows(table, &title, &runners, runs, |runner| server.measure(runner, transactions))
    };
    // Keep the results so far if a later measurement fails.
    if let Err(error) = postgresql(&mut table) {
        table.notes.push(format!("{title}: {error}"));
    }
    table.notes.push(format!("The smallest of {runs} runs; user and system time of all processes."));
    Ok(table)
}

const COLUMNS: [(&str, Kind); 7] = [
    ("program", Kind::Text),
    ("run by", Kind::Text),
    ("user s", Kind::Real(2)),
    ("system s", Kind::Real(2)),
    ("sum s", Kind::Real(2)),
    ("faster than qemu-alpha", Kind::Real(2)),
    ("in user time", Kind::Real(2)),
];

/// Measures a program under each runner.
fn rows(
    table: &mut Table,
    title: &str,
    runners: &[Runner],
    runs: u32,
    measure: impl Fn(&Runner) -> Result<Used, Error>,
) -> Result<(), Error> {
    let mut peer = None;
    for runner in runners {
        eprintln!("{title}: {}", runner.name);
        let (best, _) = best(runs, |used, _| used.total(), || measure(runner))?;
        if runner.name == QEMU {
            peer = Some(best);
        }
        let ratio = |of: fn(Used) -> f64| peer.map_or(f64::NAN, |peer| of(peer) / of(best));
        table.row(vec![
            title.into(),
            runner.name.into(),
            best.user.into(),
            best.system.into(),
            best.total().into(),
            ratio(Used::total).into(),
            ratio(|used| used.user).into(),
        ]);
    }
    Ok(())
}

const QEMU: &str = "qemu-alpha";

/// The command next to this program's directory.
fn pathlength() -> Result<PathBuf, Error> {
    let pathlength = std::env::current_exe()?.ancestors().nth(2).ok_or("no directory")?.join("pathlength");
    if !pathlength.exists() {
        return Err(format!("{} is missing: cargo build --release", pathlength.display()).into());
    }
    Ok(pathlength)
}

fn runners() -> Result<Vec<Runner>, Error> {
    let pathlength = pathlength()?;
    let run = pathlength.with_file_name("examples").join("run");
    if !run.exists() {
        let command = "cargo build --release -p pathlength-engine --example run";
        return Err(format!("{} is missing: {command}", run.display()).into());
    }
    let ours = |name, command: &str| Runner::new(name, [&*pathlength, command.as_ref()]);
    let mut runners = vec![
        Runner::new(QEMU, [QEMU, "-L", SYSROOT]),
        Runner { is_native: true, ..Runner::new("native", [""; 0]) },
        ours("pathlength run", "run"),
        ours("pathlength count", "count"),
        Runner { variable: Some(("PATHLENGTH_HOT", "trace")), ..Runner::new("full trace, added up", [run]) },
    ];
    if Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("bench: qemu-alpha is not installed (Debian's package qemu-user): left out");
        runners.remove(0);
    }
    Ok(runners)
}

/// A program that does nothing: what a start costs.
fn hello(directory: &Path) -> Result<Job, Error> {
    let source = directory.join("hello.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")?;
    let compile = |compiler: &str, name: &str| {
        let program = directory.join(name);
        let status = Command::new(compiler).arg("-O2").arg("-o").arg(&program).arg(&source).status();
        match status {
            Ok(status) if status.success() => Ok(program),
            _ => Err(format!("{compiler} cannot compile: run ./setup")),
        }
    };
    let (native, alpha) = (compile("cc", "hello-native")?, compile("alpha-linux-gnu-gcc", "hello-alpha")?);
    Ok(Job { title: "hello".into(), native, alpha, arguments: vec![] })
}

fn tpcb(alpha: &Build, native: &Build, transactions: u32) -> Job {
    let arguments = ["run", "{database}", "--transactions", &transactions.to_string()].map(String::from);
    Job {
        title: format!("SQLite TPC-B, {transactions} transactions"),
        native: native.program.clone(),
        alpha: alpha.program.clone(),
        arguments: arguments.to_vec(),
    }
}

/// Runs a job once. Its processor time is what all children have used more than before.
fn measure(job: &Job, runner: &Runner, loaded: &Path, directory: &Path) -> Result<Used, Error> {
    let database = directory.join("run.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.join(format!("run.db{suffix}")));
    }
    std::fs::copy(loaded, &database)?;
    let mut command = runner.command(&job.alpha, &job.native);
    for argument in &job.arguments {
        command.arg(argument.replace("{database}", &database.display().to_string()));
    }
    let before = children()?;
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    let after = children()?;
    if !output.status.success() {
        let how = output.status.signal().map_or_else(String::new, |signal| format!(" (signal {signal})"));
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed under {}{how}: {errors}", job.title, runner.name).into());
    }
    Ok(Used { user: after.user - before.user, system: after.system - before.system })
}

/// The cheapest of this number of runs, and its elapsed seconds; `cost` computes a run's cost from both times.
fn best(
    runs: u32,
    cost: impl Fn(Used, f64) -> f64,
    mut run: impl FnMut() -> Result<Used, Error>,
) -> Result<(Used, f64), Error> {
    let timed = (0..runs).map(|_| {
        let began = Instant::now();
        Ok((run()?, began.elapsed().as_secs_f64()))
    });
    let timed = timed.collect::<Result<Vec<_>, Error>>()?;
    let cheapest = timed.into_iter().min_by(|a, b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1)));
    Ok(cheapest.ok_or("no run")?)
}

/// What all children that have ended used.
fn children() -> Result<Used, Error> {
    // SAFETY: an all-zero rusage is a valid value, which the call fills in.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), usage)
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    Ok(Used::new(&usage))
}
