//! Regular traffic: its settings and results.

use super::Stalled;
use crate::aal5;
use crate::clock::Picoseconds;
use crate::description::DescriptionError;
use crate::hardware::AdapterCounts;
use crate::interconnect::InterconnectCounts;

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDirection {
    /// From the host to the host, around the adapter's own link.
    Loop,
    /// To another system.
    Send,
    /// From another system.
    Receive,
}

/// The origin of sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOrigin {
    /// An application writes them.
    Application,
    /// Another device on the bus, as a disk's interface, puts them into host memory.
    DeviceToHost,
    /// The same puts them into the adapter's memory.
    DeviceToAdapter,
}

/// Settings of regular traffic.
#[derive(Clone, Copy, Debug)]
pub struct TrafficSettings {
    /// The direction of packets.
    pub direction: TrafficDirection,
    /// The origin of sent data.
    pub origin: DataOrigin,
    /// The bytes of each packet; of data that the adapter divides, of each piece.
    pub bytes: u32,
    /// The size of the packets into which the adapter divides them; 0 for one packet.
    pub hardware_packets: u32,
    /// The number of packets, or pieces.
    pub packets: u64,
    /// Over how many circuits, in turn.
    pub circuits: u32,
    /// From one packet that the other system sends to the next, if it could send them sooner.
    pub interval: Picoseconds,
}

impl TrafficSettings {
    /// Packets of a size on one circuit, as fast as they go.
    pub fn new(direction: TrafficDirection, bytes: u32, packets: u64) -> TrafficSettings {
        TrafficSettings {
            direction,
            origin: DataOrigin::Application,
            bytes,
            hardware_packets: 0,
            packets,
            circuits: 1,
            interval: 0,
        }
    }
}

/// Why traffic has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrafficError {
    /// The traffic is impossible with this adapter.
    #[error("{0}")]
    Impossible(String),
    /// The adapter stands still.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl From<DescriptionError> for TrafficError {
    fn from(error: DescriptionError) -> TrafficError {
        TrafficError::Impossible(error.to_string())
    }
}

/// Results of regular traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrafficResult {
    /// The time.
    pub time: Picoseconds,
    /// The packets, or pieces.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The cells or frames of a packet.
    pub units: u32,
    /// The adapter's counts.
    pub counts: AdapterCounts,
    /// The bus's counts.
    pub bus: InterconnectCounts,
    /// The bus's cycles.
    pub bus_cycles: u64,
    /// Shares of the time in which the data memory, the control memory and the host's memory were busy.
    pub memories: [f64; 3],
    /// The same of the processor.
    pub processor: f64,
}

impl TrafficResult {
    /// Mb/s of packets' bytes.
    pub fn mbps(&self) -> f64 {
        self.bytes as f64 * 8e6 / self.time as f64
    }

    /// Mb/s of cells' payloads, as the paper has them.
    pub fn payload_mbps(&self) -> f64 {
        (self.packets * u64::from(self.units)) as f64 * aal5::CELL_PAYLOAD as f64 * 8e6 / self.time as f64
    }

    /// A count for each packet.
    pub fn a_packet(&self, count: u64) -> f64 {
        count as f64 / self.packets as f64
    }
}
