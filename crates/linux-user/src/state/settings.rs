//! What the operating system is like for a program.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the operating system is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where absolute paths are looked up first: the C library and its loader are there.
    pub sysroot: PathBuf,
    /// What the clocks show.
    pub clock: Clock,
    /// Where random numbers come from.
    pub random: Random,
    /// Size of the stack in bytes.
    pub stack_bytes: u64,
    /// What the host's programs find in their environment when the program executes one: `NAME=value`,
    /// instead of what the program has under that name.
    pub host_environment: Vec<OsString>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sysroot: "/usr/alpha-linux-gnu".into(),
            clock: Clock::Virtual,
            random: Random::Seeded(0),
            stack_bytes: 8 << 20,
            host_environment: Vec::new(),
        }
    }
}

/// What the clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's time.
    Host,
    /// A time that depends on the program alone, so that the same command gives the same counts: it
    /// starts at 2026-01-01T00:00:00Z and advances by 1 ns an instruction and by what is slept.
    Virtual,
}

/// Where getrandom, `AT_RANDOM`, /dev/random and /dev/urandom come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// The host.
    Host,
    /// A generator with this seed: the same numbers each time.
    Seeded(u64),
}
