//! Options of `profile` and `spike`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{EngineOptions, FileOptions, OutputOptions};

/// Options of `profile`.
#[derive(Debug, Args)]
pub struct ProfileOptions {
    #[command(flatten)]
    pub engine: EngineOptions,
    /// The profile. If it exists already, the new counts are added to it.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace an existing profile.
    #[arg(long)]
    pub replace: bool,
    /// Run nothing: take the counts that runs of an instrumented image left in this file. PROGRAM is the original image.
    #[arg(long, value_name = "FILE")]
    pub from_counts: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileOptions,
}

/// What `spike` does.
#[derive(Debug, Subcommand)]
pub enum SpikeCommand {
    /// Write a better image: shorter paths, denser code.
    #[command(after_help = "\
Examples:
  pathlength profile -o sort.profile ./sort train.txt
  pathlength spike optimize ./sort --profile sort.profile -o sort.spike
  pathlength compare ./sort ./sort.spike -- test.txt

The image must have been linked with -Wl,--emit-relocs. The optimized image runs on any Alpha system.")]
    Optimize(OptimizeOptions),
    /// Write an image that counts its own blocks and edges wherever it runs.
    #[command(after_help = "\
Examples:
  pathlength spike instrument ./sort -o sort.counting
  ./sort.counting train.txt                    on any Alpha system, or under qemu-alpha
  pathlength profile --from-counts sort.counting.counts -o sort.profile ./sort

Runs add to the file with the counts, also at the same time, and if they are killed. To begin again, instrument again.")]
    Instrument(InstrumentOptions),
}

/// Steps of code layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutStep {
    /// Blocks follow each other as they are executed most often.
    Chain,
    /// Procedures are split into hot and cold parts.
    Split,
    /// Frequent callers and callees are neighbours.
    Order,
}

/// Options of `spike optimize`.
#[derive(Debug, Args)]
pub struct OptimizeOptions {
    /// The image: a program or a shared object.
    pub image: PathBuf,
    /// The profile, made by `pathlength profile`; also one of another build, as far as procedures and blocks can be matched.
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// The optimized image.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Only these steps of code layout: chain, split, order; or none.
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = layout_step)]
    pub layout: Option<Vec<Option<LayoutStep>>>,
    /// Of a profile of another build, match only procedures with the same flow graph, as the original Spike did.
    #[arg(long)]
    pub whole_procedures: bool,
    /// Leave instructions that do nothing where they are.
    #[arg(long)]
    pub keep_nops: bool,
    /// The format of the report: table, csv, json, parquet or markdown.
    #[arg(long, value_name = "FORMAT", default_value_t)]
    pub format: report::Format,
}

/// Options of `spike instrument`.
#[derive(Debug, Args)]
pub struct InstrumentOptions {
    /// The image: a program or a shared object.
    pub image: PathBuf,
    /// The instrumented image.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The file with the counts, which must stay where it is; otherwise OUTPUT.counts.
    #[arg(long, value_name = "FILE")]
    pub counts: Option<PathBuf>,
}

fn layout_step(word: &str) -> Result<Option<LayoutStep>, String> {
    match word {
        "none" => Ok(None),
        _ => {
            LayoutStep::from_str(word, false).map(Some).map_err(|_| "take chain, split, order or none".into())
        }
    }
}

impl OptimizeOptions {
    /// Where the report goes.
    pub fn report(&self) -> OutputOptions {
        OutputOptions { format: self.format, path: None }
    }
}
