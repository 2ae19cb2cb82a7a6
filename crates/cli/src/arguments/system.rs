//! Options of `system`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use system::job::{AwaitedFile, SharedFile};
use system::network::GuestNetwork;

use super::{EnvironmentOptions, OutputOptions, PlanOptions, ProgramOptions, TableOptions};
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
  pathlength system run --processors 4 --background './server -s /tmp/socket' --await /tmp/socket ./client /tmp/socket

The program, its libraries and the files of --file are put into the guest's memory, or onto its disk (--disk). Its output \
appears while it runs. The exit status is the program's. Programs of --background are started before it, and end after it."
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
  pathlength system trace -o query.trace --unit run_query --skip 10 --units 100 ./database

The program runs twice: first undisturbed, recording interrupts and time, then exactly so again, slowly, recording all \
else. The trace begins with the program's first instruction, and ends when the first process has learnt of its end. It has \
all processes, and the kernel's threads as one process. Units of work and places can be of any image and of the kernel; a \
unit has what the kernel does in its thread, too."
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

/// The instructions that the compiler of the kernel may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelInstructions {
    /// Those of the guest's processor, an EV67.
    Ev67,
    /// Those of the byte/word study's builds byte-word: of an EV56.
    ByteWord,
    /// Those of its builds original: of an EV5, without byte and word instructions.
    Original,
}

/// The guest's kernel.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Guest")]
pub struct KernelOptions {
    /// The folder of builds, where kernels are kept.
    #[arg(long, value_name = "DIR", default_value = "build")]
    pub folder: PathBuf,
    /// A folder with the sources of Linux, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    /// The guest's processors, 1 to 4. One processor has a kernel of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    pub processors: u32,
    /// The instructions that the kernel is compiled to.
    #[arg(long, value_name = "BUILD", value_enum, default_value = "ev67")]
    pub kernel: KernelInstructions,
    /// Two network interfaces, connected to each other: eth0 with 10.0.0.1 for the program, eth1 with 10.0.0.2 in another namespace for
    /// programs in the background. CARD is tulip, e1000, virtio, or veth, a pair without cards; OFFLOADS none, checksum (with
    /// scatter-gather) or segmentation (both), what its driver begins with otherwise. The kernel is one of its own.
    #[arg(long, value_name = "CARD[:OFFLOADS]")]
    pub network: Option<GuestNetwork>,
}

/// The guest.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Guest")]
pub struct GuestOptions {
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// The guest's memory.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = ranges::memory_size)]
    pub memory: u64,
    /// A disk of this size with a file system (ext4), mounted at GUEST; without GUEST at the working directory. What is put
    /// in there is on the disk, and not in memory, when the program begins.
    #[arg(long, value_name = "BYTES[:GUEST]", value_parser = disk)]
    pub disk: Option<GuestDisk>,
    /// A program to start first, with its arguments, separated by blanks. Can be given several times.
    #[arg(long, value_name = "COMMAND", value_parser = OsStringValueParser::new().try_map(command))]
    pub background: Vec<BackgroundCommand>,
    /// A file that such a program makes, and that must be there before the other one starts, such as a socket; with TEXT it must
    /// contain that.
    #[arg(long = "await", value_name = "GUEST[:TEXT]", value_parser = OsStringValueParser::new().try_map(awaited))]
    pub awaited: Vec<AwaitedFile>,
    /// The number of the user and the group that programs run as, and that files belong to.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub user: u32,
    /// The program's standard input, which is empty otherwise.
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
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
    #[command(flatten)]
    pub kernel: KernelOptions,
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
    pub plan: PlanOptions,
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
    pub plan: PlanOptions,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub guest: GuestOptions,
    #[command(flatten)]
    pub program: ProgramOptions,
}

/// A disk of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestDisk {
    /// Its size.
    pub bytes: u64,
    /// Where it is mounted.
    pub path: PathBuf,
}

/// A program that runs beside the other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundCommand {
    /// The program and its arguments.
    pub words: Vec<std::ffi::OsString>,
}

fn disk(text: &str) -> Result<GuestDisk, String> {
    let (bytes, path) = text.split_once(':').unwrap_or((text, "."));
    Ok(GuestDisk { bytes: ranges::disk_size(bytes)?, path: absolute(path.as_ref())? })
}

fn command(text: std::ffi::OsString) -> Result<BackgroundCommand, String> {
    let words = text.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| OsStr::from_bytes(word).to_owned()).collect();
    if words.is_empty() { Err("give a program".into()) } else { Ok(BackgroundCommand { words }) }
}

fn awaited(text: std::ffi::OsString) -> Result<AwaitedFile, String> {
    let (path, text) = pair(&text)?;
    Ok(AwaitedFile { path: absolute(&path)?, text: text.map(PathBuf::into_os_string) })
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
