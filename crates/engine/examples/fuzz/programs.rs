//! Random C programs, made by csmith: each prints a checksum of all it computed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pathlength_engine::{Configuration, End, Process, Settings};

use crate::child::{self, Outcome, ourselves};
use crate::jobs::{self, Limit, Tally};

/// A program may be without end.
const RUN: Duration = Duration::from_secs(4);
/// The same program in another way takes no longer than this.
const OTHER: Duration = Duration::from_secs(300);
const BUILD: Duration = Duration::from_secs(300);

/// Where Alpha's C library is.
const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// Switches of the two builds.
const BUILDS: [(&str, [&str; 2]); 2] =
    [("original", ["-mcpu=ev5", "-mno-bwx"]), ("byte-word", ["-mcpu=ev67", "-mbwx"])];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Interpreted, compiled at once, after three executions, and as always.
const WAYS: [&str; 4] = ["0", "1", "3", "default"];

/// Runs programs up to the limit.
pub fn fuzz(seed: u64, limit: Limit) -> Result<Tally, String> {
    if limit.count == 0 {
        return Ok(Tally::default());
    }
    for (program, package) in
        [("csmith", "csmith libcsmith-dev"), ("alpha-linux-gnu-gcc", "gcc-alpha-linux-gnu")]
    {
        let found = Command::new(program).arg("--version").stdout(std::process::Stdio::null()).status();
        found.map_err(|error| format!("cannot run {program}: {error}; Debian: apt-get install {package}"))?;
    }
    Ok(jobs::run("programs", limit, |number| {
        job(seed.wrapping_add(number), number).unwrap_or_else(|error| {
            if !jobs::is_stopped() {
                jobs::report(&error);
            }
            Tally { failed: u64::from(!jobs::is_stopped()), ..Tally::default() }
        })
    }))
}

/// In a process of its own: runs a guest, which ends it.
pub fn guest(program: &str, hot: &str) -> Result<(), String> {
    let mut process = Process::new(&Configuration {
        program: program.into(),
        arguments: vec![],
        environment: vec![],
        model: isa::Cpu::Ev67,
        settings: Settings::default(),
    })
    .map_err(|error| error.to_string())?;
    if let Ok(hot) = hot.parse() {
        process.hot = hot;
    }
    match process.run(&mut ()).map_err(|error| error.to_string())? {
        End::Exited(status) => std::process::exit(status),
        End::Killed(crash) => std::process::exit(128 + crash.signal),
    }
}

/// One program, both builds, one level of optimization.
fn job(seed: u64, number: u64) -> Result<Tally, String> {
    let directory = PathBuf::from(format!("build/fuzz/program-{seed}"));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let source = directory.join("program.c");
    let mut csmith = Command::new("csmith");
    csmith.args(["--seed", &seed.to_string(), "--max-funcs", "5", "--quiet", "--output"]).arg(&source);
    if number.is_multiple_of(2) {
        csmith.arg("--float");
    }
    succeed(&mut csmith)?;
    let mut tally = Tally { done: 1, ..Tally::default() };
    for (build, switches) in BUILDS {
        let program = directory.join(build);
        let level = LEVELS[number as usize / 2 % LEVELS.len()];
        let mut compiler = Command::new("alpha-linux-gnu-gcc");
        compiler.args(["-w", "-mieee", "-I/usr/include/csmith", level]);
        compiler.args(switches).arg("-o").arg(&program).arg(&source).arg("-lm");
        succeed(&mut compiler)?;
        let expected = child::run(Command::new("qemu-alpha").args(["-L", SYSROOT]).arg(&program), RUN)?;
        if expected.status.is_none() {
            tally = Tally { done: 0, skipped: 1, ..tally };
            break;
        }
        if !expected.is_success() {
            return Err(format!("{}: qemu-alpha: {}", program.display(), expected.end()));
        }
        for way in WAYS {
            let found = child::run(&mut guest_command(&program, way)?, OTHER)?;
            if (found.code(), &found.stdout) != (expected.code(), &expected.stdout) && !jobs::is_stopped() {
                tally.failed = 1;
                jobs::report(&difference(&program, level, way, &expected, &found)?);
            }
        }
    }
    if tally.failed == 0 {
        std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    Ok(tally)
}

fn guest_command(program: &Path, way: &str) -> Result<Command, String> {
    Ok(ourselves(&["guest", program.to_str().ok_or("a path in UTF-8")?, way]))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let outcome = child::run(command, BUILD)?;
    if outcome.is_success() { Ok(()) } else { Err(format!("{command:?}: {}", outcome.end())) }
}

fn difference(
    program: &Path,
    level: &str,
    way: &str,
    expected: &Outcome,
    found: &Outcome,
) -> Result<String, String> {
    let text = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    Ok(format!(
        "{} {level}, hot {way}: qemu-alpha {}, {}; found {}, {}\nagain: {:?}",
        program.display(),
        expected.end(),
        text(expected),
        found.end(),
        text(found),
        guest_command(program, way)?
    ))
}
