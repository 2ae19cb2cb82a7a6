//! The adapter with its bus and link: bus transactions and cells are events.

mod audit;
mod command;
mod engine;
mod interrupts;
mod parts;
mod receiver;
mod transfers;
mod transmitter;

use std::collections::VecDeque;

use crate::aal5::CellPayload;
use crate::clock::{HardwareClock, NANOSECOND, Picoseconds};
use crate::description::{AdapterDescription, Buffering};
use crate::faults::LinkFaults;
use crate::interconnect::{Interconnect, InterconnectCounts};

pub use command::{AdapterRegister, DmaCommand, HostEvent, PacketStatus, PacketSummary};
use parts::agenda::{Actor, Agenda, Delayed};
use parts::engine::DmaEngine;
use parts::interrupts::InterruptLine;
use parts::memory::{Contents, DataMemoryTiming, HostMemory, MemoryPort};
use parts::purpose::Purpose;
use parts::receiver::Receiver;
use parts::source::CellSource;
use parts::transmitter::{Cell, ReadyData, Transmitter};

/// The other end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// The adapter itself: cells that it sends come back.
    Loop,
    /// The same, with packets that have contents: bytes are copied, checksummed and checked, in a host memory of this size.
    LoopWithContents(usize),
    /// Another system, which takes every cell and gives its credit back at once, and sends what the program says.
    Network,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCounts {
    /// Events that were simulated.
    pub events: u64,
    /// Cells that the adapter has sent.
    pub cells_transmitted: u64,
    /// Packets of which it has sent all cells.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Cells on the link to the adapter: its own in a loop, or those of the remote end.
    pub cells_sent: u64,
    /// Cells lost on the link.
    pub cells_lost: u64,
    /// Cells on the link when the adapter was reset.
    pub cells_reset: u64,
    /// Cells that arrived.
    pub cells_received: u64,
    /// Cells that arrived and found no buffer.
    pub cells_dropped: u64,
    /// Packets that were received well.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Packets with a missing or damaged cell.
    pub packets_damaged: u64,
    /// Credits that were sent, batches of them.
    pub credit_messages: u64,
    /// Commands executed.
    pub commands: u64,
    /// Commands that cannot be executed: outside of memory, of no packet or circuit.
    pub command_errors: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Reads of CSRs.
    pub csr_reads: u64,
    /// Writes of CSRs.
    pub csr_writes: u64,
    /// Lines of host memory that DMA wrote as a whole.
    pub whole_lines: u64,
    /// Lines of which DMA wrote a part, or without saying that it writes all: the bridge reads them first.
    pub merged_lines: u64,
    /// Resets.
    pub resets: u64,
    /// Cells in buffers that a reset or an abandoned reassembly freed.
    pub cells_discarded: u64,
    /// Cells in buffers that software has freed, or that hidden buffers have passed on.
    pub cells_recycled: u64,
}

/// The adapter with its bus and link.
#[derive(Clone, Debug)]
pub struct Hardware {
    description: AdapterDescription,
    timing: HardwareTiming,
    now: Picoseconds,
    agenda: Agenda,
    events: VecDeque<HostEvent>,
    bus: Interconnect<Purpose>,
    /// Increases with each reset: transactions of the adapter from before are ignored.
    generation: u32,
    data_memory: MemoryPort,
    control_memory: MemoryPort,
    host_memory: HostMemory,
    engine: DmaEngine,
    ready: Delayed<ReadyData>,
    transmitter: Transmitter,
    link: Delayed<Cell>,
    payloads: VecDeque<CellPayload>,
    faults: LinkFaults,
    far_end: FarEnd,
    remote: CellSource,
    next_remote: Picoseconds,
    remote_began: Picoseconds,
    remote_interval: Picoseconds,
    receiver: Receiver,
    interrupts: [InterruptLine; 2],
    contents: Option<Box<Contents>>,
    counts: AdapterCounts,
}

/// Durations that do not change.
#[derive(Clone, Copy, Debug)]
struct HardwareTiming {
    data: DataMemoryTiming,
    /// A cell's access of the data memory.
    cell_access: Picoseconds,
    control_transmit: Picoseconds,
    control_receive: Picoseconds,
    control_credit: Picoseconds,
    /// A full cell or frame on the link.
    slot: Picoseconds,
    /// A bit on the link, in 1/1024 ps.
    bit: u64,
    delay: Picoseconds,
}

