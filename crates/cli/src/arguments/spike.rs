//! Options of `spike`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use spike::instrument::Update;

use super::spike_environment::{
    CollectOptions, DatabaseOptions, ListOptions, ManagerOptions, RegisterOptions, RemoveOptions,
    SpikeExportOptions, SpikeRunOptions, UseOptions,
};
use super::{ExecutionOptions, InputFile, OutputOptions, RecordedOrRunOptions};

/// Options of `spike profile`.
#[derive(Debug, Args)]
pub struct ProfileOptions {
    #[command(flatten)]
    pub execution: ExecutionOptions,
    /// Replace an existing profile.
    #[arg(long)]
    pub replace: bool,
    /// Run nothing: take the counts that runs of an instrumented image left in this file. FILE is the original image.
    #[arg(long, value_name = "FILE")]
    pub from_counts: Option<InputFile>,
    /// The profile.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub input: RecordedOrRunOptions,
}

/// What `spike` does.
#[derive(Debug, Subcommand)]
pub enum SpikeCommand {
    /// Count the blocks and edges of a program exactly, for spike optimize.
    #[command(
        override_usage = "pathlength spike profile [OPTIONS] -o <FILE> <TRACE|PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength spike profile -o sort.profile ./sort train.txt
  pathlength spike optimize ./sort --profile sort.profile -o sort.spike
  pathlength spike profile -o sort.profile sort.trace
  pathlength spike profile --from-counts sort.counting.counts -o sort.profile ./sort

The profile has every executed image that was linked with -Wl,--emit-relocs. Counts are added to those of an existing profile, so that \
several runs can train it. A profile is JSON."
    )]
    Profile(ProfileOptions),
    /// Write a better image: shorter paths, denser code; or optimize a registered application.
    #[command(after_help = "\
Examples:
  pathlength spike optimize sort               of a registered application, by what was collected
  pathlength spike profile -o sort.profile ./sort train.txt
  pathlength spike optimize ./sort --profile sort.profile -o sort.spike
  pathlength compare ./sort ./sort.spike -- test.txt

The image must have been linked with -Wl,--emit-relocs. The optimized image runs on any Alpha system. With --profile and -o \
the database has no part in it.")]
    Optimize(OptimizeOptions),
    /// Write an image that counts its own blocks and edges wherever it runs; or instrument a registered application.
    #[command(after_help = "\
Examples:
  pathlength spike instrument sort             of a registered application
  pathlength spike instrument ./sort -o sort.counting
  ./sort.counting train.txt                    on any Alpha system, or under qemu-alpha
  pathlength spike profile --from-counts sort.counting.counts -o sort.profile ./sort

Runs add to the file with the counts, also if they are killed, and with atomic additions at the same time. To begin again, instrument again, and \
a registered application with --replace.")]
    Instrument(InstrumentOptions),
    /// Register a program with its libraries as an application, to be instrumented and optimized.
    #[command(after_help = "\
Examples:
  pathlength spike register ./sort
  pathlength spike collect ./sort train.txt        runs it, counting
  pathlength spike optimize sort
  pathlength spike run ./sort test.txt             runs the optimized images in place of the originals

Libraries are found as the program's loader finds them; those that it loads later are added when it does. The files themselves are \
never changed.")]
    Register(RegisterOptions),
    /// Run a registered program with instrumented images, and add what they count to its profile.
    #[command(
        override_usage = "pathlength spike collect [OPTIONS] [PROGRAM [ARG]...]",
        after_help = "\
Examples:
  pathlength spike collect ./sort train.txt
  pathlength spike collect                     what earlier runs have counted, also of programs that were killed

The exit status is the program's."
    )]
    Collect(CollectOptions),
    /// Run a program; registered applications, also those that it starts, execute the chosen version of their images.
    #[command(
        override_usage = "pathlength spike run [OPTIONS] <PROGRAM> [ARG]...",
        after_help = "\
Examples:
  pathlength spike run ./sort test.txt
  pathlength spike run --version original ./sort test.txt
  pathlength spike run /bin/sh -c './sort test.txt'

