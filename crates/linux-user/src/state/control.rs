//! What a system call or a signal asks of the engine, and how a process ends.

use std::ffi::OsString;
use std::path::PathBuf;

use alpha::cpu::Cpu;

use crate::state::threads::Start;

/// What the engine is to do after a system call or a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Run on at the program counter.
    Continue,
    /// The program has ended with this status.
    Exit(i32),
    /// The calling thread has ended; if it is the last one, this is the program's status.
    ExitThread(i32),
    /// A new thread begins; the call returns its id.
    Start(Start),
    /// A signal ended the program.
    Killed {
        /// Alpha's number.
        signal: i32,
    },
    /// Another program takes this one's place.
    Execute(Execute),
}

/// A program to run in place of the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// Its file on the host, an Alpha image.
    pub path: PathBuf,
    /// Its arguments, the first included.
    pub arguments: Vec<OsString>,
    /// `NAME=value` strings.
    pub environment: Vec<OsString>,
    /// The signals that stay blocked.
    pub(crate) mask: u64,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Killed(Box<Crash>),
}

/// A program's end by a signal.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Alpha's number of the signal.
    pub signal: i32,
    /// Whether an instruction raised it, and not somebody else.
    pub synchronous: bool,
    /// The address whose access faulted, if that was the reason.
    pub address: Option<u64>,
    /// The thread that it reached, if the program has threads.
    pub thread: Option<String>,
    /// Its registers at that moment.
    pub cpu: Cpu,
}
