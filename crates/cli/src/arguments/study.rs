//! Options of `build` and of the studies.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{Args, Subcommand, ValueEnum};
use session::machines::SelectedMachines;
use studies::byteword::{self, MODES, Mode, StudySettings};
use studies::graphics::GraphicsStudySettings;
use studies::network::linux::LinuxStudySettings;
use studies::network::{NetworkStudySettings, PathSettings};
use studies::numa::{self, NumaBenchmark, NumaStudySettings};
use studies::rdb::RdbStudySettings;
use studies::smp::SmpStudySettings;
use studies::spike::{PROGRAMS, SpikeStudySettings, StudyProgram};
use studies::strides::StridesStudySettings;
use studies::system::{SystemProgram, SystemStudySettings};
use studies::tpcc::{DatabaseSystem, TpccStudySettings};
use studies::tpch::{self, TpchStudySettings};
use studies::vlm::{Backing, PostgresqlSettings, Size, VlmStudySettings};
use workloads::build::BuildFolders;

use super::{MachineName, OutputOptions};

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
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// The effect of the byte and word instructions on a database.
    #[command(after_help = "\
Examples:
  pathlength study byteword
  pathlength study byteword --mode cached
  pathlength study byteword --database postgresql --transactions 100")]
    Byteword(BytewordOptions),
    /// How a sparse matrix-vector product accesses memory.
    #[command(after_help = "Example: pathlength study strides")]
    Strides(StridesStudyOptions),
    /// What each transaction of TPC-C costs, and in which part of the database.
    #[command(after_help = "\
Examples:
  pathlength study tpcc
  pathlength study tpcc --database postgresql --transactions 100 --machine alpha21264")]
    Tpcc(TpccOptions),
    /// What TPC-H's queries cost, where they miss the caches, and how that grows with the data.
    #[command(after_help = "Example: pathlength study tpch --scale 0.01 --queries 1,6,13")]
    Tpch(TpchOptions),
    /// Page tables and start-up of processes that map gigabytes, and PostgreSQL's.
    #[command(
        after_help = "Example: sudo pathlength study vlm --sizes 1G,2G --processes 1,100 --postgresql-size 0M"
    )]
    Vlm(VlmOptions),
    /// What three mistakes of an order-entry program on SQLite cost, and how they are found.
    #[command(after_help = "Example: pathlength study rdb")]
    Rdb(RdbOptions),
    /// Where a database's cycles go on multiprocessors, beside two studies of 1998, and technical workloads against it.
    #[command(after_help = "Example: pathlength study smp --transactions 100")]
    Smp(SmpOptions),
    /// What PostgreSQL's processes share on a machine of nodes, and what a better layout of the data saves.
    #[command(
        after_help = "Example: pathlength study numa --benchmarks tpcb --recordings 1 --transactions 2"
    )]
    Numa(NumaOptions),
    /// What the optimizer spike wins on programs of several kinds, and what they are like.
    #[command(after_help = "Example: pathlength study spike --programs lua,bzip2")]
    Spike(SpikeStudyOptions),
    /// What programs look like alone, with their libraries and with the operating system; and byte and word instructions in the
    /// kernel.
    #[command(after_help = "Example: pathlength study system --programs sqlite,grep")]
    System(SystemStudyOptions),
    /// What the network adapter DART saves on the way of a byte between two programs, beside adapters of other kinds.
    #[command(after_help = "Example: pathlength study network")]
    Network(NetworkStudyOptions),
    /// What a vertex costs by generic and special paths of a library for OpenGL, and which part of a workstation limits a viewer.
    #[command(after_help = "Example: pathlength study graphics")]
    Graphics(GraphicsStudyOptions),
}

impl StudyCommand {
    /// The folder of the report and its tables.
    pub fn folder(&self) -> PathBuf {
        let (name, report) = match self {
            StudyCommand::Byteword(options) => ("byteword", &options.common.report),
            StudyCommand::Strides(options) => ("strides", &options.common.report),
            StudyCommand::Tpcc(options) => ("tpcc", &options.common.report),
            StudyCommand::Tpch(options) => ("tpch", &options.common.report),
            StudyCommand::Vlm(options) => ("vlm", &options.report),
            StudyCommand::Rdb(options) => ("rdb", &options.common.report),
            StudyCommand::Smp(options) => ("smp", &options.common.report),
            StudyCommand::Numa(options) => ("numa", &options.common.report),
            StudyCommand::Spike(options) => ("spike", &options.common.report),
            StudyCommand::System(options) => ("system", &options.common.report),
            StudyCommand::Network(options) => ("network", &options.common.report),
            StudyCommand::Graphics(options) => ("graphics", &options.common.report),
        };
        report.output.clone().unwrap_or_else(|| Path::new("study").join(name))
    }
}

