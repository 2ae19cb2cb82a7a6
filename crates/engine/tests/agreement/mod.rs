//! Programs must print the same natively, under qemu-alpha and on the engine, in both builds, of which one is
//! optimized. The first lines of a source state its exceptions: `flags:` and `alpha flags:` for the compiler, and
//! `not under qemu-alpha 7.2:` and `not as on x86-64:`
//! (for RISC-V) with the reason. A line of output that qemu-alpha gets wrong contains `[not qemu]` and
//! is not compared there. A source that tests `LIBRARY` is also compiled to a library, which the program loads as
//! `../library.so`.
#![allow(dead_code, reason = "no test needs all of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use testing::sample;

const SYSROOT: &str = "/usr/alpha-linux-gnu";
const RISCV_SYSROOT: &str = "/usr/riscv64-linux-gnu";
/// The ways in which the engine executes (`examples/run.rs`): interpreting only, and with its own thresholds, with
/// and without counting.
const WAYS: [Option<&str>; 3] = [Some("0"), Some("count"), None];
/// With debuggers that stop the program again and again. One build only, as it is slow.
const DEBUGGED: [Option<&str>; 1] = [Some("debug1")];
/// The byte/word build and the original one, which is not optimized; a sample has only the first.
const BUILDS: [&[&str]; 2] = [&["-mcpu=ev56", "-mbwx", "-O2"], &["-mcpu=ev5", "-mno-bwx", "-O0"]];

/// Compares a program's runs. Each build runs `runs` times on the engine in each way, since races may show rarely.
pub fn agree(name: &str, runs: usize) {
    let program = Program::find(name);
    let is_debugged = program.word("not debugged:").is_none();
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let native = program.compile("cc", &["-O2"], &directory.path().join("native"));
    let expected = Run::of(&mut Command::new(&native), &native);
    for (build, switches) in sample(&BUILDS[..1], &BUILDS).iter().enumerate() {
        let folder = directory.path().join(build.to_string());
        let alpha = program.compile("alpha-linux-gnu-gcc", switches, &folder);
        let debugged = if build == 0 && is_debugged { &DEBUGGED[..] } else { &[] };
        let ways = WAYS.iter().chain(debugged);
        for (way, time) in ways.flat_map(|way| (0..runs).map(move |time| (way, time))) {
            let mut command = Command::new(engine());
            command.env_remove("PATHLENGTH_HOT").envs(way.map(|way| ("PATHLENGTH_HOT", way)));
            let found = Run::of(command.arg(&alpha), &alpha);
            assert_eq!(found, expected, "{name} {switches:?}, {way:?}, run {time}");
        }
        if program.word("not under qemu-alpha 7.2:").is_none() {
            let found = Run::of(Command::new("qemu-alpha").args(["-L", SYSROOT]).arg(&alpha), &alpha);
            let (found, expected) = (found.for_qemu(), expected.for_qemu());
            assert_eq!(found, expected, "{name} {switches:?} under qemu-alpha");
        }
    }
}

/// The same for RISC-V: natively, under qemu-riscv64 and on the engine. A program whose first lines say `not as on x86-64:`, with the
/// reason, is compared with qemu-riscv64 only.
pub fn agree_on_riscv(name: &str) {
    let program = Program::find(name);
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let riscv = program.compile("riscv64-linux-gnu-gcc", &["-O2"], &directory.path().join("riscv"));
    let expected = match program.word("not as on x86-64:") {
        Some(_) => {
            let mut qemu = Command::new("qemu-riscv64");
            Run::of(qemu.args(["-L", RISCV_SYSROOT]).arg(&riscv), &riscv)
        }
        None => {
            let native = program.compile("cc", &["-O2"], &directory.path().join("native"));
            Run::of(&mut Command::new(&native), &native)
        }
    };
    for way in WAYS {
        let mut command = Command::new(engine());
        command.env_remove("PATHLENGTH_HOT").envs(way.map(|way| ("PATHLENGTH_HOT", way)));
        let found = Run::of(command.arg(&riscv), &riscv);
        assert_eq!(found, expected, "{name} for RISC-V, {way:?}");
    }
}

