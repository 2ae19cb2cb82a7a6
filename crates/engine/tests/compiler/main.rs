//! Compiled code against the interpreter, and both against qemu-alpha: the same program leaves the same
//! registers and memory, and the same signals interrupt it at the same places.

mod found;
mod random;
#[path = "../sequences/mod.rs"]
mod sequences;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use sequences::batch::Batch;
use sequences::explain::explain;
use sequences::{Kind, run};

/// The batch interpreted, compiled after each number of executions, and if it is plain under qemu-alpha.
fn compare(batch: &Batch, kind: Kind, hot: &[u32]) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("writable");
    let program = directory.path().join("program");
    batch.write(&program);
    let interpreted = engine(&program, 0, batch.bytes());
    let same = |name: &str, other: &[u8]| {
        assert_eq!(interpreted.len(), other.len(), "{name}");
        let first = batch.differing(&interpreted, other).first().copied();
        let explained = |number| explain(batch, number, [("interpreted", &interpreted), (name, other)]);
        assert_eq!(first, None, "is a sequence that differs:\n{}", first.map(explained).unwrap_or_default());
    };
    for &hot in hot {
        same(&format!("compiled after {hot}"), &engine(&program, hot, batch.bytes()));
    }
    if kind == Kind::Plain {
        same("qemu", &run::qemu(&program).expect("qemu-alpha runs it"));
    }
}

/// One guest at a time, on a stack as large as that of a process: guest calls take some of it.
fn engine(program: &Path, hot: u32, bytes: usize) -> Vec<u8> {
    static GUEST: Mutex<()> = Mutex::new(());
    let _guest = GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let records = std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(8 << 20);
        let running = thread.spawn_scoped(scope, || run::engine(program, hot, bytes)).expect("a thread");
        running.join().expect("no panic")
    });
    records.unwrap_or_else(|error| panic!("compiled after {hot}: {error}"))
}
