//! Options of `sharing`.

use analysis::models::OwnRows;
use clap::{Args, ValueEnum};
use machine::{CoherentMemory, MachineSetting};
use session::sharing::SharingRows;
use trace::interleave::{Assignment, Schedule};

use super::{MachineName, ResultOptions};

/// The rows of a table of shared data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SharingRowName {
    /// Cache lines, with what lies in them and what would avoid their moves.
    CacheLine,
    /// Variables and blocks of the heap, with the same.
    Data,
    /// Pairs of lines that move together, and would move as one if their data lay in one line.
    Partner,
    /// Pairs of threads: the one that wrote a line, and the one that used it next.
    Thread,
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Classes of units of work (--unit, --class).
    Class,
    /// Changes of the state of lines: modified, owned, exclusive, shared, invalid.
    State,
    /// Of a machine with nodes: the nodes and their processors, with what they needed the interconnect for.
    Node,
    /// Of a machine with nodes: the kinds of operations on the interconnect.
    Interconnect,
    /// In time, as --time: the processors, with what they spend their cycles on.
    Processor,
    /// In time: the kinds of transactions on the bus, with their latencies.
    Transaction,
    /// In time: fetches, loads and stores that reach the caches at the bus, by the state of their line.
    Request,
}

/// Which processor executes which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssignmentName {
    /// Each thread has one processor, on which it takes turns with others.
    Affinity,
    /// As affinity, but one thread at a time, in the order in which they were recorded.
    Recorded,
    /// Threads wait in one queue for the next free processor, and give it back after a time slice.
    RoundRobin,
    /// As round-robin, but a thread keeps its processor until it waits.
    RunToBlock,
}

impl From<SharingRowName> for SharingRows {
    fn from(name: SharingRowName) -> SharingRows {
        match name {
            SharingRowName::CacheLine => SharingRows::CacheLine,
            SharingRowName::Data => SharingRows::Data,
            SharingRowName::Partner => SharingRows::Partner,
            SharingRowName::Thread => SharingRows::Thread,
            SharingRowName::Function => SharingRows::Code(OwnRows::Function),
            SharingRowName::Line => SharingRows::Code(OwnRows::Line),
            SharingRowName::Instruction => SharingRows::Code(OwnRows::Instruction),
            SharingRowName::Class => SharingRows::Class,
            SharingRowName::State => SharingRows::State,
            SharingRowName::Node => SharingRows::Node,
            SharingRowName::Interconnect => SharingRows::Interconnect,
            SharingRowName::Processor => SharingRows::Processor,
            SharingRowName::Transaction => SharingRows::Transaction,
            SharingRowName::Request => SharingRows::Request,
        }
    }
}

impl From<AssignmentName> for Assignment {
    fn from(name: AssignmentName) -> Assignment {
        match name {
            AssignmentName::Affinity => Assignment::Affinity,
            AssignmentName::Recorded => Assignment::Recorded,
            AssignmentName::RoundRobin => Assignment::RoundRobin,
            AssignmentName::RunToBlock => Assignment::RunToBlock,
        }
    }
}

/// Options of `sharing`.
#[derive(Debug, Args)]
pub struct SharingOptions {
    /// One table with a row for each of these, instead of a summary and the first cache lines.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<SharingRowName>,
    /// In time, on a machine with a section [coherence.bus]: throughput, utilization of the bus or of buses and interconnect, cycles per instruction of
    /// each processor by cause, latencies of transactions.
    #[arg(long)]
    pub time: bool,
    /// In time, on each of these numbers of processors: 1,2,4. With --by, the rows of each.
    #[arg(long, value_name = "N,N...", value_delimiter = ',', conflicts_with = "processors", value_parser = clap::value_parser!(u32).range(1..=CoherentMemory::MOST_PROCESSORS as i64))]
    pub scaling: Vec<u32>,
    /// In time, for a sample of the execution only: for windows of 1,000 instructions of each processor, one in each PERIOD of
    /// them. Between windows every access changes the caches, and nothing waits for the bus. Results are estimates, with their
    /// errors, of everything or of classes (--by class).
    #[arg(long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    pub sample: Option<u64>,
    /// The machine, which must have a section [coherence]: a name that pathlength machines lists, or a file.
    #[arg(long, value_name = "MACHINE", default_value = "present-day")]
    pub machine: MachineName,
    /// Change a field of the machine: coherence.protocol=mesi, l2.size=1M. Can be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub settings: Vec<MachineSetting>,
    /// The number of processors; by default one for each thread of all processes, at most 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CoherentMemory::MOST_PROCESSORS as i64))]
    pub processors: Option<u32>,
    /// How many instructions a processor executes before the next one has its turn: fewer interleave threads more finely.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub quantum: u64,
    /// Which processor executes which thread.
    #[arg(long, value_name = "HOW", default_value = "affinity")]
    pub assign: AssignmentName,
    /// Threads never wait, as if clients always asked at once, however busy the host was. Where a unit of work ends, the next
    /// thread of the queue gets the processor.
    #[arg(long)]
    pub saturated: bool,
    /// Check at each access that caches are coherent: it finds what was stored last, and a store leaves no other copy. It takes
    /// several times as long.
    #[arg(long)]
    pub check: bool,
    /// The loads of this function are a device's, by DMA: each reads a line, and snoops. Can be given several times.
    #[arg(long, value_name = "FUNCTION")]
    pub device_reads: Vec<String>,
    /// The stores of this function are a device's, by DMA: each writes a line, and invalidates copies, or with
    /// coherence.direct_cache_access puts it into the processor's cache. Can be given several times.
    #[arg(long, value_name = "FUNCTION")]
    pub device_writes: Vec<String>,
    /// How many instructions a thread executes before another one has its processor, with affinity and round-robin.
    #[arg(long, value_name = "N", default_value_t = Schedule::TIME_SLICE, value_parser = clap::value_parser!(u64).range(1..))]
    pub time_slice: u64,
    #[command(flatten)]
    pub results: ResultOptions,
}
