//! Schedules that were computed by hand, to the picosecond.

use pathlength_adapter::{AdapterDescription, Traffic, TrafficDirection, TrafficSettings};

/// A cycle of the bus at 33 MHz, and one of the memories at 66 MHz.
const BUS: u64 = 30_303;
const MEMORY: u64 = 15_152;
/// A cell on the link: 53 bytes at 599.04 Mb/s.
const CELL: u64 = 707_799;

fn find(name: &str, settings: &[&str]) -> AdapterDescription {
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    AdapterDescription::find_with(name, &settings).unwrap()
}

fn time(description: &AdapterDescription, direction: TrafficDirection, bytes: u32) -> u64 {
    Traffic::run(description, TrafficSettings::new(direction, bytes, 1)).unwrap().time
}

/// The first edge of the bus's clock that is not before a time.
fn edge(time: u64) -> u64 {
    time.next_multiple_of(BUS)
}

/// The duration of an access of the data memory.
fn access(bytes: u64) -> u64 {
    (5 + bytes.div_ceil(8)) * MEMORY
}

/// A packet of one cell goes around the loop of DART's simulation on 32 bits.
#[test]
fn a_packet_of_one_cell_around_the_loop() {
    // The write of the command's index: arbitration, address, stall, data.
    let told = (1 + 1 + 1 + 1) * BUS;
    // A turnaround cycle, then two commands of 16 bytes are read: address, 16 cycles, 8 words.
    let commands = told + BUS + (1 + 16 + 8) * BUS;
    // The copy command: 40 bytes are read, 10 words, and stored.
    let stored = commands + BUS + (1 + 16 + 10) * BUS + access(40);
    // The transmitter looks up the circuit and reads the cell, which takes its slot on the link, and the delay.
    let arrived = stored + 5 * MEMORY + access(48) + CELL + 1_000_000;
    // The receiver looks up the circuit and stores the cell; the summary is read: 48 bytes.
    let summarized = arrived + 5 * MEMORY + access(48) + access(48);
    // It is written as a line: 16 words. The request waits for the edge, and for arbitration.
    let seen = edge(summarized) + (1 + 1 + 1 + 16) * BUS;
    // The driver polls after a microsecond, and reads a CSR in the bus's domain of no interrupt: it is retried.
    let polled = edge(seen + 1_000_000);
    let tried = polled + (1 + 1 + 2) * BUS;
    // The chip has the value 300 ns later. Tries are 2 cycles apart and take 3 with the address, each after arbitration.
    let mut tries = tried;
    while edge(tries) + (2 + 1) * BUS < tried + 300_000 {
        tries = edge(tries) + (2 + 1 + 1 + 2) * BUS;
    }
    let read = tries + (2 + 1 + 1 + 1 + 1) * BUS;
    // Three writes, of which the second is of the summaries' and the third of the commands' index; each after a turnaround.
    let first = read + (1 + 1 + 1 + 1) * BUS;
    let third = first + 2 * (1 + 1 + 1 + 1) * BUS;
    // Two commands are read; 40 bytes leave the data memory, and are written: 10 words.
    let commands = third + BUS + (1 + 16 + 8) * BUS;
    let fetched = commands + access(40);
    let written = edge(fetched) + (1 + 1 + 1 + 10) * BUS;
    let dart = find("dart-simulation", &[]);
    assert_eq!(time(&dart, TrafficDirection::Loop, 40), written);
}

/// The processor writes a packet of 40 bytes into WITLESS' memory.
#[test]
fn a_packet_of_one_cell_by_programmed_output() {
    let settings = ["interrupts=none", "driver.send_ns=0", "driver.send_passes=0", "driver.receive_passes=0"];
    // 32 bytes, and after a turnaround 8.
    let moved = (1 + 1 + 1 + 8) * BUS + BUS + (1 + 1 + 2) * BUS;
    let told = moved + BUS + (1 + 1 + 1) * BUS;
    // The transmit command is read.
    let commands = told + BUS + (1 + 16 + 4) * BUS;
    // The bytes are stored long ago. The transmission is complete, for software, when its last cell is read.
    assert_eq!(time(&find("witless", &settings), TrafficDirection::Send, 40), commands);
}

/// A packet of two cells is received by the traditional adapter: both cells go over the bus as they come.
#[test]
fn a_packet_of_two_cells_into_hidden_buffers() {
    let settings = [
        "interrupts=none",
        "driver.latency_ns=0",
        "driver.receive_ns=0",
        "driver.receive_passes=0",
        "driver.service_reads=0",
    ];
    let traditional = find("traditional", &settings);
    let access = |bytes: u64| (1 + bytes.div_ceil(8)) * MEMORY;
    let arrived = 2 * CELL + 1_000_000;
    let stored = arrived + 5 * MEMORY + access(48);
    // The second cell has bytes 48 to 95: it is written to the end of a line, 16 bytes, and 32 behind it.
    let line = edge(stored) + (1 + 1 + 1 + 4) * BUS;
    let rest = line + BUS + (1 + 1 + 8) * BUS;
    // The descriptor of 32 bytes.
    let summary = rest + BUS + (1 + 1 + 8) * BUS;
    assert_eq!(time(&traditional, TrafficDirection::Receive, 88), summary);
}

/// The paper's example: 540 Mb/s in 64-byte writes on 64 bits take 675 of 2,112 Mb/s, which leaves 1,437 for reads. With 15 cycles of
/// stall, bursts of 9 cycles are not enough for them, as the paper says, but 10 are. (With its rounded figures; of the link's
/// payload of 542.5 Mb/s, neither.)
#[test]
fn the_papers_example_needs_bursts_of_ten_cycles() {
    let writes = 540.0 * (1.0 + 1.0 + 8.0) / 8.0;
    let left = 33.0 * 64.0 - writes;
    assert_eq!((writes, left), (675.0, 1437.0));
    let reads = |burst: f64| 540.0 * (1.0 + 15.0 + burst) / burst;
    assert!(reads(9.0) > left && reads(10.0) <= left);
}
