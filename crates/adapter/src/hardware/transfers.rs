//! Transactions: what the host, the engine and other devices ask of the bus, and what follows when they end.

use super::command::{AdapterRegister, HostEvent};
use super::parts::agenda::Actor;
use super::parts::purpose::{AdapterPurpose, Purpose};
use super::{Hardware, Picoseconds};
use crate::clock::{NANOSECOND, NEVER};
use crate::interconnect::{BusTransaction, Master, TransactionKind};

/// The address of summaries and reports, by default outside of contents.
const SUMMARIES: u64 = 1 << 40;

impl Hardware {
    /// Reads a CSR. The program learns its value when the read has ended; the processor's later operations wait.
    pub fn read_register(&mut self, register: AdapterRegister) {
        self.counts.csr_reads += 1;
        let fetch = Picoseconds::from(self.description.target.csr_ns) * NANOSECOND;
        let fetch = if register == AdapterRegister::Cause { 0 } else { fetch };
        let purpose = Purpose::ReadRegister(register);
        self.request(Master::Host, TransactionKind::Read, 0, 4, fetch, purpose);
    }

    /// Writes a CSR; buffered behind the processor's operations before.
    pub fn write_register(&mut self, register: AdapterRegister, value: u32) {
        self.counts.csr_writes += 1;
        self.request(Master::Host, TransactionKind::Write, 0, 4, 0, Purpose::WriteRegister(register, value));
    }

    /// Writes bytes to the data memory by programmed I/O, in parts as the processor's write buffer combines them.
    pub fn programmed_write(&mut self, host: u64, adapter: u32, bytes: u32, tag: u32) {
        let most = self.description.target.write_bytes;
        for (offset, part, is_last) in parts(bytes, most) {
            let purpose = Purpose::WriteData {
                host: host + u64::from(offset),
                adapter: adapter.wrapping_add(offset),
                bytes: part,
                tag: is_last.then_some(tag),
            };
            let address = u64::from(adapter) + u64::from(offset);
            self.request(Master::Host, TransactionKind::Write, address, part, 0, purpose);
        }
    }

    /// Reads bytes of a packet by programmed I/O.
    pub fn programmed_read(&mut self, packet: u32, host: u64, bytes: u32, tag: u32) {
        let most = self.description.target.read_bytes;
        let fetch = Picoseconds::from(self.description.target.read_ns) * NANOSECOND;
        for (offset, part, is_last) in parts(bytes, most) {
            let host = host + u64::from(offset);
            let purpose =
                Purpose::ReadData { packet, offset, host, bytes: part, tag: is_last.then_some(tag) };
            self.request(Master::Host, TransactionKind::Read, offset.into(), part, fetch, purpose);
        }
    }

    /// Another device on the bus writes: to the adapter's data memory, or to host memory.
    pub fn peer_write(&mut self, bytes: u32, to_adapter: bool, tag: u32) {
        for (offset, part, is_last) in parts(bytes, self.description.dma.write_burst) {
            let purpose = Purpose::Peer { bytes: part, to_adapter, tag: is_last.then_some(tag) };
            self.request(Master::Peer, TransactionKind::Write, offset.into(), part, 0, purpose);
        }
    }

    /// Has the program told when a time has passed. There is one timer.
    pub fn wake_after(&mut self, duration: Picoseconds) {
        self.agenda.set(Actor::Host, self.now + duration);
    }

    /// The processor passes over bytes of host memory. Gives the time that it takes from now.
    pub fn pass_over_memory(&mut self, bytes: u64) -> Picoseconds {
        self.host_memory.access(self.now, bytes) - self.now
    }

    fn request(
        &mut self,
        master: Master,
        kind: TransactionKind,
        address: u64,
        bytes: u32,
        fetch: Picoseconds,
        purpose: Purpose,
    ) {
        let bus = &self.description.bus;
        let stall = match (kind, &purpose) {
            (TransactionKind::Read, Purpose::Adapter(..)) => bus.read_latency,
            (TransactionKind::Read, _) => bus.write_stall,
            (_, Purpose::Adapter(..) | Purpose::Peer { to_adapter: false, .. }) => {
                let merged = merged_lines(kind, address, bytes, bus.line);
                bus.write_stall + merged * bus.merge
            }
            _ => bus.write_stall,
        };
        let transaction = BusTransaction { kind, address, bytes, stall: stall.into(), fetch, purpose };
        self.bus.request(self.now, master, transaction);
        self.agenda.set(Actor::Bus, self.bus.next());
    }

    /// Requests a read of host memory for the adapter.
    pub(super) fn adapter_reads(&mut self, address: u64, bytes: u32, purpose: AdapterPurpose) {
        let purpose = Purpose::Adapter(self.generation, purpose);
        self.request(Master::Adapter, TransactionKind::Read, address, bytes, 0, purpose);
    }

    /// Requests a write of host memory for the adapter.
    pub(super) fn adapter_writes(&mut self, address: u64, bytes: u32, purpose: AdapterPurpose) {
        let line = u64::from(self.description.bus.line);
        let is_whole = address.is_multiple_of(line) && u64::from(bytes).is_multiple_of(line);
        let kind = match self.description.dma.write_invalidate && is_whole {
            true => TransactionKind::WriteInvalidate,
            false => TransactionKind::Write,
        };
        let purpose = Purpose::Adapter(self.generation, purpose);
        self.request(Master::Adapter, kind, address, bytes, 0, purpose);
    }

