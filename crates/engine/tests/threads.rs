//! Programs with threads print the same natively, under qemu-alpha and on the engine; in `make test-long` also both
//! builds, without optimization, and in several runs each.

mod agreement;

use testing::sample;

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            agreement::agree(stringify!($name), sample(1, 2));
        })*
    };
}

programs! {
    threads
    thread_signals
    thread_library
    thread_processes
    thread_contention
    thread_memory
    thread_futexes
    thread_files
    thread_locks
}
