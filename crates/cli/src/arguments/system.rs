//! Options of `system`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use system::job::SharedFile;

use super::{EnvironmentOptions, OutputOptions, ProgramOptions, RowOptions};
use crate::ranges;

/// What `system` does.
#[derive(Debug, Subcommand)]
pub enum SystemCommand {
    /// Build the Linux kernel that programs run on.
    #[command(after_help = "\
Example: pathlength system build

The sources are those of Debian's package linux. The build takes some minutes and is kept until something changes; \
the other commands do it if it is missing. ./setup system installs what it needs.")]
    Build(SystemBuildOptions),
    /// Run a program.
    #[command(
        override_usage = "pathlength system run [OPTIONS] <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength system run ./hello world
  pathlength system run --file data.txt --take sorted.txt ./sort -o sorted.txt data.txt

The program, its libraries and the files of --file are put into the guest's memory; its output appears when it has ended. \
The exit status is the program's."
    )]
    Run(SystemRunOptions),
    /// Record every instruction and every address of a program, the kernel and PALcode.
    #[command(
        override_usage = "pathlength system trace [OPTIONS] -o <FILE> <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength system trace -o sort.trace --file data.txt ./sort data.txt
  pathlength show sort.trace --table modes,entries,system-call-costs
  pathlength show sort.trace --mode kernel --table functions

The program runs twice: first undisturbed, recording interrupts and time, then exactly so again, slowly, recording all \
else. The trace begins with the program's first instruction, and ends when the first process has learnt of its end. It has \
all processes, and the kernel's threads as one process."
    )]
    Trace(SystemTraceOptions),
    /// Count the instructions of a program, the kernel and PALcode.
    #[command(
        override_usage = "pathlength system count [OPTIONS] <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength system count ./hello world
  pathlength system count --table functions --top 50 ./hello world
  pathlength system count --format json -o counts.json ./hello world

The tables are those of pathlength show on a trace that pathlength system trace records."
    )]
    Count(SystemCountOptions),
}

/// The guest.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Guest")]
pub struct GuestOptions {
    /// The folder of builds, where the kernel is kept.
    #[arg(long, value_name = "DIR", default_value = "build")]
    pub folder: PathBuf,
    /// A folder with the sources of Linux, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    /// The guest's memory.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = ranges::memory_size)]
    pub memory: u64,
    /// A file or a folder to put in; without GUEST at its own path. Can be given several times.
    #[arg(long = "file", value_name = "HOST[:GUEST]", value_parser = OsStringValueParser::new().try_map(put_in))]
    pub files: Vec<SharedFile>,
    /// A file to take out when the program has ended; without HOST to its own path. Can be given several times.
    #[arg(long = "take", value_name = "GUEST[:HOST]", value_parser = OsStringValueParser::new().try_map(take_out))]
    pub taken: Vec<SharedFile>,
    /// Where the program's libraries are searched first.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
    #[command(flatten)]
    pub environment: EnvironmentOptions,
}

/// Options of `system build`.
#[derive(Debug, Args)]
pub struct SystemBuildOptions {
    /// The folder of builds.
    #[arg(long, value_name = "DIR", default_value = "build")]
    pub folder: PathBuf,
    /// A folder with the sources of Linux, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Options of `system run`.
#[derive(Debug, Args)]
pub struct SystemRunOptions {
    #[command(flatten)]
    pub guest: GuestOptions,
    #[command(flatten)]
    pub program: ProgramOptions,
}

/// Options of `system trace`.
#[derive(Debug, Args)]
pub struct SystemTraceOptions {
    /// The trace file.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub guest: GuestOptions,
    #[command(flatten)]
    pub program: ProgramOptions,
}

/// Options of `system count`.
#[derive(Debug, Args)]
pub struct SystemCountOptions {
    /// Only these tables of `show`, with all rows: functions, for example.
    #[arg(long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    #[command(flatten)]
    pub rows: RowOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub guest: GuestOptions,
    #[command(flatten)]
    pub program: ProgramOptions,
}

fn put_in(text: std::ffi::OsString) -> Result<SharedFile, String> {
    let (host, guest) = pair(&text)?;
    let guest = guest.unwrap_or_else(|| host.clone());
    Ok(SharedFile { host, guest: absolute(&guest)? })
}

fn take_out(text: std::ffi::OsString) -> Result<SharedFile, String> {
    let (guest, host) = pair(&text)?;
    Ok(SharedFile { host: host.unwrap_or_else(|| guest.clone()), guest: absolute(&guest)? })
}

/// The guest's working directory has the host's path.
fn absolute(path: &std::path::Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn pair(text: &OsStr) -> Result<(PathBuf, Option<PathBuf>), String> {
    let bytes = text.as_bytes();
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let (first, second) = match bytes.iter().position(|&byte| byte == b':') {
        Some(colon) => (path(&bytes[..colon]), Some(path(&bytes[colon + 1..]))),
        None => (path(bytes), None),
    };
    let is_empty = |path: &PathBuf| path.as_os_str().is_empty();
    if is_empty(&first) || second.as_ref().is_some_and(is_empty) {
        return Err("give a path, or two with a colon between them".into());
    }
    Ok((first, second))
}
