//! Descriptions of adapters in TOML, as `data/adapters/` has them.

mod check;
mod reading;

pub use descriptions::DescriptionError;
use serde::Deserialize;

pub use reading::{AdapterSetting, names};

/// An adapter, its bus and its driver.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterDescription {
    /// The adapter, in one line.
    pub title: String,
    /// The owner of packets until the application takes them.
    pub buffering: Buffering,
    /// The network's link.
    pub link: LinkDescription,
    /// The bus between the adapter and its host.
    pub bus: BusDescription,
    /// The adapter as a target of the host's and of other devices' transactions.
    pub target: TargetDescription,
    /// The memory of packets.
    pub data_memory: DataMemoryDescription,
    /// The memory of circuits' states.
    pub control_memory: ControlMemoryDescription,
    /// The DMA engine.
    pub dma: DmaDescription,
    /// Buffers and summaries of what is received.
    pub receive: ReceiveDescription,
    /// Credit-based flow control; without it the link drops cells that find no buffer.
    pub credits: Option<CreditDescription>,
    /// Interrupts; without them the driver polls.
    pub interrupts: Option<InterruptDescription>,
    /// The driver, and the stack above it.
    pub driver: DriverDescription,
    /// The host's memory.
    pub host: HostDescription,
}

/// The owner of packets that the application has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffering {
    /// The adapter's memory is exposed to software, which places packets there and takes them when it likes.
    Exposed,
    /// The adapter hides a small FIFO: cells move between link and host memory as they come.
    Hidden,
}

/// The units of a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Cells of ATM with AAL5.
    Aal5,
    /// Frames of Ethernet, into which the adapter segments.
    Ethernet,
}

/// The network's link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// The units of a packet.
    pub framing: Framing,
    /// The rate in Mb/s, headers included.
    pub mbps: f64,
    /// The most bytes of a packet in an Ethernet frame.
    pub frame: Option<u32>,
    /// The time from the end of a cell at the sender to its arrival, with the pipelines of both.
    pub delay_ns: u32,
    /// Cells or frames that the transmitter reads from the data memory ahead of the link.
    pub read_ahead: u32,
    /// The number of circuits.
    pub circuits: u32,
}

/// The kind of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusKind {
    /// PCI: one transaction at a time, whose master and target wait for each other.
    Pci,
    /// PCI Express: two directions, reads in two parts.
    Express,
}

/// The bus between the adapter and its host. Durations are cycles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusDescription {
    /// The kind.
    pub kind: BusKind,
    /// The clock's frequency.
    pub clock_mhz: f64,
    /// The width.
    pub bits: u32,
    /// From a request on an idle bus to the address phase.
    pub arbitration: u32,
    /// The address phase; of PCI Express, the header.
    pub address: u32,
    /// From the address of a read of host memory to its first data.
    pub read_latency: u32,
    /// From the address of a write to its first data.
    pub write_stall: u32,
    /// Idle cycles after a transaction.
    pub turnaround: u32,
    /// From the address phase to the end of a try that is retried.
    pub retry: u32,
    /// From such an end to the next try.
    pub retry_interval: u32,
    /// After so many cycles a master gives up the bus if another one requests it; without it, never.
    pub latency_timer: Option<u32>,
    /// The bytes of a line of host memory.
    pub line: u32,
    /// Stall of a write of host memory for each line that the bridge must read first.
    pub merge: u32,
}

/// The adapter as a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetDescription {
    /// The time of a CSR read inside the chip, until which it is retried; 0 for CSRs in the bus's clock domain.
    pub csr_ns: u32,
    /// The same of a read of the data memory.
    pub read_ns: u32,
    /// The most bytes of the host's write of the data memory: what its write buffer combines.
    pub write_bytes: u32,
    /// The most bytes of the host's read.
    pub read_bytes: u32,
}

/// The memory of packets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataMemoryDescription {
    /// The clock's frequency.
    pub clock_mhz: f64,
    /// The bytes of a cycle.
    pub width: u32,
    /// The cycles of an access without data.
    pub overhead: u32,
    /// The most bytes of an access.
    pub burst: u32,
    /// Its size in KiB.
    pub kilobytes: u32,
}

/// The memory of circuits' states.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlMemoryDescription {
    /// The clock's frequency.
    pub clock_mhz: f64,
    /// The cycles of a cell that is sent.
    pub transmit: u32,
    /// The cycles of a cell that is received.
    pub receive: u32,
    /// The cycles of a credit.
    pub credit: u32,
}

/// The DMA engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmaDescription {
    /// The most bytes of a read.
    pub read_burst: u32,
    /// The most bytes of a write, which ends at their multiples.
    pub write_burst: u32,
    /// The bytes of a command.
    pub command: u32,
    /// The commands of the ring.
    pub ring: u32,
    /// The most commands that are read at once.
    pub fetch: u32,
    /// Bursts that are taken from the data memory ahead of the bus.
    pub prefetch: u32,
    /// Reads that may be under way at once: more than one needs PCI Express.
    pub reads: u32,
    /// Whether whole lines are written by memory write and invalidate.
    pub write_invalidate: bool,
}

/// Buffers and summaries of what is received.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveDescription {
    /// Buffers, of a cell each, that any circuit may use.
    pub shared: u32,
    /// Buffers of each circuit.
    pub per_circuit: u32,
    /// The bytes of a packet's summary in host memory: the descriptor and the first bytes of the packet.
    pub summary: u32,
    /// The bytes of the descriptor in it.
    pub descriptor: u32,
    /// The summaries of the ring.
    pub ring: u32,
}

/// Credit-based flow control.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditDescription {
    /// The credits of a circuit that are sent together.
    pub batch: u32,
}

/// Interrupts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptDescription {
    /// The delay that the driver writes at the end of its service, of both classes.
    pub holdoff_ns: [u32; 2],
}

/// The driver, and the stack above it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverDescription {
    /// The mover of data to the adapter.
    pub send: Mover,
    /// The mover of data from the adapter.
    pub receive: Mover,
    /// Shorter packets move by programmed I/O, if `send` is DMA.
    pub programmed_below: u32,
    /// CSR reads of a packet that is sent.
    pub send_reads: u32,
    /// CSR writes of a packet that is sent.
    pub send_writes: u32,
    /// CSR reads of an interrupt's service, or of a packet that polling finds.
    pub service_reads: u32,
    /// CSR writes of the same.
    pub service_writes: u32,
    /// From an interrupt, or a summary that polling finds, to the driver's first operation.
    pub latency_ns: u32,
    /// The processor's time for a packet that is sent: system call, protocols, driver; without moving bytes.
    pub send_ns: u32,
    /// The processor's time for a packet that is received.
    pub receive_ns: u32,
    /// The processor's time to lock and unlock the pages of an application's buffer for DMA.
    pub lock_ns: u32,
    /// Passes of memory by the processor for each byte that is sent, beside DMA: creation 1, copy 2, checksum 1.
    pub send_passes: u32,
    /// The same for each byte that is received.
    pub receive_passes: u32,
    /// Whether the driver takes packets that fit their summary from there, instead of by another copy.
    pub uses_summary: bool,
    /// Packets under way.
    pub window: u32,
}

/// The mover of data over the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mover {
    /// By DMA.
    Dma,
    /// By the processor.
    Programmed,
}

/// The host's memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDescription {
    /// Its bandwidth in 10^6 bytes a second.
    pub megabytes_a_second: f64,
    /// The bytes of a page: a command's data lie in one.
    pub page: u32,
}
