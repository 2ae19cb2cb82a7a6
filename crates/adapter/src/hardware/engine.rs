//! The DMA engine: reads commands of a ring in host memory, and executes them one after another.

use super::command::{DmaCommand, HostEvent};
use super::parts::agenda::Actor;
use super::parts::engine::{EngineJob, FetchedData};
use super::parts::purpose::AdapterPurpose;
use super::parts::source::Outgoing;
use super::parts::transmitter::ReadyData;
use super::{Hardware, Picoseconds};
use crate::aal5;

/// The address of the command ring in host memory.
const RING: u64 = 1 << 42;
/// The end of host memory in runs without contents.
const HOST_MEMORY: u64 = 1 << 40;

impl Hardware {
    /// Writes a command to the ring in host memory; false if the ring has no such index.
    pub fn write_command(&mut self, index: u32, command: DmaCommand) -> bool {
        let slot = self.engine.ring.get_mut(index as usize);
        slot.map(|slot| *slot = Some(command)).is_some()
    }

    /// The host has written the index behind the last command. One that the ring does not have is an error, and ignored.
    pub(super) fn commands_produced(&mut self, producer: u32) {
        if producer >= self.description.dma.ring {
            self.counts.command_errors += 1;
            return;
        }
        self.engine.producer = producer;
        self.read_commands();
    }

    fn read_commands(&mut self) {
        let (ring, fetch) = (self.description.dma.ring, self.description.dma.fetch);
        let engine = &mut self.engine;
        if engine.is_reading || engine.unread == engine.producer || engine.commands.len() >= fetch as usize {
            return;
        }
        engine.is_reading = true;
        let first = engine.unread;
        let end = if engine.producer > first { engine.producer } else { ring };
        let number = fetch.min(end - first);
        let size = self.description.dma.command;
        let address = RING + u64::from(first) * u64::from(size);
        self.adapter_reads(address, number * size, AdapterPurpose::FetchCommands { first, number });
    }

    pub(super) fn commands_fetched(&mut self, first: u32, number: u32) {
        let engine = &mut self.engine;
        engine.is_reading = false;
        let read = first as usize..(first + number) as usize;
        engine.commands.extend(&engine.ring[read]);
        engine.unread = (first + number) % self.description.dma.ring;
        self.run_engine();
    }

    /// Begins commands until one takes time.
    fn run_engine(&mut self) {
        while self.engine.job.is_none() {
            let Some(command) = self.engine.commands.pop_front() else { break };
            let begun = command.filter(|command| self.is_possible(command));
            match begun {
                Some(command) => self.begin(command),
                None => {
                    self.counts.command_errors += 1;
                    self.advance_consumer();
                }
            }
        }
        self.read_commands();
    }

    fn advance_consumer(&mut self) {
        self.engine.consumer = (self.engine.consumer + 1) % self.description.dma.ring;
    }

    /// Whether a command can be executed. The ring is the host's: nothing in it is trusted.
    fn is_possible(&self, command: &DmaCommand) -> bool {
        let exposed = self.is_exposed();
        let circuit_exists = |circuit: u32| circuit < self.description.link.circuits;
        match *command {
            DmaCommand::CopyToAdapter { host, adapter, bytes } => {
                exposed && self.is_in_send_memory(adapter, bytes) && self.is_in_host_memory(host, bytes)
            }
            DmaCommand::Transmit { circuit, adapter, bytes, packet_bytes } => {
                let packet = if packet_bytes == 0 { bytes } else { packet_bytes };
                let is_packet = packet as usize <= aal5::LONGEST;
                exposed && circuit_exists(circuit) && is_packet && self.is_in_send_memory(adapter, bytes)
            }
            DmaCommand::Send { circuit, host, bytes } => {
                let is_packet = (1..=aal5::LONGEST).contains(&(bytes as usize));
                !exposed && circuit_exists(circuit) && is_packet && self.is_in_host_memory(host, bytes)
            }
            DmaCommand::CopyToHost { packet, offset, host, bytes } => {
                let held = self.receiver.held_bytes(packet);
                let is_inside =
                    offset.checked_add(bytes).is_some_and(|end| held.is_some_and(|held| end <= held));
                exposed && bytes > 0 && is_inside && self.is_in_host_memory(host, bytes)
            }
            DmaCommand::Recycle { packet } => exposed && self.receiver.held_bytes(packet).is_some(),
            DmaCommand::Report => true,
        }
    }

    /// Whether bytes, one at least, lie in the part of the data memory that packets to send may use.
    pub(super) fn is_in_send_memory(&self, adapter: u32, bytes: u32) -> bool {
        bytes > 0 && adapter.checked_add(bytes).is_some_and(|end| end <= self.description.send_memory())
    }

    fn is_in_host_memory(&self, host: u64, bytes: u32) -> bool {
        let size = self.contents.as_ref().map_or(HOST_MEMORY, |contents| contents.host.len() as u64);
        host.checked_add(bytes.into()).is_some_and(|end| end <= size)
    }

