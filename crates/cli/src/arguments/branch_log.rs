//! Options of `branch-log`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use spike::tables::LoggedRows;

use super::{InputFile, TableOptions};

/// What `branch-log` does.
#[derive(Debug, Subcommand)]
pub enum BranchLogCommand {
    /// Write images that log which way control goes, wherever they run.
    #[command(after_help = "\
Examples:
  pathlength branch-log patch ./sort -o sort.patched
  ./sort.patched names.txt                     on any Alpha system, or under qemu-alpha
  pathlength branch-log reconstruct sort.patched.log ./sort

Images must have been linked with -Wl,--emit-relocs. Several images of a program are patched together, into a folder: their records \
are in one log, in order.")]
    Patch(PatchOptions),
    /// Let running patched programs log from now on.
    #[command(after_help = "Example: pathlength branch-log on sort.patched.log")]
    On(SwitchOptions),
    /// Let them not log any more.
    #[command(after_help = "Example: pathlength branch-log off sort.patched.log")]
    Off(SwitchOptions),
    /// Remove the records of a log.
    #[command(after_help = "Example: pathlength branch-log clear sort.patched.log")]
    Clear(SwitchOptions),
    /// Reconstruct every instruction that was executed, from a log and the original images.
    #[command(after_help = "\
Examples:
  pathlength branch-log reconstruct sort.patched.log ./sort
  pathlength branch-log reconstruct sort.patched.log ./sort --by thread
  pathlength branch-log reconstruct sort.patched.log ./sort --listing | less
  pathlength branch-log reconstruct sort.patched.log ./sort --profile sort.profile

The images are given in the order in which they were patched. The log may be that of a program that runs, or that was killed. A log \
that was full has the last records.")]
    Reconstruct(ReconstructOptions),
}

/// Options of `branch-log patch`.
#[derive(Debug, Args)]
pub struct PatchOptions {
    /// The images: a program and shared objects.
    #[arg(required = true)]
    pub images: Vec<InputFile>,
    /// The patched image; of several, the folder for them, with the names of the originals.
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    /// The log, which must stay where it is; otherwise OUTPUT.log.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// The last records that the log keeps, at least: 1K to 64M, of 16 bytes each. A power of two.
    #[arg(long, value_name = "N", default_value = "4M", value_parser = records)]
    pub records: u32,
    /// Do not log until `branch-log on`.
    #[arg(long)]
    pub off: bool,
}

/// The binary logarithm of a number of records.
fn records(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let capacity = number.filter(|number| *number > 0).map(|number| number.next_power_of_two().ilog2());
    capacity
        .filter(|capacity| spike::branch_log::log::CAPACITIES.contains(capacity))
        .ok_or_else(|| "a number of records is 1K to 64M, such as 256K".into())
}

/// Options of `branch-log on`, `off` and `clear`.
#[derive(Debug, Args)]
pub struct SwitchOptions {
    /// The log.
    pub log: PathBuf,
}

/// The rows of a reconstruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogRows {
    /// Functions.
    Function,
    /// Blocks.
    Block,
    /// Threads.
    Thread,
}

impl From<LogRows> for LoggedRows {
    fn from(rows: LogRows) -> LoggedRows {
        match rows {
            LogRows::Function => LoggedRows::Function,
            LogRows::Block => LoggedRows::Block,
            LogRows::Thread => LoggedRows::Thread,
        }
    }
}

/// Options of `branch-log reconstruct`.
#[derive(Debug, Args)]
pub struct ReconstructOptions {
    /// The log.
    pub log: InputFile,
    /// The original images.
    #[arg(required = true)]
    pub images: Vec<InputFile>,
    /// Show these rows.
    #[arg(long, default_value = "function")]
    pub by: LogRows,
    /// Write each executed instruction in order, as text, instead of a table: process, thread, address, function, instruction.
    #[arg(long, conflicts_with = "by")]
    pub listing: bool,
    /// Write a profile for spike optimize, too.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub show: TableOptions,
}
