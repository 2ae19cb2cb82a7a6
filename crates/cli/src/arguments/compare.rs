//! Options of `compare`.

use std::str::FromStr;

use clap::Args;

use super::{EndingOptions, EngineOptions, InputFile, OutputOptions, RowOptions, UnitOptions};

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    #[command(flatten)]
    pub engine: EngineOptions,
    #[command(flatten)]
    pub ending: EndingOptions,
    #[command(flatten)]
    pub unit: UnitOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub rows: RowOptions,
    #[command(flatten)]
    pub gate: GateOptions,
    /// The program of one build; or saved counts; or a trace.
    pub program_a: InputFile,
    /// The program of the other build; or saved counts; or a trace.
    pub program_b: InputFile,
    /// Arguments of the programs that are run.
    #[arg(last = true, value_name = "ARG")]
    pub arguments: Vec<InputFile>,
}

/// How much more may be executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A share of the first side, in percent.
    Percent(f64),
    /// A number of instructions.
    Instructions(f64),
}

impl Threshold {
    /// Whether growth from `a` to `b` is above it.
    pub fn is_exceeded(self, a: f64, b: f64) -> bool {
        match self {
            Threshold::Percent(percent) => b - a > a * percent / 100.0,
            Threshold::Instructions(most) => b - a > most,
        }
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let (number, new): (_, fn(f64) -> Threshold) = match text.strip_suffix('%') {
            Some(number) => (number, Threshold::Percent),
            None => (text, Threshold::Instructions),
        };
        let number =
            number.trim_end().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.map(new).ok_or_else(|| "give a percentage, such as 0.5%, or a number of instructions".into())
    }
}

/// The gate.
#[derive(Clone, Debug, Args)]
pub struct GateOptions {
    /// End with status 3 if the second side executes more than the first by more than this: 1%, 0.5%, or 1000
    /// instructions. With --unit a mean unit of work is compared, else the run.
    #[arg(long, value_name = "THRESHOLD")]
    pub fail_above: Option<Threshold>,
    /// Apply --fail-above to the instructions of this function only, without what it calls.
    #[arg(long, value_name = "NAME", requires = "fail_above")]
    pub function: Option<String>,
}
