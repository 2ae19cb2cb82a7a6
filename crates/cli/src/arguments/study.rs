//! Options of `build` and `study`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use studies::spike;
use studies::tpch;
use studies::vlm::{Backing, Size};

use super::OutputOptions;

/// Options of `build`.
#[derive(Debug, Args)]
pub struct BuildOptions {
    /// The workload.
    #[arg(value_parser = workloads::workload::names())]
    pub workload: String,
    /// The folder of builds.
    #[arg(long, value_name = "DIR", default_value = "build")]
    pub folder: PathBuf,
    /// A folder with sources, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    /// Change the sources by a patch (patch -p1) first; several times for several. The build without patches stays beside it.
    #[arg(long, value_name = "FILE")]
    pub patch: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// The studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyName {
    /// The effect of the byte and word instructions.
    Byteword,
    /// How a sparse matrix-vector product accesses memory.
    Strides,
    /// What each transaction of TPC-C costs, and in which part of the database.
    Tpcc,
    /// What TPC-H's queries cost, where they miss the caches, and how that grows with the data.
    Tpch,
    /// Page tables and start-up of processes that map gigabytes, and PostgreSQL's.
    Vlm,
    /// What three mistakes of an order-entry program on SQLite cost, and how they are found.
    Rdb,
    /// Where a database's cycles go on multiprocessors, beside two studies of 1998, and technical workloads against it.
    Smp,
    /// What PostgreSQL's processes share on a machine of nodes, and what a better layout of the data saves.
    Numa,
    /// What the optimizer spike wins on programs of several kinds, and what they are like.
    Spike,
    /// What programs look like alone, with their libraries and with the operating system; and byte and word instructions in the
    /// kernel.
    System,
}

/// Options of `study`.
#[derive(Debug, Args)]
pub struct StudyOptions {
    /// The study.
    pub name: StudyName,
    /// The database system of the studies byteword, tpcc and tpch: SQLite, or a PostgreSQL server, which is built the first time.
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite", "postgresql"])]
    pub database: String,
    /// One mode only: cached or scaled.
    #[arg(long, value_parser = ["cached", "scaled"])]
    pub mode: Option<String>,
    /// Transactions in each build: of the study tpcc, of all kinds; of byteword on PostgreSQL; of rdb and smp, a tenth of them; of
    /// numa, a hundredth for each client.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub transactions: u32,
    /// The machine on which the study tpcc simulates a tenth of the transactions, of PostgreSQL a fortieth: a name that pathlength machines lists, or a file. Can be
    /// given several times [default: alphastation500, pentium-pro-core, present-day-core].
    #[arg(long = "machine", value_name = "MACHINE")]
    pub machines: Vec<String>,
    /// The scale factor of the study tpch: 1 is a gigabyte of data [default: 0.01].
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub scale: Option<f64>,
    /// Queries of the study tpch by their numbers, instead of all 22.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", value_parser = query)]
    pub queries: Vec<u32>,
    /// Benchmarks of the study numa, instead of both.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = ["tpcc", "tpcb"])]
    pub benchmarks: Vec<String>,
    /// The most recordings of each step of the study numa, which needs three for the interval of a difference [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub recordings: Option<u32>,
    /// The folder of the report and its tables, instead of study/NAME.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The sysroot with the C library for Alpha.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
    /// Programs of the studies spike and system, instead of all of them.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = program_names())]
    pub programs: Vec<String>,
    /// A folder with the sources of those programs, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    #[command(flatten)]
    pub vlm: VlmStudyOptions,
}

/// The names of the programs of studies.
fn program_names() -> Vec<&'static str> {
    let mut names = [spike::names(), studies::system::names()].concat();
    names.sort_unstable();
    names.dedup();
    names
}

/// A scale factor of TPC-H.
fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| tpch::SCALES.contains(scale));
    scale.ok_or_else(|| {
        format!("scale factors are numbers from {} to {}", tpch::SCALES.start(), tpch::SCALES.end())
    })
}

/// The number of a query of TPC-H.
fn query(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| tpch::numbers().any(|known| known == *number));
    number.ok_or_else(|| format!("queries are numbered from 1 to {}", tpch::numbers().count()))
}

/// Options of the study vlm.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of the study vlm")]
pub struct VlmStudyOptions {
    /// The sizes of sections.
    #[arg(long, value_delimiter = ',', default_value = "1G,2G,4G")]
    pub sizes: Vec<Size>,
    /// The numbers of processes.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,300")]
    pub processes: Vec<usize>,
    /// What the memory consists of. Pages of 4 KiB (small) take the most time, and memory for page tables.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "small,private,shared")]
    pub memory: Vec<StudyMemoryKind>,
    /// PostgreSQL's shared memory; 0M leaves PostgreSQL out.
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub postgresql_size: Size,
    /// The connections to PostgreSQL.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: u32,
    /// The command vlm, which starts the processes; the one beside this program, or in PATH, if it is not named.
    #[arg(long, value_name = "FILE")]
    pub vlm: Option<PathBuf>,
}

/// What the memory of the study vlm consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyMemoryKind {
    /// Pages of 4 KiB.
    Small,
    /// Pages of 2 MiB with private page tables.
    Private,
    /// Pages of 2 MiB with shared page tables.
    Shared,
}

impl From<StudyMemoryKind> for Backing {
    fn from(kind: StudyMemoryKind) -> Backing {
        match kind {
            StudyMemoryKind::Small => Backing::SmallPages,
            StudyMemoryKind::Private => Backing::PrivateTables,
            StudyMemoryKind::Shared => Backing::SharedTables,
        }
    }
}