Programs see the names, paths and status of the originals. spike instrument and spike optimize choose the version, and so does spike \
use. The exit status is the program's."
    )]
    Run(SpikeRunOptions),
    /// Choose which version of an application's images is executed.
    #[command(after_help = "Example: pathlength spike use sort original")]
    Use(UseOptions),
    /// Write the optimized images of an application, or its profile, to files.
    #[command(after_help = "\
Examples:
  pathlength spike export sort -o optimized
  pathlength spike export sort --profile sort.profile")]
    Export(SpikeExportOptions),
    /// List registered applications, or the images of one.
    #[command(after_help = "\
Examples:
  pathlength spike list
  pathlength spike list sort --format json")]
    List(ListOptions),
    /// Serve a page on this machine, for this user's browser, that shows the database and does what these commands do.
    #[command(after_help = "\
Examples:
  pathlength spike manager                     prints the page's address, which holds a secret
  pathlength spike manager --port 8080

Only programs of this machine reach the page, and only those that know its address. Ctrl-C ends it.")]
    Manager(ManagerOptions),
    /// Remove an application, its versions and profiles from the database. The originals stay.
    #[command(after_help = "Example: pathlength spike remove sort")]
    Remove(RemoveOptions),
    /// Prove that an optimized image does what the original does.
    #[command(after_help = "\
Example:
  pathlength spike check ./sort ./sort.spike

Both images are executed symbolically, side by side, on all paths of each procedure. The exit status is 1 if a procedure
could not be proved; the table then has the place and the path on which something differs.")]
    Check(CheckImagesOptions),
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
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The image: a program or a shared object. Without --profile and -o, a registered application: its name, or its program.
    pub image: InputFile,
    /// The profile, made by `pathlength spike profile`; also one of another build, as far as procedures and blocks can be matched.
    #[arg(long, value_name = "FILE", requires = "output")]
    pub profile: Option<InputFile>,
    /// The optimized image.
    #[arg(short, long, value_name = "FILE", requires = "profile", conflicts_with = "database")]
    pub output: Option<PathBuf>,
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
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The image: a program or a shared object. Without -o, a registered application: its name, or its program.
    pub image: InputFile,
    /// The instrumented image.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["database", "replace"])]
    pub output: Option<PathBuf>,
    /// The file with the counts, which must stay where it is; otherwise OUTPUT.counts.
    #[arg(long, value_name = "FILE", requires = "output")]
    pub counts: Option<PathBuf>,
    /// How counters are incremented.
    #[arg(long, value_name = "METHOD", value_enum, default_value_t, requires = "output")]
    pub update: CounterUpdate,
    /// Of an application, forget what was collected before.
    #[arg(long)]
    pub replace: bool,
}

/// How instrumented images increment counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CounterUpdate {
    /// By atomic additions: exact with any number of threads and processes.
    #[default]
    Atomic,
    /// By plain additions, which take less time: exact for one thread of one process at a time.
    Single,
}

impl From<CounterUpdate> for Update {
    fn from(update: CounterUpdate) -> Update {
        match update {
            CounterUpdate::Atomic => Update::Atomic,
            CounterUpdate::Single => Update::Single,
        }
    }
}

/// Options of `spike check`.
#[derive(Debug, Args)]
pub struct CheckImagesOptions {
    /// The original image.
    pub original: InputFile,
    /// The image that spike made of it.
    pub optimized: InputFile,
    /// Show these rows instead of the summary. A procedure's row says what could not be proved, and on which path.
    #[arg(long)]
    pub by: Option<ReportRows>,
    /// The format of the report: table, csv, json, parquet or markdown.
    #[arg(long, value_name = "FORMAT", default_value_t)]
    pub format: report::Format,
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
