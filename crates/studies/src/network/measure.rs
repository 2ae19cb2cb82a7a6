//! Runs of adapters: what they deliver, what loads cost, and what each feature of DART is worth.

use adapter::{
    AdapterDescription, AdapterSetting, DataOrigin, Traffic, TrafficDirection, TrafficResult, TrafficSettings,
};

use super::error::Error;

/// The adapters that are compared: names, and the settings of their buses.
const COMPARED: [(&str, &str); 7] = [
    ("traditional", "bus.bits=32"),
    ("traditional", "bus.bits=64"),
    ("witless", "bus.bits=32"),
    ("witless", "bus.bits=64"),
    ("dart", "bus.bits=32"),
    ("dart", "bus.bits=64"),
    ("present-day", "bus.bits=256"),
];

/// The bytes of the packets that most runs have: of an application's large writes.
pub const BYTES: u32 = 8192;

/// The throughput of an adapter, and the load of its parts.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub adapter: String,
    pub bits: u32,
    pub direction: &'static str,
    /// Operations on memory for each byte: passes of the processor and of DMA.
    pub operations: u32,
    /// Mb/s that the host's memory allows.
    pub bound: f64,
    pub mbps: f64,
    /// Shares of the time in percent.
    pub bus: f64,
    pub memory: f64,
    pub processor: f64,
}

/// A load, and what it costs.
#[derive(Clone, Debug)]
pub struct LoadPoint {
    pub holdoff_us: u32,
    /// Mb/s that the network brings.
    pub offered: f64,
    pub mbps: f64,
    pub interrupts: f64,
    pub reads: f64,
    pub writes: f64,
    pub processor: f64,
}

/// The effect of a feature of DART: results with it and without.
#[derive(Clone, Debug)]
pub struct FeatureEffect {
    pub feature: &'static str,
    pub traffic: &'static str,
    /// With the feature, and without.
    pub mbps: [f64; 2],
    pub bus_cycles: [f64; 2],
    pub memory: [f64; 2],
    pub processor: [f64; 2],
}

/// The time of a packet alone.
#[derive(Clone, Debug)]
pub struct PacketLatency {
    pub adapter: String,
    pub bytes: u32,
    /// From the application's call until the packet has left the adapter's memory, in us.
    pub send: f64,
    /// From the call until the receiving application has the packet, around the link, in us.
    pub whole: f64,
}

/// An adapter with fields set.
pub fn adapter_with(name: &str, settings: &[&str]) -> Result<AdapterDescription, Error> {
    let parsed: Result<Vec<AdapterSetting>, _> = settings.iter().map(|text| text.parse()).collect();
    Ok(AdapterDescription::find_with(name, &parsed.expect("the study's settings are FIELD=VALUE"))?)
}

/// Passes over memory for a byte: the processor's, and DMA's.
fn operations(description: &AdapterDescription, direction: TrafficDirection) -> u32 {
    let driver = &description.driver;
    let (passes, mover) = match direction {
        TrafficDirection::Receive => (driver.receive_passes, driver.receive),
        _ => (driver.send_passes, driver.send),
    };
    passes + u32::from(mover == adapter::Mover::Dma)
}

/// The throughput of each adapter in large packets.
pub fn delivered(packets: u64) -> Result<Vec<Delivered>, Error> {
    let mut all = Vec::new();
    for (name, bus) in COMPARED {
        let description = adapter_with(name, &[bus])?;
        for (direction, label) in [(TrafficDirection::Send, "send"), (TrafficDirection::Receive, "receive")] {
            let result = Traffic::run(&description, TrafficSettings::new(direction, BYTES, packets))?;
            let operations = operations(&description, direction);
            all.push(Delivered {
                adapter: name.into(),
                bits: description.bus.bits,
                direction: label,
                operations,
                bound: description.host.megabytes_a_second * 8.0 / f64::from(operations),
                mbps: result.mbps(),
                bus: bus_share(&result),
                memory: 100.0 * result.memories[2],
                processor: 100.0 * result.processor,
            });
        }
    }
    Ok(all)
}

/// The bus's busy cycles, in percent.
pub fn bus_share(result: &TrafficResult) -> f64 {
    100.0 * result.bus.busy_cycles as f64 / result.bus_cycles as f64
}

/// Interrupts and operations on registers, by load and hold-off.
pub fn by_load(packets: u64) -> Result<Vec<LoadPoint>, Error> {
    const PACKET: u32 = 1460;
    let mut all = Vec::new();
    for holdoff_us in [0, 50, 200, 1000] {
        let holdoff = format!("interrupts.holdoff_ns=[{}, 2000000]", holdoff_us * 1000);
        let description = adapter_with("dart", &["bus.bits=64", "driver.receive_ns=5000", &holdoff])?;
        for offered in [1.0, 10.0, 50.0, 100.0, 200.0, 300.0, 400.0] {
            let interval = (f64::from(PACKET) * 8e6 / offered) as u64;
            let settings = TrafficSettings {
                interval,
                ..TrafficSettings::new(TrafficDirection::Receive, PACKET, packets)
            };
            let result = Traffic::run(&description, settings)?;
            all.push(LoadPoint {
                holdoff_us,
                offered,
                mbps: result.mbps(),
                interrupts: result.a_packet(result.counts.interrupts),
                reads: result.a_packet(result.counts.csr_reads),
                writes: result.a_packet(result.counts.csr_writes),
                processor: 100.0 * result.processor,
            });
        }
    }
    Ok(all)
}

