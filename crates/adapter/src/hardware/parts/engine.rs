//! The state of the DMA engine.

use std::collections::VecDeque;

use super::agenda::Delayed;
use super::receiver::CellToHost;
use crate::clock::Picoseconds;
use crate::description::AdapterDescription;
use crate::hardware::command::{DmaCommand, PacketSummary};

/// The engine.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct DmaEngine {
    /// The ring, as the host has written it.
    pub(in crate::hardware) ring: Vec<Option<DmaCommand>>,
    pub(in crate::hardware) producer: u32,
    /// The index of the first command that was not read.
    pub(in crate::hardware) unread: u32,
    pub(in crate::hardware) consumer: u32,
    pub(in crate::hardware) is_reading: bool,
    /// Commands that were read.
    pub(in crate::hardware) commands: VecDeque<Option<DmaCommand>>,
    pub(in crate::hardware) job: Option<EngineJob>,
    /// The time at which everything is in the data memory that was moved there.
    pub(in crate::hardware) stored: Picoseconds,
    /// Data read from the data memory, or being read, on the way to the host.
    pub(in crate::hardware) fetched: Delayed<FetchedData>,
}

/// A command that is executed.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) struct EngineJob {
    pub(in crate::hardware) command: DmaCommand,
    pub(in crate::hardware) host: u64,
    pub(in crate::hardware) adapter: u32,
    /// Bytes for which no transaction was requested.
    pub(in crate::hardware) unrequested: u32,
    /// Bytes that are not where they should be.
    pub(in crate::hardware) unfinished: u32,
    /// Transactions, or bursts on their way to one.
    pub(in crate::hardware) under_way: u32,
}

/// Data on their way from the data memory to the bus.
#[derive(Clone, Copy, Debug)]
pub(in crate::hardware) enum FetchedData {
    Burst { host: u64, bytes: u32 },
    Cell(CellToHost),
    Summary(PacketSummary),
}

impl DmaEngine {
    pub(in crate::hardware) fn new(description: &AdapterDescription) -> DmaEngine {
        DmaEngine {
            ring: vec![None; description.dma.ring as usize],
            producer: 0,
            unread: 0,
            consumer: 0,
            is_reading: false,
            commands: VecDeque::new(),
            job: None,
            stored: 0,
            fetched: Delayed::new(),
        }
    }

    pub(in crate::hardware) fn consumer(&self) -> u32 {
        self.consumer
    }

    pub(in crate::hardware) fn producer(&self) -> u32 {
        self.producer
    }

    /// Cells of hidden buffers that have not reached the bus.
    pub(in crate::hardware) fn cells(&self) -> impl Iterator<Item = &CellToHost> {
        self.fetched.iter().filter_map(|data| match data {
            FetchedData::Cell(cell) => Some(cell),
            _ => None,
        })
    }
}