/// The report of a study.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The folder of the report and its tables, instead of study/NAME.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The report of a study whose programs run on the engine.
#[derive(Debug, Args)]
pub struct StudyOptions {
    #[command(flatten)]
    report: ReportOptions,
    /// The sysroot with the C library for Alpha.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    sysroot: PathBuf,
}

/// The folder of builds, and a folder with sources.
fn builds(sources: Option<&PathBuf>) -> BuildFolders {
    BuildFolders { folder: "build".into(), sources: sources.cloned() }
}

/// A database system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DatabaseName {
    /// SQLite.
    Sqlite,
    /// A PostgreSQL server, which is built the first time.
    Postgresql,
}

impl From<DatabaseName> for DatabaseSystem {
    fn from(name: DatabaseName) -> DatabaseSystem {
        match name {
            DatabaseName::Sqlite => DatabaseSystem::Sqlite,
            DatabaseName::Postgresql => DatabaseSystem::Postgresql,
        }
    }
}

/// Options of `study byteword`.
#[derive(Debug, Args)]
pub struct BytewordOptions {
    /// The database system.
    #[arg(long, value_name = "SYSTEM", default_value = "sqlite")]
    database: DatabaseName,
    /// Of SQLite, one mode only: cached or scaled.
    #[arg(long, value_parser = ["cached", "scaled"])]
    mode: Option<String>,
    /// Of PostgreSQL, the transactions of each build [default: 2000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    transactions: Option<u32>,
    #[command(flatten)]
    common: StudyOptions,
}

/// The study's settings, which depend on the database system.
pub enum BytewordSettings {
    /// On SQLite.
    Embedded(StudySettings),
    /// On a PostgreSQL server.
    Server(byteword::ServerStudySettings),
}

impl BytewordOptions {
    /// The settings.
    pub fn settings(&self) -> anyhow::Result<BytewordSettings> {
        let sysroot = self.common.sysroot.clone();
        Ok(match self.database {
            DatabaseName::Sqlite => {
                ensure!(self.transactions.is_none(), "--transactions is for --database postgresql");
                let is_selected = |mode: &&Mode| self.mode.as_deref().is_none_or(|name| name == mode.name);
                let modes = MODES.iter().filter(is_selected).copied().collect();
                BytewordSettings::Embedded(StudySettings { modes, build: builds(None), sysroot })
            }
            DatabaseName::Postgresql => {
                ensure!(
                    self.mode.is_none(),
                    "--mode is for SQLite: on a server the database fits the buffers"
                );
                let transactions = self.transactions.unwrap_or(2000);
                let build = builds(None);
                BytewordSettings::Server(byteword::ServerStudySettings { transactions, build, sysroot })
            }
        })
    }
}

/// Options of `study strides`.
#[derive(Debug, Args)]
pub struct StridesStudyOptions {
    #[command(flatten)]
    common: StudyOptions,
}

impl StridesStudyOptions {
    /// The settings.
    pub fn settings(&self) -> StridesStudySettings {
        StridesStudySettings { build: builds(None), sysroot: self.common.sysroot.clone(), with_misses: true }
    }
}

/// Options of `study tpcc`.
#[derive(Debug, Args)]
pub struct TpccOptions {
    /// The database system.
    #[arg(long, value_name = "SYSTEM", default_value = "sqlite")]
    database: DatabaseName,
    /// Transactions of all kinds in each build.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    transactions: u32,
    /// The machine on which a tenth of the transactions is simulated, of PostgreSQL a fortieth: a name that pathlength machines
    /// lists, or a file. Can be given several times [default: alphastation500, pentium-pro-core, present-day-core].
    #[arg(long = "machine", value_name = "MACHINE")]
    machines: Vec<MachineName>,
    #[command(flatten)]
    common: StudyOptions,
}

