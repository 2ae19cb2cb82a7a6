//! Options of `sample`.

use clap::{Args, ValueEnum};
use engine::Sampling;
use session::sampled_tables::SampledRows;

use super::models::Rows;
use super::{CallOptions, ExecutionOptions, ObservedProgramOptions, TableOptions};

/// The rows of a table of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SampleRows {
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Functions and their callers.
    Caller,
    /// Functions and their callees.
    Callee,
    /// Chains of calls.
    CallTree,
    /// Processes.
    Process,
    /// System calls.
    SystemCall,
}

impl SampleRows {
    /// The rows, for a session. Functions come with all that they call if `is_inclusive`.
    pub fn results(self, is_inclusive: bool) -> SampledRows {
        let rows = match self {
            SampleRows::Process => return SampledRows::Process,
            SampleRows::SystemCall => return SampledRows::SystemCall,
            SampleRows::Function => Rows::Function,
            SampleRows::Line => Rows::Line,
            SampleRows::Instruction => Rows::Instruction,
            SampleRows::Caller => Rows::Caller,
            SampleRows::Callee => Rows::Callee,
            SampleRows::CallTree => Rows::CallTree,
        };
        SampledRows::Results(rows.results(is_inclusive))
    }
}

/// Options of `sample`.
#[derive(Debug, Args)]
pub struct SampleOptions {
    /// The distance of samples: a time, such as 4ms or 500us of a thread's processor time, which the host's clock ticks limit; or
    /// a number of executed instructions, such as 1000000, for which the program is counted.
    #[arg(long, value_name = "DISTANCE", value_parser = distance, default_value = "4ms")]
    pub every: Sampling,
    /// Count the same run exactly, too, and show the exact shares beside those of the samples. The program is slower, as with
    /// count.
    #[arg(long)]
    pub exact: bool,
    /// Show a table on the terminal while the program runs, and refresh it each second.
    #[arg(long)]
    pub live: bool,
    /// One table with a row for each of these, instead of a summary and the first functions and lines.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<SampleRows>,
    /// With --by function, add to each function what it calls.
    #[arg(long, requires = "by")]
    pub inclusive: bool,
    #[command(flatten)]
    pub execution: ExecutionOptions,
    #[command(flatten)]
    pub calls: CallOptions,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub program: ObservedProgramOptions,
}

/// A time with its unit, or a number of instructions.
fn distance(text: &str) -> Result<Sampling, String> {
    let wrong = || {
        "a distance is a time such as 4ms or 500us, or a number of instructions such as 1000000".to_string()
    };
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| wrong())?;
    let nanoseconds = match unit {
        "" if number >= 100 => return Ok(Sampling::Instructions(number)),
        "" => return Err("samples must be 100 instructions apart at least".into()),
        "us" => number.saturating_mul(1000),
        "ms" => number.saturating_mul(1_000_000),
        "s" => number.saturating_mul(1_000_000_000),
        _ => return Err(wrong()),
    };
    match nanoseconds {
        100_000..=10_000_000_000 => Ok(Sampling::Time(nanoseconds)),
        _ => Err("samples must be between 100us and 10s apart".into()),
    }
}
