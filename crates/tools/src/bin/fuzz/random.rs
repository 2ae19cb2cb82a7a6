//! Random sequences of instructions.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::KEPT;
use crate::child::{self, ChildOutcome, ourselves};
use crate::jobs::{self, Limit, Tally};
use crate::sequences::Kind;
use crate::sequences::batch::Batch;
use crate::sequences::explain::explain;
use crate::sequences::run::{self, Way};
use crate::shrink::shrink;

/// Number of sequences in one program.
const BATCH: usize = 2000;
/// Timeouts for a program with that many sequences, and for one with a few.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_secs(2);
/// Maximum number of differences reported for a batch.
const TOLD: usize = 3;
/// Stands for qemu-alpha in the place of a [`Way`].
const QEMU: &str = "qemu";
/// Most code is compiled after three executions, when its paths are known.
const WAYS: [&str; 5] = ["1", "count3", "3", "count2", "3"];

/// The reference for another side: the interpreter, with counting if the other side counts.
fn interpreted(other: &str) -> &'static str {
    if other.starts_with("count") { "count0" } else { "0" }
}

/// Runs sequences up to the limit.
pub fn fuzz(seed: u64, limit: Limit) -> Result<Tally, String> {
    let limit = Limit { count: limit.count.div_ceil(BATCH as u64), ..limit };
    if limit.count == 0 {
        return Ok(Tally::default());
    }
    Ok(jobs::run("sequences", limit, |number| job(seed.wrapping_add(number), number)))
}

/// Runs a batch. One in four contains only instructions that qemu-alpha supports.
fn job(seed: u64, number: u64) -> Tally {
    let kind = if number.is_multiple_of(4) { Kind::Plain } else { Kind::Full };
    let way = WAYS[number as usize % WAYS.len()];
    let name = if kind == Kind::Plain { "plain" } else { "full" };
    let outcome = child::run(&mut ourselves(&["batch", name, &seed.to_string(), way]), LONG);
    let done = Tally { done: BATCH as u64, ..Tally::default() };
    match outcome {
        Ok(outcome) if outcome.is_success() && outcome.stdout.is_empty() => done,
        _ if jobs::is_stopped() => Tally::default(),
        Ok(outcome) => Tally { failed: tell(kind, seed, &outcome), ..done },
        Err(error) => {
            jobs::report(&error);
            Tally { failed: 1, ..done }
        }
    }
}