    pub(super) fn bus_event(&mut self) {
        let ended = self.bus.advance();
        if let Some(ended) = ended {
            let BusTransaction { kind, address, purpose, .. } = ended.transaction;
            match purpose {
                Purpose::ReadRegister(register) => {
                    if register == AdapterRegister::Cause {
                        self.cause_read();
                    }
                    let value = self.value(register);
                    self.events.push_back(HostEvent::Value(register, value));
                }
                Purpose::WriteRegister(register, value) => self.register_written(register, value),
                Purpose::WriteData { host, adapter, bytes, tag } => {
                    self.data_written(host, adapter, bytes, tag)
                }
                Purpose::ReadData { packet, offset, host, bytes, tag } => {
                    let duration = self.timing.data.duration(bytes.into());
                    self.data_memory.access(self.now, duration);
                    self.copy_to_contents(packet, offset, host, bytes);
                    self.moved(tag);
                }
                Purpose::Peer { bytes, to_adapter, tag } => {
                    if to_adapter {
                        let duration = self.timing.data.duration(bytes.into());
                        self.engine.stored = self.data_memory.access(self.now, duration);
                    } else {
                        self.host_memory_written(kind, address, bytes);
                    }
                    self.moved(tag);
                }
                Purpose::Adapter(generation, purpose) => {
                    self.adapter_transaction(kind, address, purpose, generation == self.generation);
                }
            }
        }
        self.agenda.set(Actor::Bus, self.bus.next());
    }

    /// Ends one of the adapter's own transactions, which may be of before a reset.
    fn adapter_transaction(
        &mut self,
        kind: TransactionKind,
        address: u64,
        purpose: AdapterPurpose,
        is_present: bool,
    ) {
        match purpose {
            AdapterPurpose::FetchCommands { number, .. } => {
                self.host_memory.access(self.now, u64::from(number * self.description.dma.command));
            }
            AdapterPurpose::ReadHost { bytes, .. } => {
                self.host_memory.access(self.now, bytes.into());
            }
            AdapterPurpose::WriteHost { bytes } => self.host_memory_written(kind, address, bytes),
            AdapterPurpose::WriteCell(cell) => self.host_memory_written(kind, address, cell.bytes),
            AdapterPurpose::Summary(_) => {
                self.host_memory_written(kind, address, self.description.receive.summary);
            }
            AdapterPurpose::Report(_) => self.host_memory_written(kind, address, 4),
        }
        if !is_present {
            return;
        }
        match purpose {
            AdapterPurpose::FetchCommands { first, number } => self.commands_fetched(first, number),
            AdapterPurpose::ReadHost { host, adapter, bytes } => self.host_read(host, adapter, bytes),
            AdapterPurpose::WriteHost { bytes } => self.host_written(bytes),
            AdapterPurpose::WriteCell(cell) => self.cell_written(cell),
            AdapterPurpose::Summary(summary) => {
                self.events.push_back(HostEvent::Summary(summary));
                self.raise(0);
            }
            AdapterPurpose::Report(command) => self.command_executed(command),
        }
    }

    fn moved(&mut self, tag: Option<u32>) {
        if let Some(tag) = tag {
            self.events.push_back(HostEvent::Moved(tag));
        }
    }

    /// Counts what a write does to host memory: lines that are not written as a whole are read first.
    fn host_memory_written(&mut self, kind: TransactionKind, address: u64, bytes: u32) {
        let line = self.description.bus.line;
        let merged = merged_lines(kind, address, bytes, line);
        if merged == 0 {
            self.counts.whole_lines += u64::from(bytes / line);
        }
        self.counts.merged_lines += u64::from(merged);
        self.host_memory.access(self.now, u64::from(bytes) + u64::from(merged * line));
    }

    fn data_written(&mut self, host: u64, adapter: u32, bytes: u32, tag: Option<u32>) {
        let duration = self.timing.data.duration(bytes.into());
        self.engine.stored = self.data_memory.access(self.now, duration);
        if self.is_in_send_memory(adapter, bytes) {
            self.copy_from_contents(host, adapter, bytes);
        } else {
            self.counts.command_errors += 1;
        }
        self.moved(tag);
    }

    fn value(&self, register: AdapterRegister) -> u32 {
        match register {
            AdapterRegister::CommandConsumer => self.engine.consumer(),
            AdapterRegister::CommandProducer => self.engine.producer(),
            _ => 0,
        }
    }

    fn register_written(&mut self, register: AdapterRegister, value: u32) {
        match register {
            AdapterRegister::CommandProducer => self.commands_produced(value),
            AdapterRegister::SummaryConsumer => self.summaries_consumed(value),
            AdapterRegister::FirstHoldoff => self.hold_off(0, value),
            AdapterRegister::SecondHoldoff => self.hold_off(1, value),
            AdapterRegister::Reset => self.reset(),
            AdapterRegister::Cause | AdapterRegister::CommandConsumer | AdapterRegister::Other => {}
        }
    }

    /// The address in host memory of something that no program looks at by its address.
    pub(super) fn summary_address(&self, index: u32) -> u64 {
        SUMMARIES + u64::from(index) * u64::from(self.description.receive.summary)
    }

    pub(super) fn set_or_never(&mut self, actor: Actor, time: Option<Picoseconds>) {
        self.agenda.set(actor, time.unwrap_or(NEVER));
    }
}

/// The lines that the bridge must read before it writes: all that are not written as a whole, or not said to be.
fn merged_lines(kind: TransactionKind, address: u64, bytes: u32, line: u32) -> u32 {
    let line = u64::from(line);
    match kind {
        TransactionKind::WriteInvalidate => 0,
        _ => ((address + u64::from(bytes)).div_ceil(line) - address / line) as u32,
    }
}

/// Parts of a transfer: the offset of each, its bytes, and whether it is the last one.
fn parts(bytes: u32, most: u32) -> impl Iterator<Item = (u32, u32, bool)> {
    (0..bytes).step_by(most as usize).map(move |offset| {
        let part = most.min(bytes - offset);
        (offset, part, offset + part == bytes)
    })
}
