//! A sender of cells: packets of each circuit in order, circuits in turn, one cell at a time, as credits allow.

use std::collections::VecDeque;

use crate::aal5::{self, Segmenter};
use crate::description::{Framing, LinkDescription};

/// A packet to send, or data that the transmitter divides into packets.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct Outgoing {
    /// The address of its bytes in the data memory.
    pub(in crate::hardware) address: u32,
    /// Its bytes.
    pub(in crate::hardware) bytes: u32,
    /// The bytes behind it that become packets of the same size.
    pub(in crate::hardware) rest: u32,
    /// The size of these packets.
    pub(in crate::hardware) packet_bytes: u32,
    /// The bytes that are in the data memory already.
    pub(in crate::hardware) available: u32,
    /// The bytes sent.
    sent: u32,
}

impl Outgoing {
    /// A packet, or several of a size.
    pub(in crate::hardware) fn new(address: u32, bytes: u32, packet_bytes: u32, available: u32) -> Outgoing {
        let first = if packet_bytes == 0 { bytes } else { packet_bytes.min(bytes) };
        Outgoing { address, bytes: first, rest: bytes - first, packet_bytes, available, sent: 0 }
    }
}

/// A cell or frame that leaves.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct SentUnit {
    pub(in crate::hardware) circuit: u32,
    /// Bytes of the packet in it.
    pub(in crate::hardware) bytes: u32,
    /// Their address in the data memory.
    pub(in crate::hardware) address: u32,
    /// The whole packet's bytes.
    pub(in crate::hardware) packet: u32,
    /// Those that no cell before had.
    pub(in crate::hardware) unsent: u32,
    pub(in crate::hardware) is_last: bool,
    /// Whether nothing of the command is left.
    pub(in crate::hardware) is_finished: bool,
}

#[derive(Clone, Debug)]
struct CircuitQueue {
    packets: VecDeque<Outgoing>,
    /// None without flow control.
    credits: Option<u32>,
    is_active: bool,
    segmenter: Segmenter,
}

/// The sender.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct CellSource {
    framing: Framing,
    unit: u32,
    circuits: Vec<CircuitQueue>,
    active: VecDeque<u32>,
    waiting: u64,
}

impl CellSource {
    pub(in crate::hardware) fn new(link: &LinkDescription, quota: Option<u32>) -> CellSource {
        let queue = CircuitQueue {
            packets: VecDeque::new(),
            credits: quota,
            is_active: false,
            segmenter: Segmenter::default(),
        };
        CellSource {
            framing: link.framing,
            unit: link.unit_payload() as u32,
            circuits: vec![queue; link.circuits as usize],
            active: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Appends a packet to a circuit's queue.
    pub(in crate::hardware) fn enqueue(&mut self, circuit: u32, packet: Outgoing) {
        self.circuits[circuit as usize].packets.push_back(packet);
        self.waiting += 1;
        self.activate(circuit);
    }

    /// Adds to the bytes of a circuit's last packet that are available.
    pub(in crate::hardware) fn feed(&mut self, circuit: u32, bytes: u32) {
        let queue = &mut self.circuits[circuit as usize];
        if let Some(packet) = queue.packets.back_mut() {
            packet.available += bytes;
        }
        self.activate(circuit);
    }

    /// Adds credits.
    pub(in crate::hardware) fn credit(&mut self, circuit: u32, credits: u32) {
        if let Some(had) = &mut self.circuits[circuit as usize].credits {
            *had += credits;
        }
        self.activate(circuit);
    }

    /// The credits of a circuit.
    pub(in crate::hardware) fn credits(&self, circuit: usize) -> u32 {
        self.circuits[circuit].credits.unwrap_or(0)
    }

    /// Whether a cell could leave.
    pub(in crate::hardware) fn is_ready(&self) -> bool {
        !self.active.is_empty()
    }

    /// Packets that have not left.
    pub(in crate::hardware) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The state of a circuit's segmentation.
    pub(in crate::hardware) fn segmenter(&mut self, circuit: u32) -> &mut Segmenter {
        &mut self.circuits[circuit as usize].segmenter
    }

    /// Takes the next cell.
    pub(in crate::hardware) fn take(&mut self) -> Option<SentUnit> {
        let circuit = self.active.pop_front()?;
        let queue = &mut self.circuits[circuit as usize];
        queue.is_active = false;
        if let Some(credits) = &mut queue.credits {
            *credits -= 1;
        }
        let packet = queue.packets.front_mut().expect("an active circuit has a packet");
        let unsent = packet.bytes - packet.sent;
        let bytes = unsent.min(self.unit);
        let is_last = match self.framing {
            Framing::Aal5 => unsent as usize + aal5::TRAILER <= aal5::CELL_PAYLOAD,
            Framing::Ethernet => bytes == unsent,
        };
        let address = packet.address + packet.sent;
        packet.sent += bytes;
        let mut unit =
            SentUnit { circuit, bytes, address, packet: packet.bytes, unsent, is_last, is_finished: false };
        if is_last && packet.rest > 0 {
            let available = packet.available - packet.bytes;
            *packet =
                Outgoing::new(packet.address + packet.bytes, packet.rest, packet.packet_bytes, available);
        } else if is_last {
            queue.packets.pop_front();
            self.waiting -= 1;
            unit.is_finished = true;
        }
        self.activate(circuit);
        Some(unit)
    }

    /// Puts a circuit in line, if it can send.
    fn activate(&mut self, circuit: u32) {
        let queue = &mut self.circuits[circuit as usize];
        let Some(packet) = queue.packets.front() else { return };
        let needed = (packet.sent + self.unit).min(packet.bytes);
        if !queue.is_active && packet.available >= needed && queue.credits != Some(0) {
            queue.is_active = true;
            self.active.push_back(circuit);
        }
    }
}