struct Program {
    path: PathBuf,
    source: String,
}

impl Program {
    fn find(name: &str) -> Program {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/tests").join(name);
        let path = path.with_extension("c");
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Program { path, source }
    }

    /// The text after a keyword in one of the source's first lines.
    fn word(&self, keyword: &str) -> Option<&str> {
        let mut first =
            self.source.lines().take_while(|line| line.starts_with("/*") || line.starts_with(" *"));
        first.find_map(|line| {
            Some(line.strip_prefix("/* ")?.strip_prefix(keyword)?.trim_end_matches("*/").trim())
        })
    }

    fn compile(&self, compiler: &str, switches: &[&str], folder: &Path) -> PathBuf {
        std::fs::create_dir(folder).expect("a new folder");
        let own = self.word("alpha flags:").filter(|_| compiler.starts_with("alpha"));
        let own = own.into_iter().flat_map(str::split_whitespace);
        let switches: Vec<&str> = own.chain(switches.iter().copied()).collect();
        let program = folder.join("program");
        self.run_compiler(compiler, &switches, &program);
        if self.source.contains("LIBRARY") {
            let library = [&switches[..], &["-DLIBRARY", "-shared", "-fPIC"]].concat();
            self.run_compiler(compiler, &library, &folder.join("library.so"));
        }
        program
    }

    fn run_compiler(&self, compiler: &str, switches: &[&str], output: &Path) {
        let mut command = Command::new(compiler);
        command.args(switches).arg("-w").arg("-o").arg(output).arg(&self.path);
        command.args(self.word("flags:").into_iter().flat_map(str::split_whitespace));
        let result = execute(&mut command);
        assert!(result.status.success(), "{command:?}: {}", String::from_utf8_lossy(&result.stderr));
    }
}

/// The output of a program, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    output: String,
    status: Option<i32>,
}

impl Run {
    /// Runs a program in an empty directory beside it.
    fn of(command: &mut Command, program: &Path) -> Run {
        let folder = tempfile::tempdir_in(program.parent().expect("a folder")).expect("a folder");
        let result = execute(command.current_dir(folder.path()));
        eprint!("{}", String::from_utf8_lossy(&result.stderr));
        let output = String::from_utf8_lossy(&result.stdout).into_owned();
        Run { output, status: result.status.code() }
    }

    /// The output without the lines that qemu-alpha gets wrong.
    fn for_qemu(&self) -> Run {
        let right = self.output.split_inclusive('\n').filter(|line| !line.contains("[not qemu]"));
        Run { output: right.collect(), status: self.status }
    }
}

/// The engine's example program, which Cargo builds with the tests.
pub fn engine() -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let engine = test.ancestors().nth(2).expect("two folders").join("examples/run");
    let hint = "build the engine's program first: cargo build -p pathlength-engine --example run";
    assert!(engine.exists(), "{hint}");
    engine
}

/// A timeout longer than any of the programs takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Executes a command, without input.
fn execute(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| panic!("{shown} is needed for this test: {error}"));
    let id = child.id();
    let (ended, has_ended) = channel::<()>();
    std::thread::spawn(move || {
        if has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            give_up(id, &shown);
        }
    });
    let output = child.wait_with_output().expect("its output");
    drop(ended);
    output
}

/// A program hangs: reports where its threads are, and ends all tests, since the program may have children that would
/// outlive it.
fn give_up(process: u32, command: &str) -> ! {
    // The test harness captures print macros, but not this.
    let mut error = std::io::stderr();
    let _ = writeln!(error, "after {} s, {command} still runs:", PATIENCE.as_secs());
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let says = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let _ = writeln!(error, "{}waits in {:?}, call {}", says("stat"), says("wchan"), says("syscall"));
    }
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    std::process::exit(1)
}