impl HardwareTiming {
    fn new(description: &AdapterDescription) -> HardwareTiming {
        let (link, control) = (&description.link, &description.control_memory);
        let data = DataMemoryTiming::new(&description.data_memory);
        let clock = HardwareClock::of_mhz(control.clock_mhz);
        let bits = link.unit_bytes(link.unit_payload() as u32) * 8;
        HardwareTiming {
            data,
            cell_access: data.duration(link.unit_payload() as u64),
            control_transmit: clock.duration(control.transmit.into()),
            control_receive: clock.duration(control.receive.into()),
            control_credit: clock.duration(control.credit.into()),
            slot: (f64::from(bits) / link.mbps * 1e6).round() as Picoseconds,
            bit: (1024e6 / link.mbps).round() as u64,
            delay: Picoseconds::from(link.delay_ns) * NANOSECOND,
        }
    }
}

impl Hardware {
    /// An adapter at rest.
    pub fn new(description: &AdapterDescription, far_end: FarEnd, faults: LinkFaults) -> Hardware {
        let quota = description.credits.as_ref().map(|_| description.receive.per_circuit);
        let contents = match far_end {
            FarEnd::LoopWithContents(bytes) => Some(Box::new(Contents::new(description, bytes))),
            _ => None,
        };
        Hardware {
            timing: HardwareTiming::new(description),
            now: 0,
            agenda: Agenda::new(),
            events: VecDeque::new(),
            bus: Interconnect::new(&description.bus),
            generation: 0,
            data_memory: MemoryPort::default(),
            control_memory: MemoryPort::default(),
            host_memory: HostMemory::new(description.host.megabytes_a_second),
            engine: DmaEngine::new(description),
            ready: Delayed::new(),
            transmitter: Transmitter::new(
                CellSource::new(&description.link, quota),
                description.link.read_ahead,
            ),
            link: Delayed::new(),
            payloads: VecDeque::new(),
            faults,
            far_end,
            remote: CellSource::new(&description.link, quota),
            next_remote: 0,
            remote_began: 0,
            remote_interval: 0,
            receiver: Receiver::new(description),
            interrupts: [InterruptLine::default(); 2],
            contents,
            counts: AdapterCounts::default(),
            description: description.clone(),
        }
    }

    /// The time.
    pub fn now(&self) -> Picoseconds {
        self.now
    }

    /// The adapter's description.
    pub fn description(&self) -> &AdapterDescription {
        &self.description
    }

    /// The counts so far.
    pub fn counts(&self) -> AdapterCounts {
        self.counts
    }

    /// The bus's counts so far.
    pub fn bus_counts(&self) -> InterconnectCounts {
        self.bus.counts()
    }

    /// The bus's clock.
    pub fn bus_clock(&self) -> HardwareClock {
        self.bus.clock()
    }

    /// The times in which the data memory, the control memory and the host's memory were occupied.
    pub fn memories_busy(&self) -> [Picoseconds; 3] {
        [self.data_memory.busy(), self.control_memory.busy(), self.host_memory.busy()]
    }

    /// The host's memory, in runs whose packets have contents.
    pub fn host_contents(&mut self) -> Option<&mut [u8]> {
        self.contents.as_mut().map(|contents| contents.host.as_mut_slice())
    }

    /// Makes the next event happen. False if nothing will happen any more.
    pub(crate) fn step(&mut self) -> bool {
        let Some((time, actor)) = self.agenda.first() else { return false };
        self.now = time;
        self.counts.events += 1;
        match actor {
            Actor::Ready => self.data_ready(),
            Actor::Slot => self.send_cell(),
            Actor::Arrival => self.receive_cell(),
            Actor::Credit => self.receive_credits(),
            Actor::Remote => self.remote_cell(),
            Actor::Fetched => self.fetched(),
            Actor::FirstInterrupt => self.interrupt(0),
            Actor::SecondInterrupt => self.interrupt(1),
            Actor::Host => {
                self.agenda.set(Actor::Host, crate::clock::NEVER);
                self.events.push_back(HostEvent::Timer);
            }
            Actor::Bus => self.bus_event(),
        }
        true
    }

    /// The next thing that the host learns.
    pub(crate) fn next_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    fn is_exposed(&self) -> bool {
        self.description.buffering == Buffering::Exposed
    }

    fn is_loop(&self) -> bool {
        self.far_end != FarEnd::Network
    }

    /// Resets the adapter, and with it the link: what it had is lost, all credits are given anew.
    fn reset(&mut self) {
        self.counts.resets += 1;
        self.generation += 1;
        self.counts.cells_reset += self.link.len() as u64;
        let quota = self.description.credits.as_ref().map(|_| self.description.receive.per_circuit);
        self.link.clear();
        self.payloads.clear();
        self.ready.clear();
        self.discard_received();
        self.engine = DmaEngine::new(&self.description);
        self.transmitter = Transmitter::new(
            CellSource::new(&self.description.link, quota),
            self.description.link.read_ahead,
        );
        self.remote = CellSource::new(&self.description.link, quota);
        self.receiver = Receiver::new(&self.description);
        self.interrupts = [InterruptLine::default(); 2];
        self.agenda.clear_adapter();
    }
}
