//! Descriptions of a snooping bus, and of what the processors on it can have outstanding.

use serde::Deserialize;

use descriptions::{CheckResult, require};

/// A bus with split transactions: after its address a transaction leaves the bus to others until its data come. Addresses
/// are served in the order of requests, and data come in the order of addresses. Times are cycles of the bus.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Clock frequency in MHz.
    pub clock_mhz: f64,
    /// From a processor's request to its address, if the bus is free.
    pub arbitration: u32,
    /// How long a transaction occupies the address bus; after it, all caches have answered.
    pub address: u32,
    /// How long a line occupies the data bus. A processor continues after the first cycle.
    pub data: u32,
    /// From the end of the address to the first data from memory, if its bank is free.
    pub memory: u32,
    /// The same from another processor's cache.
    pub transfer: u32,
    /// Banks of memory, between which lines alternate.
    pub banks: u32,
    /// How long a line occupies its bank.
    pub bank: u32,
    /// How many transactions with data may wait for them at the same time; others wait for their address.
    pub outstanding: u32,
}

/// The behaviour of a processor until its misses are served.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusProcessor {
    /// Cycles of an instruction while no transaction on the bus is waited for: `time` measures it on one processor.
    pub cycles_per_instruction: f64,
    /// How many transactions a processor may have outstanding; it stops at the next one.
    pub outstanding: u32,
    /// How many instructions it executes behind a load that missed before it waits for the data: 0 if it waits at once, and
    /// for a processor that executes out of order the entries of its reorder buffer. It does not wait for stores.
    #[serde(default)]
    pub window: u32,
    /// Cycles of a memory barrier, after all transactions of its processor have ended.
    #[serde(default)]
    pub barrier: u32,
    /// Cycles of a system call, beside the instructions that were recorded.
    #[serde(default)]
    pub system_call: u32,
}

impl Bus {
    /// Names the field that is wrong, and says why.
    pub(super) fn check(&self) -> CheckResult {
        let clock = self.clock_mhz;
        let reason = format!("{clock} is no clock: a number from 0.001 to 1000000");
        require((0.001..=1e6).contains(&clock), "coherence.bus.clock_mhz", reason)?;
        for (name, number) in [
            ("address", self.address),
            ("data", self.data),
            ("banks", self.banks),
            ("outstanding", self.outstanding),
        ] {
            require(number > 0, format!("coherence.bus.{name}"), "it must be 1 or more")?;
        }
        require(self.banks <= 1 << 16, "coherence.bus.banks", "there are at most 65,536")?;
        require(self.outstanding <= 1 << 10, "coherence.bus.outstanding", "there are at most 1,024")
    }
}

impl BusProcessor {
    /// Names the field that is wrong, and says why.
    pub(super) fn check(&self) -> CheckResult {
        let cycles = self.cycles_per_instruction;
        let reason = format!("{cycles} is no number from 0.01 to 1000");
        require((0.01..=1000.0).contains(&cycles), "coherence.processor.cycles_per_instruction", reason)?;
        let fits = (1..=1 << 10).contains(&self.outstanding);
        require(fits, "coherence.processor.outstanding", "it must be 1 to 1,024")
    }
}
