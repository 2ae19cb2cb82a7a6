//! The kernel state of a process, which its threads share, and of each thread.

pub(crate) mod aio;
pub(crate) mod clock;
pub(crate) mod control;
pub(crate) mod deferred_reads;
pub(crate) mod fd;
pub(crate) mod forks;
pub(crate) mod heap;
pub(crate) mod idleness;
pub(crate) mod kernel;
pub(crate) mod lock;
pub(crate) mod rlimit;
pub(crate) mod settings;
pub(crate) mod signals;
pub(crate) mod substitution;
pub(crate) mod threads;
pub(crate) mod timers;
pub(crate) mod vfork;
