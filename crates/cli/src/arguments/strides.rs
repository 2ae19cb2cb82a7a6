//! How memory access patterns are looked at.

use clap::{Args, ValueEnum};

use super::{EngineOptions, FileOptions, OutputOptions, WantedOptions};

/// Whose references are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PatternsOf {
    /// Those of single instructions.
    Instruction,
    /// Those of lines of source.
    Line,
    /// Those of functions.
    Function,
    /// Those to variables, stacks and other memory.
    Array,
    /// All of a thread.
    All,
}

/// Options of `strides`.
#[derive(Debug, Args)]
pub struct StridesOptions {
    /// Whose references are compared with each other.
    #[arg(long, value_name = "WHAT", default_value = "array")]
    pub by: PatternsOf,
    /// Only references to the variable with this name. Can be given several times.
    #[arg(long = "array", value_name = "NAME")]
    pub arrays: Vec<String>,
    /// How many references back strides are counted to.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: u32,
    /// A reference with a stride shorter than this is not compared with earlier references.
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    pub threshold: u64,
    /// Compare every reference with all those that far back, as with --threshold 0.
    #[arg(long, conflicts_with = "threshold")]
    pub all_references: bool,
    /// Count strides in elements, not in bytes: of an array where its type is known, else of what is accessed.
    #[arg(long)]
    pub in_elements: bool,
    /// Tell strides that go down from those that go up.
    #[arg(long)]
    pub signed: bool,
    /// Every stride and how often it occurred, instead of the most frequent ones.
    #[arg(long)]
    pub histograms: bool,
    /// Say what may be worth a change: where loops or loads could be better, or arrays are accessed by others.
    #[arg(long, conflicts_with_all = ["histograms", "arrays", "signed"])]
    pub advice: bool,
    /// The machine whose caches are looked at for advice: a name that pathlength machines lists, or a file.
    #[arg(long, value_name = "MACHINE", default_value = "alphastation500", requires = "advice")]
    pub machine: String,
    #[command(flatten)]
    pub wanted: WantedOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Of a program that is run only the calls of this function: NAME or IMAGE!NAME.
    #[arg(long, value_name = "FUNCTION")]
    pub unit: Option<String>,
    #[command(flatten)]
    pub file: FileOptions,
}