fn kind(name: &str) -> Kind {
    if name == "plain" { Kind::Plain } else { Kind::Full }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

/// In a child process: runs a batch, and writes the other side and, in a line each, the sequences that differ from
/// the interpreter.
pub fn batch(name: &str, seed: &str, way: &str) -> Result<(), String> {
    let batch = Batch::random(kind(name), number(seed)?, BATCH);
    let program = std::env::temp_dir().join(format!("pathlength-fuzz-{}", std::process::id()));
    batch.write(&program);
    let result = differences(&batch, &program, kind(name), way);
    std::fs::remove_file(&program).map_err(|error| error.to_string())?;
    result
}

fn differences(batch: &Batch, program: &Path, kind: Kind, way: &str) -> Result<(), String> {
    let engine = |way: &str| run::engine(program, way.parse::<Way>()?, batch.bytes());
    let mut left = engine(interpreted(way))?;
    batch.differing(&left, &engine(way)?).iter().for_each(|sequence| println!("{way} {sequence}"));
    if kind == Kind::Plain {
        left.truncate(batch.bytes());
        let theirs = run::qemu(program)?;
        batch.differing(&left, &theirs).iter().for_each(|sequence| println!("{QEMU} {sequence}"));
    }
    Ok(())
}

/// In a child process: runs a program, and writes its results.
pub fn run_one(program: &str, way: &str, bytes: &str) -> Result<(), String> {
    let left = run::engine(Path::new(program), way.parse()?, number(bytes)?)?;
    std::io::stdout().write_all(&left).map_err(|error| error.to_string())
}

/// The results of a program on one side.
fn side(program: &Path, other: &str, bytes: usize, limit: Duration) -> Result<ChildOutcome, String> {
    let path = program.to_str().ok_or("a path in UTF-8")?;
    let mut command = match other {
        QEMU => run::qemu_command(program),
        way => ourselves(&["run", path, way, &bytes.to_string()]),
    };
    command.stderr(std::process::Stdio::null());
    child::run(&mut command, limit)
}

/// Whether the two sides end differently.
fn differs(batch: &Batch, program: &Path, other: &str) -> bool {
    batch.write(program);
    let limit = if batch.sequences.len() > 10 { LONG } else { SHORT };
    let [ours, theirs] = [interpreted(other), other].map(|other| side(program, other, batch.bytes(), limit));
    // A program that does not terminate on the reference side cannot be compared.
    !jobs::is_stopped() && ours.as_ref().is_ok_and(ChildOutcome::is_success) && ours != theirs
}

/// Minimizes and reports failures; returns the number of failing sequences.
fn tell(kind: Kind, seed: u64, outcome: &ChildOutcome) -> u64 {
    let lines = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let mut failures: Vec<(&str, usize)> = lines
        .lines()
        .filter_map(|line| line.split_once(' ').and_then(|(a, b)| Some((a, b.parse().ok()?))))
        .collect();
    let count = failures.len().max(1);
    if !outcome.is_success() {
        // The child failed before the comparison.
        failures = ["1", "3", "count3", QEMU].map(|other| (other, 0)).to_vec();
    }
    for (other, suspect) in failures.into_iter().take(TOLD) {
        match one(kind, seed, other, suspect) {
            Ok(text) => jobs::report(&text),
            Err(error) => {
                let batch = format!("{kind:?} batch {seed} against {other}").to_lowercase();
                jobs::report(&format!("{batch}: {}, but {error}", outcome.end()));
            }
        }
    }
    count as u64
}

/// Minimizes a failure and keeps it in a directory; returns the report.
fn one(kind: Kind, seed: u64, other: &str, suspect: usize) -> Result<String, String> {
    let directory = Path::new(KEPT).join(format!("{kind:?}-{seed}-{other}-{suspect}").to_lowercase());
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let (program, trial) = (directory.join("program"), directory.join("trial"));
    let batch = Batch::random(kind, seed, BATCH);
    batch.write(&program);
    if !differs(&batch, &program, other) {
        return Err("no difference when tried again".into());
    }
    let batch = shrink(&batch, suspect, &mut |batch| differs(batch, &trial, other));
    std::fs::remove_file(&trial).map_err(|error| error.to_string())?;
    batch.write(&program);
    let [left, right] = [interpreted(other), other].map(|other| side(&program, other, batch.bytes(), SHORT));
    let (left, right) = (left?, right?);
    let mut text = format!(
        "{}: interpreted: {}, {other}: {}\nagain: {} compare {} {other} {}\n",
        directory.display(),
        left.end(),
        right.end(),
        std::env::current_exe().map_err(|error| error.to_string())?.display(),
        program.display(),
        batch.sequences.len(),
    );
    for number in 0..batch.sequences.len() {
        let is_whole = |side: &ChildOutcome| side.stdout.len() >= batch.bytes();
        let zeros = vec![0; batch.bytes()];
        let of = |side| if is_whole(side) { &side.stdout[..] } else { &zeros };
        text += &explain(&batch, number, [("interpreted", of(&left)), (other, of(&right))]);
    }
    std::fs::write(directory.join("report"), &text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Minimizes a failure of a test.
pub fn shrink_one(name: &str, seed: &str, other: &str, sequence: &str) -> Result<(), String> {
    println!("{}", one(kind(name), number(seed)?, other, number(sequence)?)?);
    Ok(())
}

/// Shows a difference again: the results of a program with this number of sequences on both sides.
pub fn compare(program: &str, other: &str, sequences: &str) -> Result<(), String> {
    let bytes = Batch::bytes_of(number(sequences)?);
    let sides = [interpreted(other), other].map(|other| side(Path::new(program), other, bytes, LONG));
    if sides[0] == sides[1] {
        println!("no difference");
        return Ok(());
    }
    let [left, right] = sides;
    let (left, right) = (left?, right?);
    println!("interpreted: {}; {other}: {}", left.end(), right.end());
    let quads = left.stdout.chunks(8).zip(right.stdout.chunks(8)).enumerate();
    quads.take(bytes / 8).filter(|(_, (left, right))| left != right).for_each(|(index, (left, right))| {
        let value = |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (run, name) = Batch::quadword(index);
        println!("run {run}, {name}: {} interpreted, {} {other}", value(left), value(right));
    });
    for (address, left, right) in Batch::counts_differing(bytes, &left.stdout, &right.stdout) {
        println!("executions, {address:#x}: {left} interpreted, {right} {other}");
    }
    Err("there is a difference".into())
}
