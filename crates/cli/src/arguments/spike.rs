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

/// Optimizations of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Optimization {
    /// Instructions that do nothing are removed.
    Nops,
    /// Computations of the global pointer and returns that nothing needs are removed.
    Linkage,
    /// Hot parts of procedures are made shorter at the expense of the cold parts.
    HotCold,
    /// With hot-cold, the hot parts of small procedures are inlined.
    Inlining,
}

/// Algorithms that chain blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BlockAlgorithm {
    /// The most frequent edges first.
    Greedy,
    /// The extended-TSP score.
    ExtTsp,
}

/// Algorithms that order procedures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProcedureAlgorithm {
    /// The call graph is collapsed along its most frequent edges.
    Collapse,
    /// Call-chain clustering.
    Cluster,
}

/// The rows of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportRows {
    /// Procedures.
    Procedure,
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
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = named::<LayoutStep>)]
    pub layout: Option<Vec<Option<LayoutStep>>>,
    /// How blocks are chained: greedy, as the paper has it, or ext-tsp.
    #[arg(long, value_name = "ALGORITHM", default_value = "greedy", hide_possible_values = true)]
    pub blocks: BlockAlgorithm,
    /// How procedures are ordered: collapse, as the paper has it, or cluster.
    #[arg(long, value_name = "ALGORITHM", default_value = "collapse", hide_possible_values = true)]
    pub procedures: ProcedureAlgorithm,
    /// Only these optimizations of the instructions: nops, linkage, hot-cold, inlining; or none.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = named::<Optimization>)]
    pub optimizations: Option<Vec<Option<Optimization>>>,
    /// Of a profile of another build, match only procedures with the same flow graph, as the original Spike did.
    #[arg(long)]
    pub whole_procedures: bool,
    /// Show these rows instead of the summary: procedure, with what became of each, and why.
    #[arg(long)]
    pub by: Option<ReportRows>,
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

/// A value by its name, or nothing by `none`.
fn named<T: ValueEnum>(word: &str) -> Result<Option<T>, String> {
    if word == "none" {
        return Ok(None);
    }
    let names: Vec<String> = T::value_variants()
        .iter()
        .filter_map(|one| Some(one.to_possible_value()?.get_name().to_string()))
        .collect();
    T::from_str(word, false).map(Some).map_err(|_| format!("take some of {}, or none", names.join(", ")))
}

impl OptimizeOptions {
    /// Where the report goes.
    pub fn report(&self) -> OutputOptions {
        OutputOptions::standard(self.format)
    }
}
