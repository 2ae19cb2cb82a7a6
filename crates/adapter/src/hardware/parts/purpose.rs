//! The purposes of transactions.

use super::receiver::CellToHost;
use crate::hardware::command::{AdapterRegister, DmaCommand, PacketSummary};

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) enum Purpose {
    ReadRegister(AdapterRegister),
    WriteRegister(AdapterRegister, u32),
    /// The processor writes to the data memory; the tag is for the last part.
    WriteData {
        host: u64,
        adapter: u32,
        bytes: u32,
        tag: Option<u32>,
    },
    /// The processor reads a packet.
    ReadData {
        packet: u32,
        offset: u32,
        host: u64,
        bytes: u32,
        tag: Option<u32>,
    },
    /// Another device writes: to the data memory, if it says so.
    Peer {
        bytes: u32,
        to_adapter: bool,
        tag: Option<u32>,
    },
    /// One of the adapter's own, of a generation.
    Adapter(u32, AdapterPurpose),
}

/// The purpose of one of the adapter's own transactions.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) enum AdapterPurpose {
    FetchCommands { first: u32, number: u32 },
    ReadHost { host: u64, adapter: u32, bytes: u32 },
    WriteHost { bytes: u32 },
    WriteCell(CellToHost),
    Summary(PacketSummary),
    Report(DmaCommand),
}
