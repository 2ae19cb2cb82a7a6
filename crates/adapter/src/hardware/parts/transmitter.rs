//! The state of the transmitter, and cells on the link.

use std::collections::VecDeque;

use super::source::{CellSource, Outgoing};
use crate::clock::Picoseconds;

/// A cell or frame on the link.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct Cell {
    pub(in crate::hardware) circuit: u32,
    /// Bytes of the packet in it.
    pub(in crate::hardware) bytes: u32,
    /// The whole packet's bytes.
    pub(in crate::hardware) packet: u32,
    pub(in crate::hardware) is_last: bool,
    pub(in crate::hardware) is_damaged: bool,
}

/// Data that have come into the data memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) enum ReadyData {
    /// A packet, of which a part may follow.
    Packet { circuit: u32, packet: Outgoing },
    /// A part of the last packet of a circuit.
    Part { circuit: u32, bytes: u32 },
}

/// The transmitter.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct Transmitter {
    pub(in crate::hardware) source: CellSource,
    pub(in crate::hardware) is_scheduled: bool,
    /// The ends on the link of the cells that it has read ahead, as many as it may.
    pub(in crate::hardware) departures: VecDeque<Picoseconds>,
    pub(in crate::hardware) read_ahead: usize,
    /// The bytes of the FIFO of hidden buffers that are taken.
    pub(in crate::hardware) fifo: u32,
}

impl Transmitter {
    pub(in crate::hardware) fn new(source: CellSource, read_ahead: u32) -> Transmitter {
        let read_ahead = read_ahead as usize;
        Transmitter { source, is_scheduled: false, departures: VecDeque::new(), read_ahead, fifo: 0 }
    }

    pub(in crate::hardware) fn has_room(&self, bytes: u32, size: u32) -> bool {
        self.fifo == 0 || self.fifo + bytes <= size
    }

    pub(in crate::hardware) fn reserve(&mut self, bytes: u32) {
        self.fifo += bytes;
    }
}
