//! The transmitter: cells of packets in the data memory, in slots of the link.

use super::command::HostEvent;
use super::parts::agenda::Actor;
use super::parts::source::{Outgoing, SentUnit};
use super::parts::transmitter::{Cell, ReadyData};
use super::{FarEnd, Hardware, Picoseconds};
use crate::clock::NEVER;
use crate::description::Framing;
use crate::faults::CellFate;

impl Hardware {
    pub(super) fn data_ready(&mut self) {
        match self.ready.pop() {
            Some(ReadyData::Packet { circuit, packet }) => self.transmitter.source.enqueue(circuit, packet),
            Some(ReadyData::Part { circuit, bytes }) => self.transmitter.source.feed(circuit, bytes),
            None => {}
        }
        self.agenda.set(Actor::Ready, self.ready.due());
        self.schedule_slot();
    }

    pub(super) fn schedule_slot(&mut self) {
        let transmitter = &mut self.transmitter;
        if transmitter.source.is_ready() && !transmitter.is_scheduled {
            transmitter.is_scheduled = true;
            // A cell may be read as soon as one that was read before has left.
            let is_full = transmitter.departures.len() == transmitter.read_ahead;
            let free = transmitter.departures.front().filter(|_| is_full).copied().unwrap_or(0);
            self.agenda.set(Actor::Slot, free.max(self.now));
        }
    }

    /// The time of a cell or frame on the link.
    pub(super) fn slot(&self, bytes: u32) -> Picoseconds {
        match self.description.link.framing {
            Framing::Aal5 => self.timing.slot,
            Framing::Ethernet => {
                (u64::from(self.description.link.unit_bytes(bytes) * 8) * self.timing.bit) >> 10
            }
        }
    }

    pub(super) fn send_cell(&mut self) {
        self.transmitter.is_scheduled = false;
        self.agenda.set(Actor::Slot, NEVER);
        let Some(unit) = self.transmitter.source.take() else { return };
        self.counts.cells_transmitted += 1;
        let slot = self.slot(unit.bytes);
        let access = match self.description.link.framing {
            Framing::Aal5 => self.timing.cell_access,
            Framing::Ethernet => self.timing.data.duration(unit.bytes.into()),
        };
        let known = self.control_memory.access(self.now, self.timing.control_transmit);
        let read = self.data_memory.access(known, access);
        let transmitter = &mut self.transmitter;
        // The link sends a cell that was read, behind the one before.
        let departed = read.max(transmitter.departures.back().copied().unwrap_or(0)) + slot;
        if transmitter.departures.len() == transmitter.read_ahead {
            transmitter.departures.pop_front();
        }
        transmitter.departures.push_back(departed);
        self.finish_transmission(&unit);
        if !self.is_exposed() {
            self.transmitter.fifo -= unit.bytes;
            self.go_on();
        }
        self.schedule_slot();
        match self.far_end {
            FarEnd::Network => self.leave(&unit, departed),
            FarEnd::Loop | FarEnd::LoopWithContents(_) => self.put_on_link(&unit, departed),
        }
    }

    fn finish_transmission(&mut self, unit: &SentUnit) {
        if unit.is_last {
            self.counts.packets_sent += 1;
            self.counts.bytes_sent += u64::from(unit.packet);
        }
        if unit.is_finished {
            self.events.push_back(HostEvent::Transmitted);
            self.raise(1);
        }
    }

    /// A cell goes to another system, which forwards it at once.
    fn leave(&mut self, unit: &SentUnit, departed: Picoseconds) {
        if self.description.credits.is_some() {
            let returned = departed + 2 * self.timing.delay + self.timing.slot;
            self.receiver.credits_of_transmitter.push(returned, (unit.circuit, 1));
            self.schedule_credits();
        }
    }

    /// A cell that will come back, or comes from the remote end.
    fn put_on_link(&mut self, unit: &SentUnit, departed: Picoseconds) {
        self.counts.cells_sent += 1;
        let fate = self.faults.next();
        let mut cell = Cell {
            circuit: unit.circuit,
            bytes: unit.bytes,
            packet: unit.packet,
            is_last: unit.is_last,
            is_damaged: fate != CellFate::Arrives,
        };
        if let Some(contents) = &self.contents {
            let segmenter = self.transmitter.source.segmenter(unit.circuit);
            let (mut payload, _, is_last) =
                segmenter.next(contents.sent(unit.address, unit.unsent), unit.packet as usize);
            debug_assert_eq!(is_last, unit.is_last);
            if let CellFate::Damaged(bit) = fate {
                let bit = usize::from(bit) % (payload.len() * 8);
                payload[bit / 8] ^= 1 << (bit % 8);
            }
            if fate != CellFate::Lost {
                self.payloads.push_back(payload);
            }
            // The CRC finds out.
            cell.is_damaged = false;
        }
        if fate == CellFate::Lost {
            self.counts.cells_lost += 1;
            return self.receiver.lose(unit.circuit);
        }
        self.link.push(departed + self.timing.delay, cell);
        self.agenda.set(Actor::Arrival, self.link.due());
    }

    /// Has the remote end send a packet.
    pub fn remote_send(&mut self, circuit: u32, bytes: u32) {
        if circuit >= self.description.link.circuits || bytes == 0 {
            self.counts.command_errors += 1;
            return;
        }
        self.remote.enqueue(circuit, Outgoing::new(0, bytes, 0, bytes));
        self.schedule_remote();
    }

    /// The time from the beginning of a packet of the remote end to the next one's, if they could come faster.
    pub fn set_remote_interval(&mut self, interval: Picoseconds) {
        self.remote_interval = interval;
    }

    /// Packets that the remote end has not sent yet.
    pub fn remote_waiting(&self) -> u64 {
        self.remote.waiting()
    }

    pub(super) fn schedule_remote(&mut self) {
        let time = self.remote.is_ready().then(|| self.next_remote.max(self.now));
        self.set_or_never(Actor::Remote, time);
    }

    pub(super) fn remote_cell(&mut self) {
        if let Some(unit) = self.remote.take() {
            if unit.unsent == unit.packet {
                self.remote_began = self.now;
            }
            let departed = self.now + self.slot(unit.bytes);
            let begins = if unit.is_last { self.remote_began + self.remote_interval } else { 0 };
            self.next_remote = departed.max(begins);
            self.put_on_link(&unit, departed);
        }
        self.schedule_remote();
    }
}

impl crate::description::LinkDescription {
    /// The bytes on the link of a cell or frame.
    pub(crate) fn unit_bytes(&self, payload: u32) -> u32 {
        /// Preamble, header, check sequence and gap.
        const AROUND_FRAME: u32 = 8 + 14 + 4 + 12;
        const SHORTEST_FRAME: u32 = 46;
        match self.framing {
            Framing::Aal5 => crate::aal5::CELL as u32,
            Framing::Ethernet => payload.max(SHORTEST_FRAME) + AROUND_FRAME,
        }
    }

    /// The cells or frames of a packet.
    pub fn units(&self, bytes: u32) -> u32 {
        match self.framing {
            Framing::Aal5 => crate::aal5::cells(bytes as usize) as u32,
            Framing::Ethernet => bytes.div_ceil(self.unit_payload() as u32).max(1),
        }
    }
}
