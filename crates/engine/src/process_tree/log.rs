//! The log of a program in a process: what its counts mean, and counts that are final. A line of JSON for each entry; a
//! line that is not whole was being written when the process was killed.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;

use events::{LoadedImage, ProcessEnd};
use isa::InstructionSet;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

/// The number of a process: 1 for the first one, 1.2 for the second that it forked. It does not depend on the host's numbers
/// of processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessNumber(Vec<u32>);

impl ProcessNumber {
    /// The first process.
    pub fn first() -> ProcessNumber {
        ProcessNumber::root(1)
    }

    /// A process whose parent is not counted.
    pub fn root(number: u32) -> ProcessNumber {
        ProcessNumber(vec![number])
    }

    /// The child of this ordinal number, from 1.
    pub fn child(&self, ordinal: u32) -> ProcessNumber {
        ProcessNumber(self.0.iter().copied().chain([ordinal]).collect())
    }
}

impl fmt::Display for ProcessNumber {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

/// The log of one program in one process: a process that executes another program begins another log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct LogName {
    pub(super) process: ProcessNumber,
    /// How many programs the process executed before.
    pub(super) program: u32,
}

/// The end of the names of logs.
pub(super) const LOG: &str = ".log";

impl LogName {
    /// Of the first program of a child.
    pub(super) fn child(&self, ordinal: u32) -> LogName {
        LogName { process: self.process.child(ordinal), program: 0 }
    }

    /// Of the next program of the process.
    pub(super) fn next(&self) -> LogName {
        LogName { process: self.process.clone(), program: self.program + 1 }
    }

    /// Of the name of a file, without its end.
    pub(super) fn parse(text: &str) -> Option<LogName> {
        let (process, program) = text.split_once('-')?;
        let process = process.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()?;
        Some(LogName { process: ProcessNumber(process), program: program.parse().ok()? })
    }

    /// The file of the log.
    pub(super) fn file(&self) -> String {
        format!("{}-{}{LOG}", self.process, self.program)
    }

    /// The file of a thread's counts.
    pub(super) fn area(&self, thread: u32) -> String {
        format!("{}-{}-{thread}.counts", self.process, self.program)
    }

    /// The file of a thread's samples.
    pub(super) fn samples(&self, thread: u32) -> String {
        format!("{}-{}-{thread}.samples", self.process, self.program)
    }

    /// The file of the sums of a class of units.
    pub(super) fn class(&self, class: u32) -> String {
        format!("{}-{}-{class}.class", self.process, self.program)
    }
}

/// The part of another log that belongs to this one, too: what the thread that forked had defined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Inherited {
    pub(super) log: LogName,
    pub(super) bytes: u64,
    pub(super) thread: u32,
}

/// An entry of the log. Blocks are numbered by the order of their definition; each thread has its own numbers for them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum LogEntry {
    /// The first entry.
    Began { host_process: u32, inherited: Option<Inherited> },
    /// The name of the instruction set, before the first block.
    Guest(#[serde(with = "isa::by_name")] &'static dyn InstructionSet),
    /// An image was mapped.
    Image(LoadedImage),
    /// The next block.
    Block(u64, Vec<u32>),
    /// The thread's next number is that of a block.
    Numbered(u32, u32),
    /// How the thread's next counters are evaluated, by its own numbers of blocks.
    Counters(u32, Vec<[u32; 4]>),
    /// Executions of blocks and system calls of a thread since the settlement before, which its file counts anew.
    Settled(u32, Vec<(u32, u64)>, Vec<(u32, u64)>),
    /// The next class of units of work.
    Class(String),
    /// A unit of work has ended, of a class, in a thread.
    Unit(UnitEntry),
    /// All executions in units of a class.
    ClassSettled(u32, Vec<(u32, u64)>),
    /// Another program took the place of this one.
    Replaced,
    /// The process ended.
    Ended(ProcessEnd),
}

/// A unit of work, without its blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct UnitEntry {
    pub(super) class: u32,
    pub(super) thread: u32,
    pub(super) instructions: u64,
    pub(super) returned: bool,
}

/// A log that is written.
pub(super) struct Log {
    file: File,
    bytes: u64,
}

impl Log {
    /// A new log in a folder.
    pub(super) fn new(folder: i32, name: &LogName, inherited: Option<Inherited>) -> io::Result<Log> {
        // SAFETY: the descriptor of the folder stays open while threads are counted.
        let directory = unsafe { BorrowedFd::borrow_raw(folder) };
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::TRUNC;
        let file = openat(directory, name.file(), flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)?;
        let mut log = Log { file: linux_user::out_of_reach(file).into(), bytes: 0 };
        log.append(&[LogEntry::Began { host_process: std::process::id(), inherited }])?;
        Ok(log)
    }

    /// Appends entries, by one write.
    pub(super) fn append(&mut self, entries: &[LogEntry]) -> io::Result<()> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines)?;
        self.bytes += lines.len() as u64;
        Ok(())
    }

    /// Its length.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A process as it was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    /// It ended by itself, or by a signal that the engine saw.
    Ended(ProcessEnd),
    /// It was killed, or became a program of the host: its counts are those until then.
    Gone,
    /// It was still running.
    Running,
}
