//! The size from which DMA is cheaper than programmed I/O.

use adapter::{AdapterDescription, Traffic, TrafficDirection, TrafficSettings};

use super::error::Error;
use super::measure::adapter_with;

/// A break-even.
#[derive(Clone, Debug)]
pub struct BreakEven {
    pub bits: u32,
    /// The bytes of a write into which the processor combines its stores.
    pub combined: u32,
    /// The time to lock and unlock pages for DMA, in us.
    pub lock_us: u32,
    /// The least bytes from which DMA occupies the bus for less time; none up to `MOST`.
    pub bytes: Option<u32>,
}

/// The largest packet.
const MOST: u32 = 65_532;

/// Cycles in which a packet occupies the bus on its way to the adapter.
fn cycles(description: &AdapterDescription, bytes: u32) -> Result<u64, Error> {
    let result = Traffic::run(description, TrafficSettings::new(TrafficDirection::Send, bytes, 1))?;
    let idle = u64::from(description.bus.turnaround) * result.bus.operations;
    Ok(result.bus.busy_cycles + idle)
}

/// Break-evens by width, combination of stores, and the cost of locking pages.
pub fn break_even() -> Result<Vec<BreakEven>, Error> {
    let mut all = Vec::new();
    for bits in [32, 64] {
        for combined in [4, 32, 64] {
            for lock_us in [0, 7] {
                let (width, writes) = (format!("bus.bits={bits}"), format!("target.write_bytes={combined}"));
                // One packet at a time: the largest one fits.
                let common = [&width[..], &writes, "interrupts=none", "driver.window=1"];
                let with = |name: &str| adapter_with(name, &common);
                let (dma, programmed) = (with("dart")?, with("witless")?);
                let lock = (f64::from(lock_us) * dma.bus.clock_mhz) as u64;
                let is_dma_cheaper = |bytes: u32| -> Result<bool, Error> {
                    Ok(cycles(&dma, bytes)? + lock <= cycles(&programmed, bytes)?)
                };
                all.push(BreakEven { bits, combined, lock_us, bytes: first(is_dma_cheaper)? });
            }
        }
    }
    Ok(all)
}

/// The least multiple of 4 from which a condition holds that grows with the bytes, but for steps of bursts.
fn first(holds: impl Fn(u32) -> Result<bool, Error>) -> Result<Option<u32>, Error> {
    if !holds(MOST)? {
        return Ok(None);
    }
    let (mut below, mut above) = (0, MOST / 4);
    while above - below > 1 {
        let middle = below.midpoint(above);
        if holds(middle * 4)? { above = middle } else { below = middle }
    }
    Ok(Some(above * 4))
}