/// A feature: DART with it, DART without it, and traffic that shows it.
struct Feature {
    name: &'static str,
    traffic: &'static str,
    with: &'static [&'static str],
    without: &'static [&'static str],
    settings: [TrafficSettings; 2],
}

fn features_to_show(packets: u64) -> Vec<Feature> {
    let send = TrafficSettings::new(TrafficDirection::Send, BYTES, packets);
    let receive = TrafficSettings::new(TrafficDirection::Receive, BYTES, packets);
    let short = TrafficSettings::new(TrafficDirection::Receive, 40, packets);
    let cells = 8 * 48 - 8;
    let frames = TrafficSettings::new(TrafficDirection::Receive, 1460, packets);
    let device = |origin: DataOrigin| TrafficSettings { origin, ..send };
    let divided = TrafficSettings {
        hardware_packets: cells,
        ..TrafficSettings::new(TrafficDirection::Send, 24 * cells, packets)
    };
    let single = TrafficSettings::new(TrafficDirection::Send, cells, packets);
    let feature = |name, traffic, without, settings: TrafficSettings| Feature {
        name,
        traffic,
        with: &[],
        without,
        settings: [settings; 2],
    };
    vec![
        feature("data moved once: no copy by the processor", "send 8 KB", &["driver.send_passes=3"], send),
        feature(
            "data moved once: no copy by the processor",
            "receive 8 KB",
            &["driver.receive_passes=3"],
            receive,
        ),
        feature("checksums by hardware", "send 8 KB", &["driver.send_passes=2"], send),
        feature("checksums by hardware", "receive 8 KB", &["driver.receive_passes=2"], receive),
        feature("reads of 512 bytes, not 64", "send 8 KB", &["dma.read_burst=64"], send),
        feature("reads of 512 bytes, not 48: a cell", "send 8 KB", &["dma.read_burst=48"], send),
        feature("memory write and invalidate", "receive 8 KB", &["dma.write_invalidate=false"], receive),
        feature("interrupts held off by 50 us", "receive 8 KB", &["interrupts.holdoff_ns=[0, 0]"], receive),
        feature(
            "short packets within their summary",
            "receive 40 bytes",
            &["driver.uses_summary=false"],
            short,
        ),
        Feature {
            name: "shared receive buffers beside a small quota for each circuit",
            traffic: "receive 1,460 bytes on one circuit",
            with: &["receive.per_circuit=33", "receive.shared=65536"],
            without: &["receive.per_circuit=33", "receive.shared=0"],
            settings: [frames; 2],
        },
        Feature {
            name: "bus slave: a device writes to the adapter",
            traffic: "send 8 KB from a device",
            with: &[],
            without: &[],
            settings: [device(DataOrigin::DeviceToAdapter), device(DataOrigin::DeviceToHost)],
        },
        Feature {
            name: "packets of 8 cells made by hardware",
            traffic: "send",
            with: &[],
            without: &[],
            settings: [divided, single],
        },
    ]
}

/// The effect of each feature alone, on 64 bits.
pub fn features(packets: u64) -> Result<Vec<FeatureEffect>, Error> {
    let run = |settings: &[&str], traffic: TrafficSettings| -> Result<TrafficResult, Error> {
        let all: Vec<&str> = ["bus.bits=64"].iter().chain(settings).copied().collect();
        Ok(Traffic::run(&adapter_with("dart", &all)?, traffic)?)
    };
    features_to_show(packets)
        .into_iter()
        .map(|feature| {
            let results =
                [run(feature.with, feature.settings[0])?, run(feature.without, feature.settings[1])?];
            // For 1,000 bytes, because packets may differ.
            let kilobytes = |result: &TrafficResult| result.bytes as f64 / 1000.0;
            let of = |value: &dyn Fn(&TrafficResult) -> f64| results.each_ref().map(value);
            Ok(FeatureEffect {
                feature: feature.name,
                traffic: feature.traffic,
                mbps: of(&|result| result.mbps()),
                bus_cycles: of(&|result| result.bus.busy_cycles as f64 / kilobytes(result)),
                memory: of(&|result| {
                    // The time that the memory is busy, at its bandwidth.
                    let bytes = result.memories[2] * result.time as f64 * 1e-12 * 300e6;
                    bytes / result.bytes as f64
                }),
                processor: of(&|result| result.processor * result.time as f64 * 1e-6 / kilobytes(result)),
            })
        })
        .collect()
}

/// The times of packets alone.
pub fn latencies() -> Result<Vec<PacketLatency>, Error> {
    let mut all = Vec::new();
    for (name, bus) in COMPARED {
        if bus == "bus.bits=64" {
            continue;
        }
        let hold = ["interrupts.holdoff_ns=[0, 0]"];
        let description = adapter_with(name, &[&[bus][..], &hold].concat())?;
        for bytes in [40, 1460, BYTES] {
            let time = |direction: TrafficDirection| -> Result<f64, Error> {
                let settings = TrafficSettings::new(direction, bytes, 1);
                Ok(Traffic::run(&description, settings)?.time as f64 * 1e-6)
            };
            let (send, whole) = (time(TrafficDirection::Send)?, time(TrafficDirection::Loop)?);
            all.push(PacketLatency { adapter: name.into(), bytes, send, whole });
        }
    }
    Ok(all)
}
