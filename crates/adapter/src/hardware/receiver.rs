//! The receiver: reassembles packets, gives credits, and writes summaries.

use super::command::{PacketStatus, PacketSummary};
use super::parts::agenda::Actor;
use super::parts::buffers::BufferList;
use super::parts::engine::FetchedData;
use super::parts::purpose::AdapterPurpose;
use super::parts::receiver::{CellToHost, CircuitReceiver, HeldPacket};
use super::parts::transmitter::Cell;
use super::{Hardware, Picoseconds};
use crate::aal5::{self, CELL_PAYLOAD};
use crate::description::Framing;

/// The address of hidden buffers in host memory: a kernel buffer for each circuit.
const KERNEL_BUFFERS: u64 = 1 << 43;

impl Hardware {
    pub(super) fn receive_cell(&mut self) {
        let Some(cell) = self.link.pop() else { return };
        self.agenda.set(Actor::Arrival, self.link.due());
        let payload = self.payloads.pop_front();
        self.counts.cells_received += 1;
        let known = self.control_memory.access(self.now, self.timing.control_receive);
        let Some((buffer, is_shared)) = self.receiver.buffers.take(cell.circuit) else {
            self.counts.cells_dropped += 1;
            self.receiver.circuits[cell.circuit as usize].is_damaged = true;
            if cell.is_last {
                // The packet is known to be damaged; its end is not lost on the next one.
                self.abandon(cell.circuit);
            }
            return;
        };
        let access = match self.description.link.framing {
            Framing::Aal5 => self.timing.cell_access,
            Framing::Ethernet => self.timing.data.duration(cell.bytes.into()),
        };
        let stored = self.data_memory.access(known, access);
        if is_shared && self.description.credits.is_some() {
            self.give_credit(cell.circuit);
        }
        let is_exposed = self.is_exposed();
        let circuit = &mut self.receiver.circuits[cell.circuit as usize];
        circuit.cells += 1;
        circuit.bytes += cell.bytes;
        circuit.is_damaged |= cell.is_damaged;
        if let (Some(payload), Some(contents)) = (payload, &mut self.contents) {
            *contents.buffer(buffer) = payload;
            if !cell.is_last {
                circuit.reassembly.add(&payload);
            }
        }
        if !is_exposed {
            return self.pass_on(cell, buffer, stored);
        }
        self.receiver.buffers.append(&mut circuit.list, buffer);
        if cell.is_last {
            let sum = self.verify(&cell, payload.as_ref());
            self.finish_packet(&cell, sum, stored);
        } else if circuit.list.cells as usize > aal5::cells(aal5::LONGEST) {
            self.abandon(cell.circuit);
        }
    }

    /// Verifies a packet at its last cell. Gives the sum of its payloads, or an error.
    fn verify(&self, cell: &Cell, payload: Option<&aal5::CellPayload>) -> Option<u16> {
        let circuit = &self.receiver.circuits[cell.circuit as usize];
        if let Some(payload) = payload {
            let (bytes, sum) = circuit.reassembly.finish(payload).ok()?;
            return (!circuit.is_damaged && bytes == cell.packet as usize).then_some(sum);
        }
        let is_whole = circuit.cells == self.description.link.units(cell.packet);
        (is_whole && !circuit.is_damaged).then_some(0)
    }

    /// The summary of a packet that is complete.
    fn summary(&mut self, cell: &Cell, sum: Option<u16>, packet: Option<u32>, damaged: u32) -> PacketSummary {
        match sum {
            Some(_) => {
                self.counts.packets_received += 1;
                self.counts.bytes_received += u64::from(cell.packet);
            }
            None => self.counts.packets_damaged += 1,
        }
        let status = if sum.is_some() { PacketStatus::Good } else { PacketStatus::Damaged };
        let bytes = if sum.is_some() { cell.packet } else { damaged };
        PacketSummary { packet, circuit: cell.circuit, bytes, status, sum: sum.unwrap_or(0) }
    }

