//! The interconnect between adapter and host: a PCI bus, or PCI Express.

mod express;
mod pci;

use crate::clock::{HardwareClock, Picoseconds};
use crate::description::{BusDescription, BusKind};

pub use express::Express;
pub use pci::PciBus;

/// A master of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Master {
    /// The bridge, for the host's processor.
    Host,
    /// The adapter's DMA.
    Adapter,
    /// Another device, as a disk's interface.
    Peer,
}

/// The number of masters.
pub(crate) const MASTERS: usize = 3;

/// The kind of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A write of whole lines only (PCI's memory write and invalidate).
    WriteInvalidate,
}

/// A transaction on the bus. `P` is the purpose that its master has with it.
#[derive(Clone, Copy, Debug)]
pub struct BusTransaction<P> {
    /// The kind.
    pub kind: TransactionKind,
    /// The address of the first byte.
    pub address: u64,
    /// The bytes: one at least.
    pub bytes: u32,
    /// The cycles from the address to the first data, in which the target stalls.
    pub stall: u64,
    /// The time from the first try of a read until its target has the data; tries before are retried. 0 for a target that waits.
    pub fetch: Picoseconds,
    /// The purpose.
    pub purpose: P,
}

/// A transaction that has ended, or a part of it after which its master lost the bus.
#[derive(Clone, Copy, Debug)]
pub struct EndedTransaction<P> {
    /// The master.
    pub master: Master,
    /// The transaction.
    pub transaction: BusTransaction<P>,
}

/// Counts of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterconnectCounts {
    /// Address phases, also of tries that were retried: PCI's bus operations.
    pub operations: u64,
    /// Those of the host.
    pub host_operations: u64,
    /// Tries that the target told to retry.
    pub retries: u64,
    /// Transactions that the latency timer cut.
    pub cut: u64,
    /// Cycles in which FRAME or IRDY is asserted.
    pub busy_cycles: u64,
    /// Cycles in which data are transferred.
    pub data_cycles: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A bus with its masters.
#[derive(Clone, Debug)]
pub(crate) enum Interconnect<P> {
    Pci(PciBus<P>),
    Express(Express<P>),
}

impl<P: Copy> Interconnect<P> {
    pub(crate) fn new(description: &BusDescription) -> Interconnect<P> {
        match description.kind {
            BusKind::Pci => Interconnect::Pci(PciBus::new(description)),
            BusKind::Express => Interconnect::Express(Express::new(description)),
        }
    }

    /// Requests a transaction.
    pub(crate) fn request(&mut self, now: Picoseconds, master: Master, transaction: BusTransaction<P>) {
        match self {
            Interconnect::Pci(bus) => bus.request(now, master, transaction),
            Interconnect::Express(lanes) => lanes.request(now, master, transaction),
        }
    }

    /// The time of the next event.
    pub(crate) fn next(&self) -> Picoseconds {
        match self {
            Interconnect::Pci(bus) => bus.next(),
            Interconnect::Express(lanes) => lanes.next(),
        }
    }

    /// Makes the next event happen, whose time has come.
    pub(crate) fn advance(&mut self) -> Option<EndedTransaction<P>> {
        match self {
            Interconnect::Pci(bus) => bus.advance(),
            Interconnect::Express(lanes) => lanes.advance(),
        }
    }

    pub(crate) fn counts(&self) -> InterconnectCounts {
        match self {
            Interconnect::Pci(bus) => bus.counts(),
            Interconnect::Express(lanes) => lanes.counts(),
        }
    }

    pub(crate) fn clock(&self) -> HardwareClock {
        match self {
            Interconnect::Pci(bus) => bus.clock(),
            Interconnect::Express(lanes) => lanes.clock(),
        }
    }
}
