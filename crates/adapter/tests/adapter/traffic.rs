//! Regular traffic: the figures of the paper, and what must hold of every run.

use pathlength_adapter::{
    AdapterDescription, DataOrigin, Traffic, TrafficDirection, TrafficResult, TrafficSettings,
};

fn find(name: &str, settings: &[&str]) -> AdapterDescription {
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    AdapterDescription::find_with(name, &settings).unwrap()
}

/// Packets of so many whole cells around the loop.
fn cells(description: &AdapterDescription, cells: u32) -> TrafficResult {
    let settings = TrafficSettings::new(TrafficDirection::Loop, cells * 48 - 8, testing::sample(300, 3000));
    Traffic::run(description, settings).unwrap()
}

/// The drop behind the burst of 512 bytes is there with the driver's usual operations, and goes when they dominate.
#[test]
fn a_second_burst_costs_throughput_if_fixed_costs_are_small() {
    let change = |settings: &[&str]| {
        let dart = find("dart-simulation", settings);
        // 472 bytes are read in one burst, 520 in two.
        let [one, two] = [10, 11].map(|number| cells(&dart, number).payload_mbps());
        two / one - 1.0
    };
    let [narrow, wide] = [&["bus.bits=32"][..], &["bus.bits=64"]].map(change);
    let many = change(&["driver.service_reads=10", "driver.service_writes=20"]);
    assert!(narrow < -0.005 && wide < -0.02, "{narrow}, {wide}");
    assert!(many > 0.01, "{many}");
}

/// A wider bus is not slower, and the link's payload is the bound.
#[test]
fn throughput_is_bounded_by_the_link() {
    for number in [1, 4, 8, 10, 16, 32, 64, 192] {
        let [narrow, wide] = ["bus.bits=32", "bus.bits=64"]
            .map(|bits| cells(&find("dart-simulation", &[bits]), number).payload_mbps());
        assert!(narrow <= wide * 1.001 && wide < 542.6, "{number} cells: {narrow}, {wide}");
    }
}

/// The same input has the same result, and a run of more packets the same pace.
#[test]
fn runs_are_deterministic() {
    for (_, description) in AdapterDescription::all() {
        let settings = TrafficSettings::new(TrafficDirection::Loop, 1460, 200);
        assert_eq!(Traffic::run(&description, settings), Traffic::run(&description, settings));
    }
}

/// Data of a device cross the bus once on their way to the network, or twice and the host's memory besides.
#[test]
fn a_device_writes_to_the_adapter_at_half_the_bus() {
    let dart = find("dart", &[]);
    let bytes = 8 * 48 * 64;
    let run = |origin: DataOrigin| {
        let settings = TrafficSettings { origin, ..TrafficSettings::new(TrafficDirection::Send, bytes, 50) };
        Traffic::run(&dart, settings).unwrap()
    };
    let [direct, staged] = [DataOrigin::DeviceToAdapter, DataOrigin::DeviceToHost].map(run);
    let moved = |result: &TrafficResult| result.a_packet(result.bus.bytes) / f64::from(bytes);
    assert!((1.0..1.01).contains(&moved(&direct)), "{}", moved(&direct));
    assert!((2.0..2.02).contains(&moved(&staged)), "{}", moved(&staged));
    assert!(
        direct.memories[2] < 0.01 && staged.memories[2] > 0.3,
        "{:?} {:?}",
        direct.memories,
        staged.memories
    );
}

/// The transmitter divides data into packets that have trailers of their own.
#[test]
fn hardware_generates_packets() {
    let dart = find("dart", &[]);
    let packets = TrafficSettings {
        origin: DataOrigin::DeviceToAdapter,
        hardware_packets: 8 * 48 - 8,
        ..TrafficSettings::new(TrafficDirection::Send, 100 * (8 * 48 - 8), 10)
    };
    let result = Traffic::run(&dart, packets).unwrap();
    assert_eq!((result.counts.packets_sent, result.counts.cells_transmitted), (1000, 8000));
    assert!(result.counts.commands <= 10);
}

/// A traditional adapter's interrupts at a load are as many as packets, or as hold-off allows.
#[test]
fn interrupts_are_held_off() {
    let at = |holdoff: &str| {
        let dart = find("dart", &[&format!("interrupts.holdoff_ns=[{holdoff}, 1000000]")]);
        let settings = TrafficSettings {
            interval: 50_000_000,
            ..TrafficSettings::new(TrafficDirection::Receive, 1460, 400)
        };
        Traffic::run(&dart, settings).unwrap()
    };
    let [none, some] = ["0", "500000"].map(at);
    // Packets are 50 us apart: an interrupt for each, and one for the completion of its copy.
    assert!((1.0..2.1).contains(&none.a_packet(none.counts.interrupts)), "{:?}", none.counts);
    // Ten packets an interrupt.
    assert!((0.09..0.16).contains(&some.a_packet(some.counts.interrupts)), "{:?}", some.counts);
}

/// Without memory write and invalidate the bridge reads each line that DMA writes.
#[test]
fn whole_lines_are_not_read_first() {
    let lines = |settings: &[&str]| {
        let dart = find("dart", settings);
        let settings = TrafficSettings::new(TrafficDirection::Receive, 4096, 50);
        let counts = Traffic::run(&dart, settings).unwrap().counts;
        (counts.whole_lines, counts.merged_lines)
    };
    assert_eq!(lines(&[]), (50 * (64 + 1), 0));
    assert_eq!(lines(&["dma.write_invalidate=false"]), (0, 50 * (64 + 1)));
}

/// Credits that come in batches need fewer messages; a packet needs no more time.
#[test]
fn credits_are_batched() {
    let messages = |batch: &str| {
        let result = cells(&find("dart-simulation", &[batch]), 32);
        (result.counts.credit_messages, result.counts.cells_received)
    };
    let ((single, cells), (batched, _)) = (messages("credits.batch=1"), messages("credits.batch=8"));
    assert!(single >= cells - 1, "{single} of {cells}");
    assert!(batched <= cells / 8 && batched + 2 >= cells / 8, "{batched} of {cells}");
}

#[test]
fn impossible_traffic_is_refused() {
    let error = |settings: TrafficSettings| {
        Traffic::run(&find("traditional", &[]), settings).unwrap_err().to_string()
    };
    let send = |bytes: u32| TrafficSettings::new(TrafficDirection::Send, bytes, 1);
    assert_eq!(error(send(0)), "packets have 1 to 65535 bytes, not 0");
    assert_eq!(error(send(65_536)), "packets have 1 to 65535 bytes, not 65536");
    let circuits = TrafficSettings { circuits: 257, ..send(100) };
    assert_eq!(error(circuits), "link.circuits: the link has 256 circuits, not 257");
    let device = TrafficSettings { origin: DataOrigin::DeviceToAdapter, ..send(100) };
    assert!(error(device).starts_with("only exposed buffers take data of devices"));
}
