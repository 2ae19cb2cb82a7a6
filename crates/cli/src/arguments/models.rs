//! What a model of a machine hears.

use std::path::PathBuf;

use analysis::models;
use clap::{Args, ValueEnum};
use machine::Holds;

use super::{FileOptions, OutputOptions, PlanOptions};
use crate::ranges;

/// A trace, or a program that is run.
#[derive(Clone, Debug, Args)]
pub struct HeardOptions {
    #[command(flatten)]
    pub plan: PlanOptions,
    /// Calls of the unit's function between those left out and those of --units that warm the machine up: they are heard,
    /// and not counted.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warm_up: u64,
    /// The processor that a program is run on, instead of the machine's: ev4, ev5, ev56, pca56, ev6 or ev67.
    #[arg(long)]
    pub cpu: Option<isa::Cpu>,
    /// Where a program's libraries are looked up first.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
    /// Of a trace, only this thread, as process and thread, both counted from 0. Can be given several times.
    #[arg(long = "thread", value_name = "P.T", value_parser = ranges::thread)]
    pub threads: Vec<(u32, Option<u32>)>,
    /// Of a trace, only the threads of this process.
    #[arg(long = "process", value_name = "P")]
    pub processes: Vec<u32>,
    /// Processors of the host's to use for a program that is run: 1 or 2; without it two if there are.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub host_processors: Option<u32>,
    #[command(flatten)]
    pub file: FileOptions,
}

/// Options of `machines`.
#[derive(Debug, Args)]
pub struct MachinesOptions {
    #[command(flatten)]
    pub output: OutputOptions,
}

/// What the rows of a table of misses or cycles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Units of work.
    Unit,
}

impl From<Rows> for models::Rows {
    fn from(rows: Rows) -> models::Rows {
        match rows {
            Rows::Function => models::Rows::Function,
            Rows::Line => models::Rows::Line,
            Rows::Instruction => models::Rows::Instruction,
            Rows::Unit => models::Rows::Unit,
        }
    }
}

/// What a cache of any size may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stream {
    /// Instructions.
    Code,
    /// What loads and stores access.
    Data,
    /// Both together. This takes as long as the other two.
    Both,
}

impl From<Stream> for Holds {
    fn from(stream: Stream) -> Holds {
        match stream {
            Stream::Code => Holds::Instructions,
            Stream::Data => Holds::Data,
            Stream::Both => Holds::Both,
        }
    }
}

/// Caches of all sizes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Miss curves")]
pub struct CurvesOptions {
    /// Misses of caches of all sizes instead of a machine's. With -o and a name that ends with .html a page of charts.
    #[arg(long, conflicts_with_all = ["machines", "by", "classify"])]
    pub curves: bool,
    /// What they hold: a table for each.
    #[arg(long, value_delimiter = ',', default_value = "code,data,both", requires = "curves")]
    pub streams: Vec<Stream>,
    /// Size of their lines.
    #[arg(long, value_name = "BYTES", default_value = "64", requires = "curves", value_parser = ranges::line_size)]
    pub line_size: u64,
    /// Size of the largest.
    #[arg(long, value_name = "BYTES", default_value = "4M", requires = "curves", value_parser = ranges::cache_size)]
    pub largest: u64,
}

/// Options of `caches`.
#[derive(Debug, Args)]
pub struct CachesOptions {
    /// The machine: a name that pathlength machines lists, or a file. Can be given several times.
    #[arg(long = "machine", value_name = "MACHINE", default_value = "alphastation500")]
    pub machines: Vec<String>,
    /// A row for each of these, instead of each cache and translation buffer.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<Rows>,
    /// Tell compulsory misses, those of capacity and conflicts apart. This takes several times as long.
    #[arg(long)]
    pub classify: bool,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub heard: HeardOptions,
    #[command(flatten)]
    pub curves: CurvesOptions,
}

/// Options of `time`.
#[derive(Debug, Args)]
pub struct TimeOptions {
    /// The machine: a name that pathlength machines lists, or a file. Can be given several times.
    #[arg(long = "machine", value_name = "MACHINE", default_value = "alphastation500")]
    pub machines: Vec<String>,
    /// One table with a row for each of these; without it a summary.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<Rows>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub heard: HeardOptions,
}
