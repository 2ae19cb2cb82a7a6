//! What the engine's speed is, beside the programs it competes with, in one run: `make bench`.
//!
//! ```text
//! bench [TRANSACTIONS [RUNS]]
//! ```
//! Runs each program natively, under qemu-alpha, and on the engine with and without counts, and
//! prints the processor time of each (user and system, of all its processes, the compiler's included):
//! the run with the smallest sum of RUNS runs (3). The engine is the command `pathlength` beside this
//! program's directory. A peer that is not installed is left out, and said.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use analysis::table::{Kind, Table};
use pathlength_lab::build::{Build, BuildOptions, build};
use pathlength_lab::toolchain::{BYTE_WORD, NATIVE};
use pathlength_lab::workload::Workload;

const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// How a program is run.
struct Runner {
    name: &'static str,
    /// What stands before the program.
    command: Vec<PathBuf>,
    /// The program's build for the host.
    is_native: bool,
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
        Some(text) => {
            text.parse().map_err(|_| format!("{text} is not a number; usage: bench [TRANSACTIONS [RUNS]]"))
        }
        None => Ok(default),
    };
    let (transactions, runs) = (number(1, 200_000)?, number(2, 3)?.max(1));
    let directory = tempfile::tempdir()?;
    let workload = Workload::named("tpcb").ok_or("no such workload")?;
    let options = BuildOptions { folder: "build".into(), sources: None };
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
    let runners = runners()?;
    let columns = [
        ("program", Kind::Text),
        ("run by", Kind::Text),
        ("user s", Kind::Real(2)),
        ("system s", Kind::Real(2)),
        ("sum s", Kind::Real(2)),
        ("faster than qemu-alpha", Kind::Real(2)),
        ("in user time", Kind::Real(2)),
    ];
    let mut table = Table::new("bench", "Processor time", &columns);
    for job in &jobs {
        let mut peer = None;
        for runner in &runners {
            eprintln!("{}: {}", job.title, runner.name);
            let used = (0..runs).map(|_| measure(job, runner, &loaded, directory.path()));
            let used = used.collect::<Result<Vec<_>, _>>()?;
            let best = used.into_iter().min_by(|a, b| a.total().total_cmp(&b.total())).ok_or("no run")?;
            if runner.name == QEMU {
                peer = Some(best);
            }
            let ratio = |of: fn(Used) -> f64| peer.map_or(f64::NAN, |peer| of(peer) / of(best));
            table.row(vec![
                job.title.clone().into(),
                runner.name.into(),
                best.user.into(),
                best.system.into(),
                best.total().into(),
                ratio(Used::total).into(),
                ratio(|used| used.user).into(),
            ]);
        }
    }
    table.notes.push(format!("The smallest of {runs} runs; user and system time of all processes."));
    report::write_all(&[table], report::Format::Table, None)?;
    Ok(())
}

const QEMU: &str = "qemu-alpha";

fn runners() -> Result<Vec<Runner>, Error> {
    let pathlength = std::env::current_exe()?.ancestors().nth(2).ok_or("no directory")?.join("pathlength");
    if !pathlength.exists() {
        return Err(format!("{} is missing: cargo build --release", pathlength.display()).into());
    }
    let ours = |command: &str| vec![pathlength.clone(), command.into()];
    let mut runners = vec![
        Runner { name: QEMU, command: vec![QEMU.into(), "-L".into(), SYSROOT.into()], is_native: false },
        Runner { name: "native", command: vec![], is_native: true },
        Runner { name: "pathlength run", command: ours("run"), is_native: false },
        Runner { name: "pathlength count", command: ours("count"), is_native: false },
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
    let program = if runner.is_native { &job.native } else { &job.alpha };
    let mut words = runner.command.iter().chain([program]);
    let mut command = Command::new(words.next().ok_or("no program")?);
    command.args(words);
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
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Used { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) })
}
