//! Options of `strides`.

use clap::{Args, ValueEnum};

use super::{ClassOptions, ExecutionOptions, InputOptions, MachineName, SelectionOptions, TableOptions};

/// The series of references that are compared.
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
    /// Those of processes, with --children.
    Process,
    /// All of a thread, by the class of the unit of work (--unit, --class) in which they are; and those outside of units.
    Class,
    /// All of a thread.
    All,
}

/// Options of `strides`.
#[derive(Debug, Args)]
pub struct StridesOptions {
    /// The series of references that are compared with each other.
    #[arg(long, value_name = "WHAT", default_value = "array")]
    pub by: PatternsOf,
    /// Only references to the variable with this name. Can be given several times.
    #[arg(long = "array", value_name = "NAME")]
    pub arrays: Vec<String>,
    /// The number of references back to which strides are counted.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub depth: u32,
    /// A reference with a stride shorter than this is not compared with earlier references; with 0 each is.
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    pub minimum_stride: u64,
    /// Count strides in elements, not in bytes: of an array if its type is known, otherwise of the size of the access.
    #[arg(long)]
    pub in_elements: bool,
    /// Distinguish descending from ascending strides.
    #[arg(long)]
    pub signed: bool,
    /// Show complete histograms, instead of the most frequent strides.
    #[arg(long)]
    pub histograms: bool,
    /// Suggest changes: loops to interchange, loads to avoid, indices to sort.
    #[arg(long, conflicts_with_all = ["by", "depth", "minimum_stride", "in_elements", "histograms", "arrays", "signed"])]
    pub advice: bool,
    /// The machine whose caches the advice is for: a name that pathlength machines lists, or a file.
    #[arg(long, value_name = "MACHINE", default_value = "alphastation500", requires = "advice")]
    pub machine: MachineName,
    #[command(flatten)]
    pub selection: SelectionOptions,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub execution: ExecutionOptions,
    /// Of a program, only the calls of this function: NAME or IMAGE!NAME. With --class or --by class, the function of units of work,
    /// by whose classes all of the program is divided. Given several times, each function is a class.
    #[arg(long, value_name = "FUNCTION")]
    pub unit: Vec<String>,
    #[command(flatten)]
    pub classes: ClassOptions,
    #[command(flatten)]
    pub input: InputOptions,
}