    /// Keeps a packet, and summarizes it as soon as its first bytes were read again.
    fn finish_packet(&mut self, cell: &Cell, sum: Option<u16>, stored: Picoseconds) {
        let CircuitReceiver { list, cells, .. } = self.receiver.circuits[cell.circuit as usize].take_packet();
        let receiver = &mut self.receiver;
        let number = receiver.free_packets.pop().unwrap_or_else(|| {
            receiver.packets.push(None);
            receiver.packets.len() as u32 - 1
        });
        let size = cells * self.description.link.unit_payload() as u32;
        receiver.packets[number as usize] = Some(HeldPacket { circuit: cell.circuit, list, bytes: size });
        let summary = self.summary(cell, sum, Some(number), size);
        let bytes = self.description.receive.summary.min(size);
        let read = self.data_memory.access(stored, self.timing.data.duration(bytes.into()));
        self.push_fetched(read, FetchedData::Summary(summary));
    }

    /// A cell of a hidden buffer goes on to host memory.
    fn pass_on(&mut self, cell: Cell, buffer: u32, stored: Picoseconds) {
        let circuit = &self.receiver.circuits[cell.circuit as usize];
        let offset = circuit.bytes - cell.bytes;
        let mut list = BufferList::EMPTY;
        self.receiver.buffers.append(&mut list, buffer);
        let summary = cell.is_last.then(|| {
            let sum = self.verify(&cell, None);
            let ended = self.receiver.circuits[cell.circuit as usize].take_packet();
            self.summary(&cell, sum, None, ended.bytes)
        });
        let unit = self.description.link.unit_payload() as u32;
        // A cell is written as a whole: padding and trailer are not told apart.
        let bytes = if unit as usize == CELL_PAYLOAD { unit } else { cell.bytes };
        let address = KERNEL_BUFFERS + (u64::from(cell.circuit) << 20) + u64::from(offset);
        let passed = CellToHost { circuit: cell.circuit, address, bytes, list: Some(list), summary };
        self.push_fetched(stored, FetchedData::Cell(passed));
    }

    /// Writes a cell of a hidden buffer to host memory, in bursts.
    pub(super) fn write_cell(&mut self, cell: CellToHost) {
        let burst = self.description.dma.write_burst;
        let (mut address, mut rest) = (cell.address, cell.bytes);
        while rest > 0 {
            let bytes = rest.min(burst - (address % u64::from(burst)) as u32);
            rest -= bytes;
            let part = match rest {
                0 => CellToHost { bytes, ..cell },
                _ => CellToHost { bytes, list: None, summary: None, ..cell },
            };
            self.adapter_writes(address, bytes, AdapterPurpose::WriteCell(part));
            address += u64::from(bytes);
        }
    }

    pub(super) fn cell_written(&mut self, cell: CellToHost) {
        if let Some(list) = cell.list {
            self.counts.cells_recycled += u64::from(list.cells);
            self.receiver.buffers.recycle(cell.circuit, list, |_| {});
        }
        if let Some(summary) = cell.summary {
            self.summarize(summary);
        }
    }

    /// Writes a summary, if the ring has room.
    pub(super) fn summarize(&mut self, summary: PacketSummary) {
        self.receiver.waiting.push_back(summary);
        self.write_summaries();
    }

    fn write_summaries(&mut self) {
        let ring = self.description.receive.ring;
        while (self.receiver.produced + 1) % ring != self.receiver.consumer {
            let Some(summary) = self.receiver.waiting.pop_front() else { return };
            let index = self.receiver.produced;
            self.receiver.produced = (index + 1) % ring;
            let address = self.summary_address(index);
            let bytes = self.description.receive.summary;
            self.adapter_writes(address, bytes, AdapterPurpose::Summary(summary));
        }
    }

    /// The host has processed summaries up to an index. One that the ring does not have is an error, and ignored.
    pub(super) fn summaries_consumed(&mut self, consumer: u32) {
        if consumer >= self.description.receive.ring {
            self.counts.command_errors += 1;
            return;
        }
        self.receiver.consumer = consumer;
        self.write_summaries();
    }

    /// Frees the buffers of a packet.
    pub(super) fn recycle(&mut self, packet: u32) {
        let Some(held) = self.receiver.packets[packet as usize].take() else { return };
        self.receiver.free_packets.push(packet);
        self.counts.cells_recycled += u64::from(held.list.cells);
        self.free_list(held.circuit, held.list);
    }

