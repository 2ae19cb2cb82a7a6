//! The generic signals as users see them (asm-generic/signal.h, signal(7)).

use crate::abi::signals::SignalDescription;

const fn signal(
    number: i32,
    name: &'static str,
    meaning: &'static str,
    dumps_core: bool,
) -> SignalDescription {
    SignalDescription { number, name, meaning, dumps_core }
}

/// The generic signals, whose numbers are also those of x86-64 hosts.
pub const GENERIC_SIGNALS: &[SignalDescription] = &[
    signal(1, "SIGHUP", "hangup", false),
    signal(2, "SIGINT", "interrupt", false),
    signal(3, "SIGQUIT", "quit", true),
    signal(4, "SIGILL", "illegal instruction", true),
    signal(5, "SIGTRAP", "breakpoint trap", true),
    signal(6, "SIGABRT", "aborted", true),
    signal(7, "SIGBUS", "bus error", true),
    signal(8, "SIGFPE", "arithmetic exception", true),
    signal(9, "SIGKILL", "killed", false),
    signal(10, "SIGUSR1", "user signal 1", false),
    signal(11, "SIGSEGV", "memory fault", true),
    signal(12, "SIGUSR2", "user signal 2", false),
    signal(13, "SIGPIPE", "broken pipe", false),
    signal(14, "SIGALRM", "alarm clock", false),
    signal(15, "SIGTERM", "terminated", false),
    signal(16, "SIGSTKFLT", "stack fault", false),
    signal(24, "SIGXCPU", "CPU time limit exceeded", true),
    signal(25, "SIGXFSZ", "file size limit exceeded", true),
    signal(26, "SIGVTALRM", "virtual timer expired", false),
    signal(27, "SIGPROF", "profiling timer expired", false),
    signal(29, "SIGIO", "input or output possible", false),
    signal(30, "SIGPWR", "power failure", false),
    signal(31, "SIGSYS", "bad system call", true),
];
