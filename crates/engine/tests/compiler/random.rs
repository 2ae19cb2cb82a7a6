//! Some thousand random sequences. `make fuzz` runs as many as you like.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::sequences::batch::Batch;
use crate::sequences::explain::explain;
use crate::sequences::{Kind, run};

const BATCH: usize = 500;

/// One guest at a time.
static GUEST: Mutex<()> = Mutex::new(());

fn engine(program: &Path, hot: u32, bytes: usize) -> Result<Vec<u8>, String> {
    let _guest = GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    run::engine(program, hot, bytes)
}

/// The program of a batch.
fn write(batch: &Batch, name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiler");
    std::fs::create_dir_all(&directory).expect("writable");
    let path = directory.join(name);
    batch.write(&path);
    path
}

fn assert_same(batch: &Batch, seed: u64, sides: [(&str, &[u8]); 2]) {
    let [(left_name, left), (right_name, right)] = sides;
    assert_eq!(left.len(), right.len(), "seed {seed}: {left_name} and {right_name}");
    if let Some(first) = batch.differing(left, right).first() {
        panic!("seed {seed}, sequence {first}:\n{}", explain(batch, *first, sides));
    }
}

/// The batch interpreted, and compiled after one, two and three executions.
fn compare(kind: Kind, seed: u64) {
    let batch = Batch::random(kind, seed, BATCH);
    let program = write(&batch, &format!("{kind:?}{seed}"));
    let interpreted = engine(&program, 0, batch.bytes()).expect("interpreted");
    for hot in 1..=3 {
        let compiled = engine(&program, hot, batch.bytes()).expect("compiled");
        let name = format!("compiled after {hot}");
        assert_same(&batch, seed, [("interpreted", &interpreted), (&name, &compiled)]);
    }
    if kind == Kind::Plain {
        let theirs = run::qemu(&program).expect("qemu-alpha runs it");
        assert_same(&batch, seed, [("interpreted", &interpreted), ("qemu", &theirs)]);
    }
}

#[test]
fn sequences_without_exceptions() {
    (0..2).for_each(|seed| compare(Kind::Plain, seed));
}

#[test]
fn sequences_with_exceptions() {
    (0..4).for_each(|seed| compare(Kind::Full, seed));
}
