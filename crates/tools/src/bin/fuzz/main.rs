//! Compares compiled code with the interpreter and with qemu-alpha on random input, and programs that spike rewrote with
//! the originals (`make fuzz`). Environment
//! variables limit the run:
//!
//! - `SECONDS`: the duration (300), half of it with sequences of instructions, half with programs;
//! - `SEQUENCES`, `PROGRAMS`: numbers of them instead;
//! - `SEED`: the first seed; the same seed gives the same input.
//!
//! Ctrl-C ends it early. Failing input is minimized and kept in `build/fuzz/`, with the command that reproduces the
//! failure. The exit status is 0 if nothing failed.

mod child;
mod jobs;
mod programs;
mod random;
mod rewritten;
#[path = "../../../../engine/tests/sequences/mod.rs"]
mod sequences;
mod shrink;

use std::time::{Duration, Instant};

use jobs::{Limit, Tally};

/// Where failing input is kept.
const KEPT: &str = "build/fuzz";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &arguments[..] {
        [] => fuzz(),
        ["batch", kind, seed, way] => random::batch(kind, seed, way),
        ["run", program, way, bytes] => random::run_one(program, way, bytes),
        ["shrink", kind, seed, other, sequence] => random::shrink_one(kind, seed, other, sequence),
        ["compare", program, other, sequences] => random::compare(program, other, sequences),
        _ => Err("no arguments, but variables, say what to do: see the first lines of crates/tools/src/bin/fuzz/main.rs"
            .into()),
    };
    if let Err(error) = done {
        eprintln!("fuzz: {error}");
        std::process::exit(1);
    }
}

/// The value of a variable that is a number.
fn variable(name: &str) -> Result<Option<u64>, String> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name}={text}: give a number"))
}

fn fuzz() -> Result<(), String> {
    let [sequences, programs] = [variable("SEQUENCES")?, variable("PROGRAMS")?];
    let counted = sequences.is_some() || programs.is_some();
    let seconds = variable("SECONDS")?.or((!counted).then_some(300));
    let seed = variable("SEED")?.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let phases = if counted { u64::from(sequences > Some(0)) + u64::from(programs > Some(0)) } else { 2 };
    let limit = |count: Option<u64>| Limit {
        count: count.unwrap_or(if counted { 0 } else { u64::MAX }),
        until: seconds.map(|all| Instant::now() + Duration::from_secs(all / phases.max(1))),
    };
    jobs::stop_on_interrupt();
    eprintln!("fuzz: seed {seed}; {} at a time; Ctrl-C ends it", jobs::threads());
    let mut all = random::fuzz(seed, limit(sequences))?;
    all = all.and(programs::fuzz(seed, limit(programs))?);
    let Tally { failed, .. } = all;
    if failed == 0 { Ok(()) } else { Err(format!("{failed} differences: see {KEPT}/")) }
}
