//! Memories, which serve accesses in order, and what packets contain.

use crate::aal5::{CELL_PAYLOAD, CellPayload};
use crate::clock::{HardwareClock, Picoseconds};
use crate::description::{AdapterDescription, DataMemoryDescription};

/// A memory's only port.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::hardware) struct MemoryPort {
    free: Picoseconds,
    busy: Picoseconds,
}

impl MemoryPort {
    /// Occupies the port for some time as soon as it is free. Gives the end.
    pub(in crate::hardware) fn access(&mut self, from: Picoseconds, duration: Picoseconds) -> Picoseconds {
        self.free = self.free.max(from) + duration;
        self.busy += duration;
        self.free
    }

    /// The time in which the port was occupied.
    pub(in crate::hardware) fn busy(&self) -> Picoseconds {
        self.busy
    }
}

/// The timing of the data memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct DataMemoryTiming {
    clock: HardwareClock,
    overhead: u64,
    width: u64,
    burst: u64,
}

impl DataMemoryTiming {
    pub(in crate::hardware) fn new(description: &DataMemoryDescription) -> DataMemoryTiming {
        DataMemoryTiming {
            clock: HardwareClock::of_mhz(description.clock_mhz),
            overhead: description.overhead.into(),
            width: description.width.into(),
            burst: description.burst.into(),
        }
    }

    /// The duration of accesses to a number of bytes, in bursts.
    pub(in crate::hardware) fn duration(self, bytes: u64) -> Picoseconds {
        let cycles = |bytes: u64| self.overhead + bytes.div_ceil(self.width);
        let (whole, rest) = (bytes / self.burst, bytes % self.burst);
        self.clock.duration(whole * cycles(self.burst) + if rest > 0 { cycles(rest) } else { 0 })
    }
}

/// The host's memory: its bandwidth, and who uses it.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct HostMemory {
    port: MemoryPort,
    picoseconds_a_mebibyte: u64,
}

impl HostMemory {
    pub(in crate::hardware) fn new(megabytes_a_second: f64) -> HostMemory {
        let picoseconds = f64::from(1 << 20) * 1e6 / megabytes_a_second;
        HostMemory { port: MemoryPort::default(), picoseconds_a_mebibyte: picoseconds.round() as u64 }
    }

    /// Moves bytes. Gives the end.
    pub(in crate::hardware) fn access(&mut self, now: Picoseconds, bytes: u64) -> Picoseconds {
        self.port.access(now, (bytes * self.picoseconds_a_mebibyte) >> 20)
    }

    pub(in crate::hardware) fn busy(&self) -> Picoseconds {
        self.port.busy()
    }
}

/// The contents of the memories, in runs whose packets have contents.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct Contents {
    /// The host's memory, from address 0.
    pub(in crate::hardware) host: Vec<u8>,
    /// The data memory; its end has the receive buffers.
    data: Vec<u8>,
    first_buffer: usize,
}

impl Contents {
    pub(in crate::hardware) fn new(description: &AdapterDescription, host_bytes: usize) -> Contents {
        let (size, first_buffer) =
            (description.data_memory.kilobytes as usize * 1024, description.send_memory());
        Contents { host: vec![0; host_bytes], data: vec![0; size], first_buffer: first_buffer as usize }
    }

    /// Copies from the host's memory to the data memory. Both ranges were checked.
    pub(in crate::hardware) fn copy_in(&mut self, host: u64, adapter: u32, bytes: u32) {
        let from = host as usize..host as usize + bytes as usize;
        self.data[adapter as usize..][..bytes as usize].copy_from_slice(&self.host[from]);
    }

    /// Bytes of a packet to send.
    pub(in crate::hardware) fn sent(&self, address: u32, bytes: u32) -> &[u8] {
        &self.data[address as usize..][..bytes as usize]
    }

    /// The payload in a receive buffer.
    pub(in crate::hardware) fn buffer(&mut self, buffer: u32) -> &mut CellPayload {
        let start = self.first_buffer + buffer as usize * CELL_PAYLOAD;
        let payload = self.data[start..].first_chunk_mut();
        payload.expect("all receive buffers lie in the data memory")
    }
}

impl AdapterDescription {
    /// The number of receive buffers.
    pub(in crate::hardware) fn buffers(&self) -> u32 {
        self.receive.shared + self.receive.per_circuit * self.link.circuits
    }

    /// The bytes of the data memory that packets to send may use: all but the receive buffers.
    pub fn send_memory(&self) -> u32 {
        self.data_memory.kilobytes * 1024 - self.buffers() * self.link.unit_payload() as u32
    }
}
