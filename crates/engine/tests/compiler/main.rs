//! Compiled code compared with the interpreter, and both with qemu-alpha: the same program leaves the same registers
//! and memory, and the same signals interrupt it at the same instructions.

mod floats;
mod found;
mod random;
#[path = "../sequences/mod.rs"]
mod sequences;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use sequences::Kind;
use sequences::batch::Batch;
use sequences::explain::explain;
use sequences::run::{self, Way};

/// Runs a batch interpreted and compiled after each number of executions, with and without counting, and under
/// qemu-alpha if that supports it.
fn compare(batch: &Batch, kind: Kind, threshold: &[u32]) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("writable");
    let program = directory.path().join("program");
    batch.write(&program);
    let same = |interpreted: &[u8], name: &str, other: &[u8]| {
        let first = batch.differing(interpreted, other).first().copied();
        let explained = |number| explain(batch, number, [("interpreted", interpreted), (name, other)]);
        assert_eq!(first, None, "is a sequence that differs:\n{}", first.map(explained).unwrap_or_default());
    };
    for counts in [false, true] {
        let engine =
            |threshold| engine(&program, Way { compile_threshold: threshold, counts }, batch.bytes());
        let interpreted = engine(0);
        threshold.iter().for_each(|threshold| {
            same(&interpreted, &format!("compiled after {threshold}"), &engine(*threshold))
        });
        if kind == Kind::Plain && !counts {
            same(&interpreted, "qemu", &run::qemu(&program).expect("qemu-alpha runs it"));
        }
    }
}

/// One guest at a time, on a stack of the size of a process's, since guest calls use it.
fn engine(program: &Path, way: Way, bytes: usize) -> Vec<u8> {
    static GUEST: Mutex<()> = Mutex::new(());
    let _guest = GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let records = std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(8 << 20);
        let running = thread.spawn_scoped(scope, || run::engine(program, way, bytes)).expect("a thread");
        running.join().expect("no panic")
    });
    records.unwrap_or_else(|error| panic!("compiled after {}: {error}", way.compile_threshold))
}
