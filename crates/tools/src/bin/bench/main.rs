//! The engine's speed, compared with other simulators in one run: `make bench`.
//!
//! Programs run natively, under qemu-alpha, and on the engine: without counts, with them, and with a
//! full trace, every block and every address, handed to a consumer that adds them up. What is measured is the processor
//! time (user and system, of all processes, the compiler's included): the run with the smallest
//! sum of several. Other parts measure what traces cost, of three transactions and of all; what models of
//! caches and of time cost, beside QEMU's plugin for caches and cachegrind, with the same misses as the plugin; how fast
//! multiprocessors and out-of-order cores are simulated; how fast strides are counted, and network adapters simulated, beside
//! ns-3; how many vertices a library for OpenGL transforms, beside Mesa's; and what recording and tracing a whole system costs.
//! The engine is the command `pathlength` next to this program's directory, and the engine's example `run`. A peer that is not installed
//! is left out, and said. `--help` lists the parts.

mod coherence;
mod graphics;
mod measure;
mod models;
mod network;
mod options;
mod programs;
mod record;
mod server;
mod strides;
mod system;
mod traces;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tempfile::TempDir;
use workloads::build::{Build, BuildFolders, build};
use workloads::toolchain::{BYTE_WORD, NATIVE};
use workloads::workload::Workload;

use measure::Job;
use options::BenchOptions;
use record::BenchRecord;

type Error = Box<dyn std::error::Error>;

/// The programs and folders of the parts.
struct Bench {
    options: BenchOptions,
    folders: BuildFolders,
    directory: TempDir,
    /// TPC-B's database before the first transaction.
    loaded: PathBuf,
    hello: Job,
    /// TPC-B with few transactions, and with all.
    short: Job,
    long: Job,
}

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
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{}", options::help());
        return Ok(());
    }
    let options = BenchOptions::read(&words, |name| std::env::var(name).ok())?;
    let mut record = BenchRecord::new(Path::new(record::FOLDER), &options)?;
    let bench = Bench::prepare(options)?;
    let mut failed = false;
    for part in &bench.options.parts {
        if let Err(error) = bench.measure(part, &mut record) {
            eprintln!("bench: {part}: {error}");
            failed = true;
        }
    }
    println!("\nKept in {}", record.file().display());
    if failed { Err("not all parts could be measured".into()) } else { Ok(()) }
}

impl Bench {
    /// Builds the programs, and loads the database.
    fn prepare(options: BenchOptions) -> Result<Bench, Error> {
        // Databases lie in memory where they can: a disk's file system takes more time than the engine.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
        let workload = Workload::named("tpcb").ok_or("no such workload")?;
        let folders = BuildFolders { folder: "build".into(), sources: None };
        let builds = build(workload, &[BYTE_WORD, NATIVE], &folders, &|_| {})?;
        let [alpha, native] = &builds[..] else { return Err("two builds were asked for".into()) };
        let loaded = directory.path().join("loaded.db");
        let status = Command::new(&native.program).arg("load").arg(&loaded).stdout(Stdio::null()).status()?;
        if !status.success() {
            return Err("the database could not be loaded".into());
        }
        let hello = hello(directory.path())?;
        let short = tpcb(alpha, native, 20_000.min(options.transactions));
        let long = tpcb(alpha, native, options.transactions);
        Ok(Bench { options, folders, directory, loaded, hello, short, long })
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Measures a part of [`options::PARTS`].
    fn measure(&self, part: &str, record: &mut BenchRecord) -> Result<(), Error> {
        let mut databases = vec![&self.short, &self.long];
        databases.dedup_by(|a, b| a.title == b.title);
        match part {
            "start" => programs::jobs(self, part, &[&self.hello], record),
            "sqlite" => programs::jobs(self, part, &databases, record),
            "postgresql" => programs::postgresql(self, record),
            "server" => programs::observed_server(self, record),
            "traces" => traces::measure(self, record),
            "models" => models::measure(self, record),
            "coherence" => coherence::measure(self, record),
            "strides" => strides::measure(self, record),
            "network" => network::measure(self, record),
            "graphics" => graphics::measure(self, record),
            "system" => system::measure(self, record),
            _ => Err(format!("there is no part '{part}'").into()),
        }
    }
}

/// The command beside this program.
fn pathlength() -> Result<PathBuf, Error> {
    let pathlength = std::env::current_exe()?.with_file_name("pathlength");
    if !pathlength.exists() {
        return Err(format!("{} is missing: cargo build --release", pathlength.display()).into());
    }
    Ok(pathlength)
}

/// A program that does nothing.
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
