//! Figure 7 and Table 3: the chip in its designers' simulation.

use adapter::{Traffic, TrafficDirection, TrafficResult, TrafficSettings};

use super::error::Error;
use super::measure::{adapter_with, bus_share};

/// Throughput by the size of packets.
#[derive(Clone, Debug)]
pub struct Figure7 {
    pub cells: u32,
    /// Mb/s of cells' payloads, on 32 and 64 bits.
    pub mbps: [f64; 2],
}

/// The change of throughput from 10 cells to 11, by the bus cycles that a packet costs whatever its size.
#[derive(Clone, Debug)]
pub struct DipPoint {
    pub fixed: u32,
    /// In percent, of a bus that is the only bound, on 32 and 64 bits.
    pub computed: [f64; 2],
}

/// A figure of Table 3: its name, printed and simulated.
pub type Table3Row = (&'static str, f64, f64);

/// Table 3, and operations of the bus for a packet.
#[derive(Clone, Debug)]
pub struct Table3 {
    pub rows: Vec<Table3Row>,
    pub operations: f64,
    pub host_operations: f64,
}

/// The sizes of Figure 7, in cells.
const CELLS: [u32; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 32, 48, 64, 96];

fn cells(name: &str, settings: &[&str], cells: u32, packets: u64) -> Result<TrafficResult, Error> {
    let settings = adapter_with(name, settings)?;
    let traffic = TrafficSettings {
        circuits: 16,
        ..TrafficSettings::new(TrafficDirection::Loop, cells * 48 - 8, packets)
    };
    Ok(Traffic::run(&settings, traffic)?)
}

/// Throughput by the size of packets.
pub fn figure_7(packets: u64) -> Result<Vec<Figure7>, Error> {
    CELLS
        .into_iter()
        .map(|number| {
            let mbps =
                |bits: &str| cells("dart-simulation", &[bits], number, packets).map(|run| run.payload_mbps());
            Ok(Figure7 { cells: number, mbps: [mbps("bus.bits=32")?, mbps("bus.bits=64")?] })
        })
        .collect()
}

/// Bus cycles of a packet's data: reads of up to 512 bytes, each with an address, 16 cycles of latency and a turnaround, and writes
/// of 64 with an address, a stall and a turnaround.
fn data_cycles(bytes: u32, width: u32) -> u32 {
    let words = bytes / width;
    words + 18 * bytes.div_ceil(512) + words + 3 * bytes.div_ceil(64)
}

/// The fixed costs of a packet, in bus cycles, for which the change is shown.
const FIXED: [u32; 9] = [0, 50, 100, 150, 160, 168, 180, 250, 400];

/// The change of throughput behind the first burst.
pub fn dip() -> Vec<DipPoint> {
    let change = |fixed: u32, width: u32| {
        let pace = |bytes: u32| f64::from(bytes) / f64::from(fixed + data_cycles(bytes, width));
        100.0 * (pace(11 * 48) / pace(10 * 48) - 1.0)
    };
    FIXED.map(|fixed| DipPoint { fixed, computed: [4, 8].map(|width| change(fixed, width)) }).into()
}

/// The assumptions under which Table 3 comes out, beside those of `dart-simulation`.
const TABLE_3: [&str; 6] = [
    "driver.window=4",
    "driver.latency_ns=24000",
    "driver.service_reads=3",
    "driver.service_writes=6",
    "driver.send_reads=1",
    "driver.send_writes=3",
];

/// Packets of 32 cells on 32 bits.
pub fn table_3(packets: u64) -> Result<Table3, Error> {
    let result = cells("dart-simulation", &TABLE_3, 32, packets)?;
    let cycles = result.bus_cycles as f64;
    let [data, control, _] = result.memories;
    let share = 100.0 * result.bus.host_operations as f64 / result.bus.operations as f64;
    Ok(Table3 {
        rows: vec![
            ("control memory idle", 79.0, 100.0 * (1.0 - control)),
            ("data memory idle", 48.0, 100.0 * (1.0 - data)),
            ("PCI busy (frame or irdy asserted)", 75.0, bus_share(&result)),
            (
                "PCI transferring data (irdy and trdy asserted)",
                60.0,
                100.0 * result.bus.data_cycles as f64 / cycles,
            ),
            ("CSR operations share of bus operations", 41.0, share),
        ],
        operations: result.a_packet(result.bus.operations),
        host_operations: result.a_packet(result.bus.host_operations),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drop vanishes at 168 cycles of fixed cost, whatever the width.
    #[test]
    fn the_dip_is_gone_at_168_cycles() {
        let points = dip();
        let at = |fixed: u32| points.iter().find(|point| point.fixed == fixed).unwrap().computed;
        assert!(at(160).iter().all(|change| *change < 0.0), "{:?}", at(160));
        assert!(at(168).iter().all(|change| change.abs() < 1e-9), "{:?}", at(168));
        assert!(at(180).iter().all(|change| *change > 0.0), "{:?}", at(180));
    }

    /// Five figures come out within four points of percent, from five assumptions.
    #[test]
    fn table_3_is_consistent() {
        let table = table_3(300).unwrap();
        for (name, printed, simulated) in &table.rows {
            assert!((printed - simulated).abs() < 4.0, "{name}: {printed} printed, {simulated} simulated");
        }
    }
}