impl TpccOptions {
    /// The settings.
    pub fn settings(&self) -> anyhow::Result<TpccStudySettings> {
        let SelectedMachines { names, machines, .. } = SelectedMachines::find(&self.machines, &[])?;
        Ok(TpccStudySettings {
            system: self.database.into(),
            transactions: self.transactions,
            machines: names.into_iter().zip(machines).collect(),
            build: builds(None),
            sysroot: self.common.sysroot.clone(),
        })
    }
}

/// Options of `study tpch`.
#[derive(Debug, Args)]
pub struct TpchOptions {
    /// The database system.
    #[arg(long, value_name = "SYSTEM", default_value = "sqlite")]
    database: DatabaseName,
    /// The scale factor: 1 is a gigabyte of data.
    #[arg(long, value_name = "FACTOR", default_value = "0.01", value_parser = scale)]
    scale: f64,
    /// Queries by their numbers, instead of all 22.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS", value_parser = query)]
    queries: Vec<u32>,
    #[command(flatten)]
    common: StudyOptions,
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

impl TpchOptions {
    /// The settings.
    pub fn settings(&self) -> TpchStudySettings {
        let mut queries = self.queries.clone();
        queries.sort_unstable();
        queries.dedup();
        TpchStudySettings {
            system: self.database.into(),
            scale: self.scale,
            queries: if queries.is_empty() { tpch::numbers().collect() } else { queries },
            build: builds(None),
            sysroot: self.common.sysroot.clone(),
        }
    }
}

/// Options of `study vlm`.
#[derive(Debug, Args)]
pub struct VlmOptions {
    /// The sizes of sections.
    #[arg(long, value_delimiter = ',', default_value = "1G,2G,4G")]
    sizes: Vec<Size>,
    /// The numbers of processes.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,300")]
    processes: Vec<usize>,
    /// What the memory consists of. Pages of 4 KiB (small) take the most time, and memory for page tables.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "small,private,shared")]
    memory: Vec<StudyMemoryKind>,
    /// PostgreSQL's shared memory; 0M leaves PostgreSQL out.
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    postgresql_size: Size,
    /// The connections to PostgreSQL.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// The command vlm, which starts the processes; the one beside this program, or in PATH, if it is not named.
    #[arg(long, value_name = "FILE")]
    vlm: Option<PathBuf>,
    #[command(flatten)]
    report: ReportOptions,
}

impl VlmOptions {
    /// The settings.
    pub fn settings(&self) -> anyhow::Result<VlmStudySettings> {
        let are_positive = self.sizes.iter().all(|size| size.bytes() > 0) && !self.processes.contains(&0);
        ensure!(are_positive, "sizes and numbers of processes begin with 1");
        let server =
            PostgresqlSettings { size: self.postgresql_size, connections: self.connections as usize };
        Ok(VlmStudySettings {
            sizes: self.sizes.clone(),
            processes: self.processes.clone(),
            backings: self.memory.iter().copied().map(Backing::from).collect(),
            postgresql: (server.size.bytes() > 0).then_some(server),
            vlm: studies::vlm::find_vlm(self.vlm.as_deref())?,
        })
    }
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

/// Options of `study rdb`.
#[derive(Debug, Args)]
pub struct RdbOptions {
    /// Transactions in each build.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    transactions: u32,
    #[command(flatten)]
    common: StudyOptions,
}

impl RdbOptions {
    /// The settings.
    pub fn settings(&self) -> RdbStudySettings {
        let sysroot = self.common.sysroot.clone();
        RdbStudySettings { transactions: self.transactions, build: builds(None), sysroot }
    }
}

/// Options of `study smp`.
#[derive(Debug, Args)]
pub struct SmpOptions {
    /// Transactions of all clients together.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    transactions: u32,
    #[command(flatten)]
    common: StudyOptions,
}

impl SmpOptions {
    /// The settings.
    pub fn settings(&self) -> SmpStudySettings {
        let sysroot = self.common.sysroot.clone();
        SmpStudySettings { transactions: self.transactions, build: builds(None), sysroot }
    }
}

/// Options of `study numa`.
#[derive(Debug, Args)]
pub struct NumaOptions {
    /// Transactions of each client; the first half of them warms up the caches.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..))]
    transactions: u32,
    /// Benchmarks, instead of both.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = ["tpcc", "tpcb"])]
    benchmarks: Vec<String>,
    /// The most recordings of each step, which needs three for the interval of a difference.
    #[arg(long, value_name = "N", default_value_t = numa::MOST_RECORDINGS, value_parser = clap::value_parser!(u32).range(1..))]
    recordings: u32,
    #[command(flatten)]
    common: StudyOptions,
}

impl NumaOptions {
    /// The settings.
    pub fn settings(&self) -> NumaStudySettings {
        let names = &self.benchmarks;
        let is_selected =
            |one: &NumaBenchmark| names.is_empty() || names.iter().any(|name| name == one.name());
        NumaStudySettings {
            transactions: self.transactions,
            benchmarks: NumaBenchmark::ALL.into_iter().filter(is_selected).collect(),
            most_recordings: self.recordings,
            build: builds(None),
            sysroot: self.common.sysroot.clone(),
        }
    }
}

/// Options of `study spike`.
#[derive(Debug, Args)]
pub struct SpikeStudyOptions {
    /// Programs, instead of all of them.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = studies::spike::names())]
    programs: Vec<String>,
    /// A folder with the sources of the programs, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    #[command(flatten)]
    common: StudyOptions,
}

impl SpikeStudyOptions {
    /// The settings. Programs that cannot be studied here are left out, with a message, unless they are named.
    pub fn settings(&self) -> SpikeStudySettings {
        let is_selected = |program: &&StudyProgram| {
            let name = program.workload.name;
            match (self.programs.is_empty(), program.obstacle()) {
                (true, Some(reason)) => {
                    text::message!("{name} is left out: {reason}");
                    false
                }
                (true, None) => true,
                (false, _) => self.programs.iter().any(|selected| selected == name),
            }
        };
        SpikeStudySettings {
            programs: PROGRAMS.iter().filter(is_selected).copied().collect(),
            build: builds(self.sources.as_ref()),
            sysroot: self.common.sysroot.clone(),
        }
    }
}

/// Options of `study system`.
#[derive(Debug, Args)]
pub struct SystemStudyOptions {
    /// Programs, instead of all of them and the builds of the kernel.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = studies::system::names())]
    programs: Vec<String>,
    /// A folder with the sources of the programs, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    #[command(flatten)]
    common: StudyOptions,
}

impl SystemStudyOptions {
    /// The settings.
    pub fn settings(&self) -> SystemStudySettings {
        let names = &self.programs;
        let is_selected =
            |program: &SystemProgram| names.is_empty() || names.iter().any(|name| name == program.name);
        SystemStudySettings {
            programs: studies::system::programs().into_iter().filter(is_selected).collect(),
            compares_builds: names.is_empty(),
            build: builds(self.sources.as_ref()),
            sysroot: self.common.sysroot.clone(),
        }
    }
}

/// Options of `study network`.
#[derive(Debug, Args)]
pub struct NetworkStudyOptions {
    #[command(flatten)]
    common: StudyOptions,
    /// The bytes that each counted run of the TCP/IP stack sends or receives.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    bytes: u64,
    /// The packets of each simulated run.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..))]
    packets: u32,
    /// Replay a driver's log on DART, too: a file that the network workload writes with DART_LOG=FILE. Can be given several times.
    #[arg(long = "log", value_name = "FILE")]
    logs: Vec<PathBuf>,
    /// Count transfers over Linux on a whole system, too, which need an emulator and a kernel's build (./setup system).
    #[arg(long)]
    linux: bool,
    /// A folder with the sources of Linux, which are downloaded otherwise.
    #[arg(long, value_name = "DIR", requires = "linux")]
    sources: Option<PathBuf>,
}

impl NetworkStudyOptions {
    /// The settings.
    pub fn settings(&self) -> NetworkStudySettings {
        let sysroot = &self.common.sysroot;
        let paths = PathSettings { bytes: self.bytes, build: builds(None), sysroot: sysroot.clone() };
        let linux = LinuxStudySettings { build: builds(self.sources.as_ref()), sysroot: sysroot.clone() };
        NetworkStudySettings {
            packets: self.packets,
            logs: self.logs.clone(),
            paths,
            linux: self.linux.then_some(linux),
        }
    }
}

/// Options of `study graphics`.
#[derive(Debug, Args)]
pub struct GraphicsStudyOptions {
    #[command(flatten)]
    common: StudyOptions,
}

impl GraphicsStudyOptions {
    /// The settings.
    pub fn settings(&self) -> GraphicsStudySettings {
        GraphicsStudySettings { build: builds(None), sysroot: self.common.sysroot.clone() }
    }
}
