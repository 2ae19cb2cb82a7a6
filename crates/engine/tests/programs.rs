//! C programs that make system calls must print the same when compiled for the host and run
//! natively, and when compiled for Alpha and run on the engine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(command: &mut Command, what: &str) -> Output {
    command.output().unwrap_or_else(|error| panic!("{what} is needed for this test: {error}"))
}

fn compile(compiler: &str, source: &Path, binary: &Path) {
    let command = &mut Command::new(compiler);
    let output = run(command.args(["-O2", "-w", "-o"]).arg(binary).arg(source).arg("-lutil"), compiler);
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs in an empty directory, without input; what was printed and how it ended.
fn outcome(command: &mut Command, directory: PathBuf) -> (String, Option<i32>) {
    std::fs::create_dir(&directory).unwrap();
    let output = run(command.current_dir(directory).stdin(std::process::Stdio::null()), "the program");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

fn same_as_natively(name: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let directory = tempfile::tempdir().unwrap();
    let [native, alpha] = [("native", "cc"), ("alpha", "alpha-linux-gnu-gcc")].map(|(folder, compiler)| {
        // Both have the same name, which some programs print.
        let folder = directory.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        compile(compiler, &source, &folder.join("program"));
        folder.join("program")
    });
    // Cargo builds the examples beside the tests.
    let test = std::env::current_exe().unwrap();
    let engine = test.ancestors().nth(2).unwrap().join("examples/run");
    assert!(
        engine.exists(),
        "build the engine's program first: cargo build -p pathlength-engine --example run"
    );
    let expected = outcome(&mut Command::new(&native), directory.path().join("1"));
    let found = outcome(Command::new(&engine).arg(&alpha), directory.path().join("2"));
    assert_eq!(found.0, expected.0);
    assert_eq!(found.1, expected.1);
}

#[test]
fn sockets() {
    same_as_natively("sockets");
}

#[test]
fn events() {
    same_as_natively("events");
}

#[test]
fn sharing() {
    same_as_natively("sharing");
}

#[test]
fn surroundings() {
    same_as_natively("surroundings");
}

#[test]
fn executing() {
    same_as_natively("executing");
}
