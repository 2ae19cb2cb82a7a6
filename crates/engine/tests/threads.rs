//! Programs with threads print the same natively, under qemu-alpha and on the engine, in both builds,
//! not optimized and optimized, each time.

mod agreement;

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            agreement::agree(stringify!($name), &["-O0", "-O2"], 3);
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
}
