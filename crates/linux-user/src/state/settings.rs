//! Settings of the operating system that a program sees.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::state::substitution::Substitution;

/// Settings of the operating system that a program sees.
#[derive(Clone, Debug)]
pub struct SystemSettings {
    /// The directory in which absolute paths are looked up first; it has the C library and its loader. None for
    /// the guest's usual one.
    pub sysroot: Option<PathBuf>,
    /// The clocks.
    pub clock: Clock,
    /// How many times as long timeouts and interval timers take by the host's clock: time dilation. More than 1 makes the
    /// world outside appear to answer at once, so that a server with one client executes the same instructions in each run:
    /// waiting for others takes none of the program's time, what has been sent is answered after the next look at it, and a
    /// process that gets a signal has done what it does about it when the sender goes on, as has a process that was forked.
    pub dilation: u32,
    /// The source of random numbers.
    pub random: RandomSource,
    /// Size of the stack in bytes.
    pub stack_bytes: u64,
    /// Variables for the environment of host programs that the program executes: each `NAME=value` replaces the
    /// program's variable of that name.
    pub host_environment: Vec<OsString>,
    /// Where the process stores the number of instructions that it has executed, several times a second.
    pub executed: Option<Arc<AtomicU64>>,
    /// The images that are loaded in place of others.
    pub substitution: Option<Arc<dyn Substitution>>,
}

impl Default for SystemSettings {
    fn default() -> SystemSettings {
        SystemSettings {
            sysroot: None,
            clock: Clock::Virtual,
            dilation: 1,
            random: RandomSource::Seeded(0),
            stack_bytes: 8 << 20,
            host_environment: Vec::new(),
            executed: None,
            substitution: None,
        }
    }
}

/// The time that clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's time.
    Host,
    /// A time that depends on the program alone, so that the same command gives the same counts: it starts at
    /// 2026-01-01T00:00:00Z, and advances by 1 ns for each instruction and by the time slept.
    Virtual,
}

/// The source of getrandom, `AT_RANDOM`, /dev/random and /dev/urandom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomSource {
    /// The host.
    Host,
    /// A generator with this seed, which gives the same numbers in each run.
    Seeded(u64),
}