    /// Frees the cells of a packet that cannot become whole.
    fn abandon(&mut self, circuit: u32) {
        let ended = self.receiver.circuits[circuit as usize].take_packet();
        self.counts.packets_damaged += 1;
        self.counts.cells_discarded += u64::from(ended.list.cells);
        self.free_list(circuit, ended.list);
    }

    fn free_list(&mut self, circuit: u32, list: BufferList) {
        let mut credited = std::mem::take(&mut self.receiver.credited);
        self.receiver.buffers.recycle(circuit, list, |circuit| credited.push(circuit));
        if self.description.credits.is_some() {
            credited.iter().for_each(|&circuit| self.give_credit(circuit));
        }
        credited.clear();
        self.receiver.credited = credited;
    }

    /// A reset frees all buffers.
    pub(super) fn discard_received(&mut self) {
        self.counts.cells_discarded += u64::from(self.receiver.buffers.used());
    }

    /// Gives a credit for a circuit back, when those of its batch are together: alone it takes the place of a field in a cell
    /// that passes, several of them have a cell of their own. Each takes a slot of the link back.
    fn give_credit(&mut self, circuit: u32) {
        let Some(credits) = &self.description.credits else { return };
        let owed = &mut self.receiver.circuits[circuit as usize].owed;
        *owed += 1;
        if *owed < credits.batch {
            return;
        }
        let number = std::mem::take(owed);
        self.counts.credit_messages += 1;
        self.control_memory.access(self.now, self.timing.control_credit);
        let slot = self.timing.slot;
        let left = self.receiver.next_credit.max(self.now) + slot;
        self.receiver.next_credit = left;
        let is_loop = self.is_loop();
        let receiver = &mut self.receiver;
        let queue =
            if is_loop { &mut receiver.credits_of_transmitter } else { &mut receiver.credits_of_remote };
        queue.push(left + self.timing.delay, (circuit, number));
        self.schedule_credits();
    }

    pub(super) fn schedule_credits(&mut self) {
        let receiver = &self.receiver;
        let due = receiver.credits_of_transmitter.due().min(receiver.credits_of_remote.due());
        self.agenda.set(Actor::Credit, due);
    }

    pub(super) fn receive_credits(&mut self) {
        let receiver = &mut self.receiver;
        let is_of_transmitter = receiver.credits_of_transmitter.due() <= receiver.credits_of_remote.due();
        match is_of_transmitter {
            true => {
                if let Some((circuit, number)) = receiver.credits_of_transmitter.pop() {
                    self.control_memory.access(self.now, self.timing.control_credit);
                    self.transmitter.source.credit(circuit, number);
                    self.schedule_slot();
                }
            }
            false => {
                if let Some((circuit, number)) = receiver.credits_of_remote.pop() {
                    self.remote.credit(circuit, number);
                    self.schedule_remote();
                }
            }
        }
        self.schedule_credits();
    }

    /// Copies bytes of a packet in buffers to the host's contents.
    pub(super) fn copy_to_contents(&mut self, packet: u32, offset: u32, host: u64, bytes: u32) {
        let Some(contents) = &mut self.contents else { return };
        let Some(Some(held)) = self.receiver.packets.get(packet as usize) else { return };
        let payload = CELL_PAYLOAD as u32;
        let end = offset.saturating_add(bytes);
        if end > held.list.cells * payload || host.saturating_add(bytes.into()) > contents.host.len() as u64 {
            return;
        }
        let buffers = &self.receiver.buffers;
        let mut buffer = buffers.nth(&held.list, offset / payload);
        let (mut at, mut to) = (offset % payload, host as usize);
        let mut rest = bytes;
        while rest > 0 {
            let part = rest.min(payload - at) as usize;
            let cell = *contents.buffer(buffer);
            contents.host[to..to + part].copy_from_slice(&cell[at as usize..at as usize + part]);
            to += part;
            rest -= part as u32;
            at = 0;
            buffer = buffers.following(buffer);
        }
    }
}
