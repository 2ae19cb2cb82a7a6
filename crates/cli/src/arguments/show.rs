//! How a trace is looked at.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OutputOptions;
use crate::ranges;

/// A way to look at a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Tables: instructions, transfers of control, cache lines, pages and so on.
    Summary,
    /// A line an instruction: address, word, text and effect.
    Instructions,
    /// A line a call, nested.
    Functions,
    /// Every address: of instructions, loads and stores.
    Addresses,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// What is shown.
    #[arg(long = "as", value_name = "VIEW", default_value = "summary")]
    pub view: View,
    /// Show the threads as if they had been spread over so many processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub processors: Option<u32>,
    /// Instructions after which it is the turn of another thread of the processor.
    #[arg(long, value_name = "N", requires = "processors", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub quantum: u64,
    /// A table of addresses for each process; with -o, which is a directory then, a file each.
    #[arg(long)]
    pub separate: bool,
    #[command(flatten)]
    pub summary: SummaryOptions,
    #[command(flatten)]
    pub wanted: WantedOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// How the summary is made.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Summary")]
pub struct SummaryOptions {
    /// Only these tables, whole: functions, say, or working-set.
    #[arg(long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Sizes of cache lines.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32,64", value_parser = ranges::line_size)]
    pub line_sizes: Vec<u64>,
    /// Sizes of pages.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "8K,64K,512K,4M", value_parser = ranges::page_size)]
    pub page_sizes: Vec<u64>,
    /// Instructions in a window of time; without it, as many as make some 20 to 50 windows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
}

/// What of a trace is wanted.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Choosing")]
pub struct WantedOptions {
    /// Instructions of this function: NAME or IMAGE!NAME. Can be given several times, as --image and --thread.
    #[arg(long = "function", value_name = "FUNCTION")]
    pub functions: Vec<String>,
    /// Of what the functions call too.
    #[arg(long, requires = "functions")]
    pub with_callees: bool,
    /// Instructions of this image: libc.so.6.1, or libc.
    #[arg(long = "image", value_name = "IMAGE")]
    pub images: Vec<String>,
    /// Instructions at these addresses.
    #[arg(long, value_name = "0xA-0xB", value_parser = ranges::addresses)]
    pub range: Option<RangeInclusive<u64>>,
    /// Accesses to these addresses, and the instructions that do them.
    #[arg(long, value_name = "0xA-0xB", value_parser = ranges::addresses)]
    pub data_range: Option<RangeInclusive<u64>>,
    /// A thread, as process and thread, both counted from 0.
    #[arg(long = "thread", value_name = "P.T", value_parser = ranges::thread)]
    pub threads: Vec<(u32, Option<u32>)>,
    /// All threads of a process.
    #[arg(long = "process", value_name = "P")]
    pub processes: Vec<u32>,
    /// Instructions by their number in their thread, from 1.
    #[arg(long, value_name = "FROM-TO", value_parser = ranges::ordinals)]
    pub instructions: Option<RangeInclusive<u64>>,
    /// Units of work by their number: 3 or 3-5.
    #[arg(long, value_name = "N-M", value_parser = ranges::numbers)]
    pub units: Option<RangeInclusive<u64>>,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    #[command(flatten)]
    pub output: OutputOptions,
}
