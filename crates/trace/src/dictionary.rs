//! The tables that records refer to: header, functions, streams.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isa::{INSTRUCTION_SETS, InstructionSet};
use serde::{Deserialize, Serialize};

use crate::EnvironmentSummary;

/// The header: the recorded program, and how it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program's file on the host. Bytes that are not UTF-8 are replaced when it is written.
    #[serde(serialize_with = "as_text")]
    pub program: PathBuf,
    /// The program's arguments, without its name. Bytes that are not UTF-8 are replaced.
    pub arguments: Vec<String>,
    /// The name of the instruction set ([`InstructionSet::name`]). Old traces, which are of Alpha programs, have none.
    #[serde(default = "oldest_set")]
    pub instruction_set: String,
    /// The processor: of Alpha, `ev4` to `ev67`.
    pub cpu: String,
    /// Whether the records hold values.
    pub has_values: bool,
    /// Whether there are marks of heap operations.
    #[serde(default)]
    pub has_heap: bool,
    /// The function whose calls are units of work, if there is one.
    pub unit: Option<String>,
    /// Of a whole system, the addresses of the first instruction of PALcode and after its last one; None if only programs
    /// were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub palcode: Option<(u64, u64)>,
    /// The program's environment. Older traces and those of attached programs have none.
    #[serde(default)]
    pub environment: Option<EnvironmentSummary>,
    /// When recording began, in seconds since 1970. Together with `process` this is the only part of a trace that
    /// differs between identical runs.
    pub time: u64,
    /// The host's process number of the first process.
    pub process: u32,
}

/// The privilege level or code that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExecutionMode {
    /// A program.
    User,
    /// The operating system's kernel.
    Kernel,
    /// PALcode, the processor's firmware.
    Pal,
}

impl ExecutionMode {
    /// All modes.
    pub const ALL: [ExecutionMode; 3] = [ExecutionMode::User, ExecutionMode::Kernel, ExecutionMode::Pal];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ExecutionMode::User => "user",
            ExecutionMode::Kernel => "kernel",
            ExecutionMode::Pal => "pal",
        }
    }
}

impl Header {
    /// Whether a whole system was recorded, and not only programs.
    pub fn has_system(&self) -> bool {
        self.palcode.is_some()
    }

    /// The mode in which the instruction at an address is executed.
    pub fn mode(&self, address: u64) -> ExecutionMode {
        match self.palcode {
            Some((start, end)) if (start..end).contains(&address) => ExecutionMode::Pal,
            _ if address >> 63 == 0 => ExecutionMode::User,
            _ => ExecutionMode::Kernel,
        }
    }

    /// The instruction set that it names, if it is one of these; or else the error, as a message for users.
    pub(crate) fn set_among(
        &self,
        sets: &[&'static dyn InstructionSet],
    ) -> Result<&'static dyn InstructionSet, String> {
        let named = sets.iter().copied().find(|set| set.name() == self.instruction_set);
        named.ok_or_else(|| {
            let names: Vec<_> = sets.iter().map(|set| set.name()).collect();
            let name = &self.instruction_set;
            format!(
                "a trace of the instruction set '{name}'; this pathlength reads those of {}",
                names.join(", ")
            )
        })
    }
}

/// An empty header, of a program for the first instruction set.
impl Default for Header {
    fn default() -> Header {
        Header {
            program: PathBuf::new(),
            arguments: Vec::new(),
            instruction_set: oldest_set(),
            cpu: String::new(),
            has_values: false,
            has_heap: false,
            unit: None,
            palcode: None,
            environment: None,
            time: 0,
            process: 0,
        }
    }
}

/// The instruction set of files that name none.
fn oldest_set() -> String {
    INSTRUCTION_SETS[0].name().into()
}

fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// A function that blocks belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// Its symbol name.
    pub name: String,
    /// Its image: an index of [`Trace::images`](crate::Trace::images).
    pub image: u32,
    /// Run-time address of its first instruction.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// The thread whose records a stream holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStream {
    /// The process's number among the recorded ones, from 0.
    pub process: u32,
    /// The thread's number among the recorded threads of its process, from 0.
    pub thread: u32,
    /// The host's process number; 0 for the first process, whose number is in the header.
    pub host_process: u32,
}

/// The number of times that each record of a trace happened, where a record stands for many: by the process and the thread of its stream.
pub type RecordTimes = BTreeMap<(u32, u32), Vec<u64>>;
