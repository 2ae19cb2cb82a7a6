//! Options of `show` and `check`.

use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use trace::ExecutionMode;

use super::{InputFile, OutputOptions, TableOptions};
use crate::ranges;

/// A view of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Tables: instructions, transfers of control, cache lines, pages and so on.
    Summary,
    /// A line for each instruction: address, word, text and effect.
    Instructions,
    /// A line for each call, nested.
    Functions,
    /// Every address: of instructions, loads and stores.
    Addresses,
}

/// A mode of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// A program.
    User,
    /// The kernel.
    Kernel,
    /// PALcode.
    Pal,
}

impl ModeName {
    /// The mode, as traces have it.
    pub fn mode(self) -> ExecutionMode {
        match self {
            ModeName::User => ExecutionMode::User,
            ModeName::Kernel => ExecutionMode::Kernel,
            ModeName::Pal => ExecutionMode::Pal,
        }
    }
}

/// Options of `show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: InputFile,
    /// The view.
    #[arg(long = "as", value_name = "VIEW", default_value = "summary")]
    pub view: View,
    /// Show the threads as if they had been scheduled on N processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub processors: Option<u32>,
    /// The time slice of threads that share a processor, in instructions.
    #[arg(long, value_name = "N", requires = "processors", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub time_slice: u64,
    #[command(flatten)]
    pub summary: SummaryOptions,
    #[command(flatten)]
    pub selection: SelectionOptions,
    #[command(flatten)]
    pub show: TableOptions,
}

/// Options of the summary.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Summary")]
pub struct SummaryOptions {
    /// Only these tables, with all rows: functions, for example, or working-set.
    #[arg(long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Sizes of cache lines.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32,64", value_parser = ranges::line_size)]
    pub line_sizes: Vec<u64>,
    /// Sizes of pages.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "8K,64K,512K,4M", value_parser = ranges::page_size)]
    pub page_sizes: Vec<u64>,
    /// Instructions in a window of time. The default makes 20 to 50 windows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
}

/// The part of a trace that is selected.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectionOptions {
    /// Instructions of this function: NAME or IMAGE!NAME. Can be given several times, as --image and --thread.
    #[arg(long = "function", value_name = "FUNCTION")]
    pub functions: Vec<String>,
    /// Include all functions that they call.
    #[arg(long, requires = "functions")]
    pub with_callees: bool,
    /// Instructions of this image: libc.so.6.1, or libc.
    #[arg(long = "image", value_name = "IMAGE")]
    pub images: Vec<String>,
    /// Instructions at these addresses.
    #[arg(long, value_name = "0xA-0xB", value_parser = ranges::addresses)]
    pub range: Option<RangeInclusive<u64>>,
    /// Of a trace of a whole system, instructions of the program, the kernel or PALcode: user, kernel or pal. Can be given
    /// several times.
    #[arg(long = "mode", value_name = "MODE", value_delimiter = ',')]
    pub modes: Vec<ModeName>,
    /// Accesses to these addresses, and their instructions.
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
    pub unit_number: Option<RangeInclusive<u64>>,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: InputFile,
    #[command(flatten)]
    pub output: OutputOptions,
}
