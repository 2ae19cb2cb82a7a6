//! Random C programs by csmith, which print a checksum of their results.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::KEPT;
use crate::child::{self, ChildOutcome};
use crate::jobs::{self, Limit, Tally};
use crate::rewritten;

/// Timeout of a first run: a program may not terminate.
const RUN: Duration = Duration::from_secs(4);
/// Timeout of the other runs of a program that terminates.
const OTHER: Duration = Duration::from_secs(300);
const BUILD: Duration = Duration::from_secs(300);

/// Where Alpha's C library is.
const SYSROOT: &str = "/usr/alpha-linux-gnu";

/// Switches of the two builds.
const BUILDS: [(&str, [&str; 2]); 2] =
    [("original", ["-mcpu=ev5", "-mno-bwx"]), ("byte-word", ["-mcpu=ev67", "-mbwx"])];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
/// Interpreted; compiled at once, and after three executions; counted. In the notation of `examples/run.rs`.
const HOT: &str = "PATHLENGTH_HOT";
const WAYS: [&str; 5] = ["0", "1", "3", "300", "count3"];

/// Runs programs up to the limit.
pub fn fuzz(seed: u64, limit: Limit) -> Result<Tally, String> {
    if limit.count == 0 {
        return Ok(Tally::default());
    }
    // Csmith writes a file to its working directory.
    std::fs::create_dir_all(KEPT).map_err(|error| format!("{KEPT}: {error}"))?;
    for (program, package) in
        [("csmith", "csmith libcsmith-dev"), ("alpha-linux-gnu-gcc", "gcc-alpha-linux-gnu")]
    {
        let mut version = Command::new(program);
        version.current_dir(KEPT).arg("--version").stdout(std::process::Stdio::null());
        let found = version.status();
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

/// One program, both builds, one level of optimization.
fn job(seed: u64, number: u64) -> Result<Tally, String> {
    let directory = Path::new(KEPT).join(format!("program-{seed}"));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let source = directory.join("program.c");
    let mut csmith = Command::new("csmith");
    csmith.current_dir(&directory).args(["--max-funcs", "5", "--quiet", "--output", "program.c"]);
    csmith.args(["--seed", &seed.to_string()]);
    if number.is_multiple_of(2) {
        csmith.arg("--float");
    }
    succeed(&mut csmith)?;
    let mut tally = Tally { done: 1, ..Tally::default() };
    for (build, switches) in BUILDS {
        let program = directory.join(build);
        let level = LEVELS[number as usize / 2 % LEVELS.len()];
        let mut compiler = Command::new("alpha-linux-gnu-gcc");
        compiler.args(["-w", "-mieee", "-Wl,--emit-relocs", "-I/usr/include/csmith", level]);
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
            let found = child::run(&mut engine(&program, way)?, OTHER)?;
            if (found.code(), &found.stdout) != (expected.code(), &expected.stdout) && !jobs::is_stopped() {
                tally.failed = 1;
                jobs::report(&difference(&program, level, way, &expected, &found)?);
            }
        }
        for way in rewritten::WAYS {
            let rewritten = rewritten::write(&program, way, seed)?;
            let found = child::run(&mut engine(&rewritten, WAYS[2])?, OTHER)?;
            if (found.code(), &found.stdout) != (expected.code(), &expected.stdout) && !jobs::is_stopped() {
                tally.failed = 1;
                jobs::report(&difference(&rewritten, level, WAYS[2], &expected, &found)?);
            }
        }
    }
    if tally.failed == 0 {
        std::fs::remove_dir_all(&directory).map_err(|error| error.to_string())?;
    }
    Ok(tally)
}

/// The engine's example program.
fn engine(program: &Path, way: &str) -> Result<Command, String> {
    let ourselves = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(ourselves.with_file_name("examples").join("run"));
    command.env(HOT, way).arg(program);
    Ok(command)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let outcome = child::run(command, BUILD)?;
    if outcome.is_success() { Ok(()) } else { Err(format!("{command:?}: {}", outcome.end())) }
}

fn difference(
    program: &Path,
    level: &str,
    way: &str,
    expected: &ChildOutcome,
    found: &ChildOutcome,
) -> Result<String, String> {
    let text = |outcome: &ChildOutcome| String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    Ok(format!(
        "{} {level}, {way}: qemu-alpha {}, {}; found {}, {}\nagain: {:?}",
        program.display(),
        expected.end(),
        text(expected),
        found.end(),
        text(found),
        engine(program, way)?
    ))
}
