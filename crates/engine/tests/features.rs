//! Features of the processor and the operating system, one test program for each topic, built with optimization and
//! byte and word instructions; in `make test-long` both builds, at every level of optimization.

mod agreement;
#[path = "agreement/riscv.rs"]
mod riscv;

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            agreement::agree(stringify!($name), 1);
        })*
    };
}

programs! {
    integer
    bytes
    floating
    sort
    files
    time
    sockets
    events
    sharing
    surroundings
    executing
    signals
    limits
    processes
    feature_faults
    feature_registers
    feature_unaligned
    feature_arithmetic
    feature_code
    feature_stacks
    feature_signals
    newer_calls
    kernel_contents
    timed_waits
    trampolines
    trampolines_late
    feature_processes
    feature_memory
    feature_reach
    feature_resources
    feature_self
    feature_discard
    feature_clone
    feature_clone_shared
    feature_descriptors
    feature_windows
    feature_forged
    feature_signal_files
    feature_tap
}
