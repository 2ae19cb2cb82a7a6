//! Options of `objects`.

use analysis::call_tree::{LockRows, ObjectRows};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::{EventOptions, InputFile, ResultOptions};

/// Options of `objects`.
#[derive(Clone, Debug, Args)]
pub struct ObjectsOptions {
    /// The rules that say which functions work on objects: postgresql, sqlite, or a file. By default those for the program.
    #[arg(long, value_name = "RULES")]
    pub rules: Option<InputFile>,
    /// The kind of objects, as the rules name it: operator, statement, lock, relation. By default the first one of the rules.
    #[arg(long, value_name = "KIND", value_parser = NonEmptyStringValueParser::new())]
    pub by: Option<String>,
    /// What rows are.
    #[arg(long = "as", value_name = "ROWS", default_value = "tree")]
    pub layout: ObjectLayout,
    #[command(flatten)]
    pub events: EventOptions,
    #[command(flatten)]
    pub results: ResultOptions,
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