    fn begin(&mut self, command: DmaCommand) {
        let mut job = EngineJob { command, host: 0, adapter: 0, unrequested: 0, unfinished: 0, under_way: 0 };
        let ready = self.engine.stored.max(self.now);
        match command {
            DmaCommand::CopyToAdapter { host, adapter, bytes } => {
                job = EngineJob { host, adapter, unrequested: bytes, unfinished: bytes, ..job };
            }
            DmaCommand::CopyToHost { host, offset, bytes, .. } => {
                job = EngineJob { host, adapter: offset, unrequested: bytes, unfinished: bytes, ..job };
            }
            DmaCommand::Send { circuit, host, bytes } => {
                job = EngineJob { host, unrequested: bytes, unfinished: bytes, ..job };
                let packet = Outgoing::new(0, bytes, 0, 0);
                self.push_ready(self.now, ReadyData::Packet { circuit, packet });
            }
            DmaCommand::Transmit { circuit, adapter, bytes, packet_bytes } => {
                let packet = Outgoing::new(adapter, bytes, packet_bytes, bytes);
                self.push_ready(ready, ReadyData::Packet { circuit, packet });
                return self.command_executed(command);
            }
            DmaCommand::Recycle { packet } => {
                self.recycle(packet);
                return self.command_executed(command);
            }
            DmaCommand::Report => {
                self.engine.job = Some(job);
                return self.adapter_writes(RING, 4, AdapterPurpose::Report(command));
            }
        }
        self.engine.job = Some(job);
        self.go_on();
    }

    /// A command was executed. The caller begins the next one, unless the command took time.
    pub(super) fn command_executed(&mut self, command: DmaCommand) {
        self.counts.commands += 1;
        self.advance_consumer();
        self.events.push_back(HostEvent::Executed(command));
        if self.engine.job.take().is_some() {
            if matches!(command, DmaCommand::CopyToHost { .. }) {
                self.raise(1);
            }
            self.run_engine();
        }
    }

    /// Requests the transactions that the present command may have under way.
    pub(super) fn go_on(&mut self) {
        let Some(mut job) = self.engine.job else { return };
        let dma = &self.description.dma;
        let (most, burst) = match job.command {
            DmaCommand::CopyToHost { .. } => (dma.prefetch, dma.write_burst),
            _ => (dma.reads, dma.read_burst),
        };
        while job.under_way < most && job.unrequested > 0 {
            let bytes = match job.command {
                DmaCommand::CopyToHost { packet, .. } => {
                    let bytes = job.unrequested.min(burst - (job.host % u64::from(burst)) as u32);
                    let duration = self.timing.data.duration(bytes.into());
                    let fetched = self.data_memory.access(self.now, duration);
                    self.copy_to_contents(packet, job.adapter, job.host, bytes);
                    self.push_fetched(fetched, FetchedData::Burst { host: job.host, bytes });
                    bytes
                }
                DmaCommand::Send { .. } => {
                    let bytes = job.unrequested.min(burst);
                    if !self.transmitter.has_room(bytes, self.description.send_memory()) {
                        break;
                    }
                    self.transmitter.reserve(bytes);
                    self.adapter_reads(
                        job.host,
                        bytes,
                        AdapterPurpose::ReadHost { host: 0, adapter: 0, bytes },
                    );
                    bytes
                }
                _ => {
                    let bytes = job.unrequested.min(burst);
                    let purpose = AdapterPurpose::ReadHost { host: job.host, adapter: job.adapter, bytes };
                    self.adapter_reads(job.host, bytes, purpose);
                    bytes
                }
            };
            job.host += u64::from(bytes);
            job.adapter += bytes;
            job.unrequested -= bytes;
            job.under_way += 1;
        }
        self.engine.job = Some(job);
    }

    /// Data of host memory have come over the bus.
    pub(super) fn host_read(&mut self, host: u64, adapter: u32, bytes: u32) {
        let Some(EngineJob { command, .. }) = self.engine.job else { return };
        let duration = self.timing.data.duration(bytes.into());
        self.engine.stored = self.data_memory.access(self.now, duration);
        match command {
            DmaCommand::Send { circuit, .. } => {
                self.push_ready(self.engine.stored, ReadyData::Part { circuit, bytes });
            }
            _ => self.copy_from_contents(host, adapter, bytes),
        }
        self.part_finished(bytes);
    }

    /// Data have reached host memory.
    pub(super) fn host_written(&mut self, bytes: u32) {
        self.part_finished(bytes);
    }

    fn part_finished(&mut self, bytes: u32) {
        let Some(job) = &mut self.engine.job else { return };
        job.unfinished -= bytes;
        job.under_way -= 1;
        let command = job.command;
        match job.unfinished {
            0 => self.command_executed(command),
            _ => self.go_on(),
        }
    }

    pub(super) fn push_fetched(&mut self, time: Picoseconds, data: FetchedData) {
        self.engine.fetched.push(time, data);
        self.agenda.set(Actor::Fetched, self.engine.fetched.due());
    }

    /// Data have left the data memory: they go over the bus.
    pub(super) fn fetched(&mut self) {
        let data = self.engine.fetched.pop();
        self.agenda.set(Actor::Fetched, self.engine.fetched.due());
        match data {
            Some(FetchedData::Burst { host, bytes }) => {
                self.adapter_writes(host, bytes, AdapterPurpose::WriteHost { bytes });
            }
            Some(FetchedData::Cell(cell)) => self.write_cell(cell),
            Some(FetchedData::Summary(summary)) => self.summarize(summary),
            None => {}
        }
    }

    fn push_ready(&mut self, time: Picoseconds, data: ReadyData) {
        self.ready.push(time, data);
        self.agenda.set(Actor::Ready, self.ready.due());
    }

    pub(super) fn copy_from_contents(&mut self, host: u64, adapter: u32, bytes: u32) {
        if let Some(contents) = &mut self.contents
            && host.checked_add(bytes.into()).is_some_and(|end| end <= contents.host.len() as u64)
        {
            contents.copy_in(host, adapter, bytes);
        }
    }
}
