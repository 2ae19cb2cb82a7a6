//! Options of `count` and `static`.

use analysis::code_counts::CodeRows;
use analysis::units::SteadyRules;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use engine::{ClassRule, UnitOfWork};
use session::counting::{CountRows, ProfileRows};

use super::{ExecutionOptions, InputFile, InputOptions, TableOptions};

/// The unit of work.
#[derive(Clone, Debug, Args)]
pub struct UnitOptions {
    /// Count each call of this function separately: NAME or IMAGE!NAME. 'FIRST to LAST' begins a unit at the entry of one
    /// function and ends it at the entry of another, 'FIRST through LAST' at the other's return. `count` takes it several
    /// times: each is a class, and all its units are measured.
    #[arg(long, value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new())]
    pub unit: Vec<String>,
    /// Units to measure once the state is steady [default: 100].
    #[arg(long, value_name = "N", requires = "unit", value_parser = clap::value_parser!(u32).range(1..))]
    units: Option<u32>,
    /// Units in a batch: the state is steady when the means of three successive batches differ by 1 % or
    /// less. For periodic programs, the number of units in a period [default: 50].
    #[arg(long, value_name = "N", requires = "unit", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Two variables of the program, 8 bytes each, that count hits and misses of its own cache: the state is
    /// steady only when 95 % of the accesses in a batch hit.
    #[arg(long, value_names = ["HITS", "MISSES"], num_args = 2, requires = "unit")]
    pub cache: Option<Vec<String>>,
}

impl UnitOptions {
    /// Whether the measurement of a steady state has rules of its own.
    pub fn has_rules(&self) -> bool {
        self.units.is_some() || self.batch.is_some()
    }

    /// The units of work, with rules for their classes, and the rules of their measurement, if the options have any.
    pub fn work(&self, classes: &[ClassRule]) -> Option<(UnitOfWork, SteadyRules)> {
        if self.unit.is_empty() && classes.is_empty() {
            return None;
        }
        let gauges = self.cache.clone().unwrap_or_default();
        let hit_ratio = (!gauges.is_empty()).then_some(0.95);
        let rules = SteadyRules {
            batch: self.batch.unwrap_or(50) as usize,
            measure: self.units.unwrap_or(100) as usize,
            hit_ratio,
            ..SteadyRules::default()
        };
        let (functions, classes) = (self.unit.clone(), classes.to_vec());
        Some((UnitOfWork { functions, gauges, classes, ..UnitOfWork::default() }, rules))
    }
}

/// The rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Mnemonics.
    Mnemonic,
    /// Groups of instructions, as in Table 13 of the 1997 paper.
    Group,
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions, by their address.
    Instruction,
    /// Executables and shared libraries.
    Image,
    /// Parts of the program that functions belong to, by rules (--components).
    Component,
    /// The units of work measured, one row each.
    Unit,
    /// The processes (--children).
    Process,
    /// All instructions of the run by component, in columns for who executed them: the classes of units and, outside of units, the
    /// kinds of processes (--children).
    Owner,
}

impl From<By> for CountRows {
    fn from(by: By) -> CountRows {
        match by {
            By::Mnemonic => CountRows::Profile(ProfileRows::Mnemonic),
            By::Group => CountRows::Profile(ProfileRows::Group),
            By::Function => CountRows::Profile(ProfileRows::Function),
            By::Line => CountRows::Code(CodeRows::Line),
            By::Instruction => CountRows::Code(CodeRows::Instruction),
            By::Image => CountRows::Profile(ProfileRows::Image),
            By::Component => CountRows::Profile(ProfileRows::Component),
            By::Unit => CountRows::Unit,
            By::Process => CountRows::Process,
            By::Owner => CountRows::Owner,
        }
    }
}

/// Options of `count`.
#[derive(Debug, Args)]
pub struct CountOptions {
    #[command(flatten)]
    pub execution: ExecutionOptions,
    #[command(flatten)]
    pub unit: UnitOptions,
    /// Take a unit's class from the first call of a function in it that names one: FUNCTION($1) for the text that its first
    /// argument points at, FUNCTION($1) ~ PATTERN for what a regular expression finds there (a group, or the name of the
    /// group that matches), FUNCTION() for the function's own name, MARK_*() for the rest of a name. Can be given several times.
    #[arg(long = "class", value_name = "RULE")]
    pub classes: Vec<ClassRule>,
    /// Let timeouts take N times as long by the host's clock, waiting for others take none of the program's time, and answers
    /// be found after one look in vain: a server with one client executes the same instructions in each run.
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, conflicts_with = "attach", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub time_dilation: u32,
    /// One table with these rows, instead of a summary.
    #[arg(long)]
    pub by: Option<By>,
    /// The rules by which functions belong to components: sqlite, postgresql, linux, or a file of rules. Without this, those of a database
    /// whose images are in the run.
    #[arg(long, value_name = "NAME|FILE")]
    pub components: Option<InputFile>,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub input: InputOptions,
}

/// Options of `static`.
#[derive(Debug, Args)]
pub struct StaticOptions {
    /// Executables and shared libraries.
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<InputFile>,
    /// The same images of another build, from which the differences are shown.
    #[arg(long, num_args = 1.., value_name = "IMAGE")]
    pub against: Vec<InputFile>,
    #[command(flatten)]
    pub show: TableOptions,
}
