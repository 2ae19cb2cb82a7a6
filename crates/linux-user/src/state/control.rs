//! The actions that system calls and signals request from the engine, and the ways in which a process ends.

use std::ffi::OsString;
use std::path::PathBuf;

use isa::InstructionSet;

use crate::abi::signals::SignalDescription;
use crate::state::threads::Start;

/// The engine's action after a system call or a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continue at the program counter.
    Continue,
    /// The program has ended with this status.
    Exit(i32),
    /// The calling thread has ended; if it is the last one, this is the program's status.
    ExitThread(i32),
    /// Start a new thread; the call returns its ID.
    Start(Start),
    /// A signal ended the program.
    Killed {
        /// The guest's number.
        signal: i32,
    },
    /// Replace this program by another one.
    Execute(Execute),
}

/// A program to run in place of the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// Its file on the host, an image of a guest.
    pub path: PathBuf,
    /// The machine in its ELF header, which says of which guest.
    pub machine: u16,
    /// Its arguments, including `argv[0]`.
    pub arguments: Vec<OsString>,
    /// `NAME=value` strings.
    pub environment: Vec<OsString>,
    /// The signals that stay blocked.
    pub(crate) mask: u64,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub enum ProgramEnd {
    /// It exited with this status.
    Exited(i32),
    /// By a signal.
    Killed(Box<Crash>),
}

/// The end of a program by a signal.
#[derive(Clone, Debug)]
pub struct Crash {
    /// The guest's number of the signal.
    pub signal: i32,
    /// The host's number of it, or SIGKILL if the host has none.
    pub host_signal: i32,
    /// How users see it, if it is a described one.
    pub description: Option<SignalDescription>,
    /// Whether an instruction raised it, as opposed to another process or thread.
    pub synchronous: bool,
    /// The address of the access that faulted, if that was the reason.
    pub address: Option<u64>,
    /// The thread to which it was delivered, if the program has several threads.
    pub thread: Option<String>,
    /// The guest.
    pub instruction_set: &'static dyn InstructionSet,
    /// The thread's program counter at that time.
    pub pc: u64,
    /// Its integer registers, by their numbers.
    pub registers: Vec<u64>,
}
