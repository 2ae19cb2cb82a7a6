//! The state of the receiver.

use std::collections::VecDeque;

use super::agenda::Delayed;
use super::buffers::{BufferList, ReceiveBuffers};
use crate::aal5::Reassembly;
use crate::clock::Picoseconds;
use crate::description::AdapterDescription;
use crate::hardware::command::PacketSummary;

/// The receiver.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct Receiver {
    pub(in crate::hardware) buffers: ReceiveBuffers,
    pub(in crate::hardware) circuits: Vec<CircuitReceiver>,
    pub(in crate::hardware) packets: Vec<Option<HeldPacket>>,
    pub(in crate::hardware) free_packets: Vec<u32>,
    /// Summaries for which the ring has no room.
    pub(in crate::hardware) waiting: VecDeque<PacketSummary>,
    pub(in crate::hardware) produced: u32,
    pub(in crate::hardware) consumer: u32,
    /// Credits on their way to the transmitter, and to the remote end: circuit and number.
    pub(in crate::hardware) credits_of_transmitter: Delayed<(u32, u32)>,
    pub(in crate::hardware) credits_of_remote: Delayed<(u32, u32)>,
    pub(in crate::hardware) next_credit: Picoseconds,
    /// Space for the circuits that recycling gives credits.
    pub(in crate::hardware) credited: Vec<u32>,
}

/// The state of a circuit's reception.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct CircuitReceiver {
    pub(in crate::hardware) list: BufferList,
    pub(in crate::hardware) reassembly: Reassembly,
    pub(in crate::hardware) cells: u32,
    pub(in crate::hardware) bytes: u32,
    pub(in crate::hardware) is_damaged: bool,
    /// Credits that wait for others of their batch.
    pub(in crate::hardware) owed: u32,
    /// Credits that were lost with their cells.
    pub(in crate::hardware) lost: u32,
}

impl CircuitReceiver {
    pub(in crate::hardware) fn new() -> CircuitReceiver {
        CircuitReceiver {
            list: BufferList::EMPTY,
            reassembly: Reassembly::default(),
            cells: 0,
            bytes: 0,
            is_damaged: false,
            owed: 0,
            lost: 0,
        }
    }

    /// Begins the next packet.
    pub(in crate::hardware) fn take_packet(&mut self) -> CircuitReceiver {
        let next = CircuitReceiver { owed: self.owed, lost: self.lost, ..CircuitReceiver::new() };
        std::mem::replace(self, next)
    }
}

/// A packet in receive buffers.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct HeldPacket {
    pub(in crate::hardware) circuit: u32,
    pub(in crate::hardware) list: BufferList,
    pub(in crate::hardware) bytes: u32,
}

/// A cell of a hidden buffer, or a part of one, on its way to host memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct CellToHost {
    pub(in crate::hardware) circuit: u32,
    pub(in crate::hardware) address: u64,
    pub(in crate::hardware) bytes: u32,
    /// The buffer that its end frees; none for a part that is not the last.
    pub(in crate::hardware) list: Option<BufferList>,
    /// The summary of the packet that it ends.
    pub(in crate::hardware) summary: Option<PacketSummary>,
}

impl Receiver {
    pub(in crate::hardware) fn new(description: &AdapterDescription) -> Receiver {
        let (receive, circuits) = (&description.receive, description.link.circuits);
        Receiver {
            buffers: ReceiveBuffers::new(receive.shared, receive.per_circuit, circuits),
            circuits: vec![CircuitReceiver::new(); circuits as usize],
            packets: Vec::new(),
            free_packets: Vec::new(),
            waiting: VecDeque::new(),
            produced: 0,
            consumer: 0,
            credits_of_transmitter: Delayed::new(),
            credits_of_remote: Delayed::new(),
            next_credit: 0,
            credited: Vec::new(),
        }
    }

    /// A cell is lost on the link, and with it its credit.
    pub(in crate::hardware) fn lose(&mut self, circuit: u32) {
        self.circuits[circuit as usize].lost += 1;
    }

    /// The bytes of a packet in buffers, if there is one of this number.
    pub(in crate::hardware) fn held_bytes(&self, packet: u32) -> Option<u32> {
        self.packets.get(packet as usize)?.map(|held| held.bytes)
    }

    /// Cells in buffers of packets, whole or not.
    pub(in crate::hardware) fn held_cells(&self) -> u32 {
        let whole: u32 = self.packets.iter().flatten().map(|held| held.list.cells).sum();
        whole + self.circuits.iter().map(|circuit| circuit.list.cells).sum::<u32>()
    }

    /// Credits of a circuit that wait for their batch, and lost ones.
    pub(in crate::hardware) fn owed_and_lost(&self, circuit: usize) -> u32 {
        self.circuits[circuit].owed + self.circuits[circuit].lost
    }
}
