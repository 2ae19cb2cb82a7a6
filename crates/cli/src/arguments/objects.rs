//! Options of `objects`.

use std::path::PathBuf;

use analysis::call_tree::{LockRows, ObjectRows};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use machine::Setting;

use super::{ClassOptions, OutputOptions, RowOptions, RunningProgram, SimulationOptions};

/// Options of `objects`.
#[derive(Clone, Debug, Args)]
pub struct ObjectsOptions {
    /// The rules that say which functions work on objects: postgresql, sqlite, or a file. By default those for the program.
    #[arg(long, value_name = "RULES")]
    pub rules: Option<PathBuf>,
    /// The kind of objects, as the rules name it: operator, statement, lock, relation. By default the first one of the rules.
    #[arg(long, value_name = "KIND", value_parser = NonEmptyStringValueParser::new())]
    pub by: Option<String>,
    /// What rows are.
    #[arg(long = "as", value_name = "ROWS", default_value = "tree")]
    pub layout: ObjectLayout,
    /// Show misses of this machine's caches and TLBs.
    #[arg(long, value_name = "MACHINE", conflicts_with = "time")]
    pub caches: Option<String>,
    /// Show this machine's cycles.
    #[arg(long, value_name = "MACHINE")]
    pub time: Option<String>,
    /// Change a field of that machine: dcache.size=16K. Can be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub settings: Vec<Setting>,
    /// All processes of the program, such as those of a server: on a machine, each has a processor to itself.
    #[arg(long)]
    pub children: bool,
    #[command(flatten)]
    pub running: RunningProgram,
    #[command(flatten)]
    pub classes: ClassOptions,
    #[command(flatten)]
    pub row_options: RowOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}

/// What the rows of a table of objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectLayout {
    /// Objects below those for which they were made, as databases lay out plans.
    Tree,
    /// Names, whatever they are below.
    Names,
    /// Locks: how long they are held, in instructions of the holder, and waited for.
    Held,
    /// The same by the functions that acquire them.
    Holders,
    /// Locks: which classes of units of work (--unit, --class) wait for which others.
    Waiters,
}

impl ObjectLayout {
    /// The rows of costs, or those of locks.
    pub fn rows(self) -> Result<ObjectRows, LockRows> {
        match self {
            ObjectLayout::Tree => Ok(ObjectRows::Tree),
            ObjectLayout::Names => Ok(ObjectRows::Name),
            ObjectLayout::Held => Err(LockRows::Lock),
            ObjectLayout::Holders => Err(LockRows::Holder),
            ObjectLayout::Waiters => Err(LockRows::Waiter),
        }
    }
}
