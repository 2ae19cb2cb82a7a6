//! Builds programs, and runs them under qemu-alpha and on the engine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Configuration, Process, ProgramEnd, SystemSettings};

/// Where Alpha's C library is, for qemu-alpha.
const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// How a program ended, and what it wrote.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status, if it was not killed.
    pub status: Option<i32>,
    /// Its output.
    pub output: String,
}

/// The path of a test program's source.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles and links with relocations.
pub fn build(sources: &[&str], switches: &[&str], out: &Path) {
    let compiler = if sources[0].ends_with(".cc") { "alpha-linux-gnu-g++" } else { "alpha-linux-gnu-gcc" };
    let mut command = Command::new(compiler);
    command.args(switches).args(["-w", "-pthread", "-Wl,--emit-relocs,--no-warn-execstack"]);
    command.args(sources.iter().map(|name| source(name))).arg("-o").arg(out);
    let status = command.status().unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
    assert!(status.success(), "{command:?}");
}

/// Writes an executable file.
pub fn write_executable(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a program under qemu-alpha. Its argument is the file that it writes to.
pub fn run_qemu(program: &Path) -> Outcome {
    let output = program.with_extension("qemu");
    let mut command = Command::new("qemu-alpha");
    command.arg(program).arg(&output).env("QEMU_LD_PREFIX", SYSROOT);
    let run = command.output().unwrap_or_else(|error| panic!("qemu-alpha is needed: {error}"));
    Outcome { status: run.status.code(), output: std::fs::read_to_string(output).unwrap_or_default() }
}

/// The variable with the program that [`run_engine_here`] runs.
const PROGRAM: &str = "SPIKE_TEST_PROGRAM";

/// Runs a program on the engine, in a process of its own: the test `on_engine`.
pub fn run_engine(program: &Path) -> Outcome {
    let output = program.with_extension("engine");
    let ourselves = std::env::current_exe().expect("the test's own path");
    let mut command = Command::new(ourselves);
    command.args(["--exact", "on_engine", "--ignored", "--nocapture"]).env(PROGRAM, program);
    let run = command.output().expect("the test can be started again");
    Outcome { status: run.status.code(), output: std::fs::read_to_string(output).unwrap_or_default() }
}

/// Runs the program that the environment names, and ends with its status.
pub fn run_engine_here() {
    let program = PathBuf::from(std::env::var_os(PROGRAM).expect("a program in the environment"));
    let configuration = Configuration {
        arguments: vec![program.with_extension("engine").into_os_string()],
        program,
        name: None,
        environment: vec![],
        model: isa::Processors::default(),
        settings: SystemSettings::default(),
    };
    let mut process = Process::new(&configuration).expect("the program can be loaded");
    let end = process.run(&mut ()).expect("the program runs");
    let ProgramEnd::Exited(status) = end else { panic!("{end:?}") };
    std::process::exit(status);
}
