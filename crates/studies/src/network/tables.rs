//! The study's tables.

use table::{Kind, Table, Value};

use super::break_even::BreakEven;
use super::figure_7::{DipPoint, Figure7, Table3};
use super::logs::ReplayedLog;
use super::measure::{Delivered, FeatureEffect, LoadPoint, PacketLatency};
use super::memory::{self, MemoryOperations};
use super::paths::{self, CountedPath, STEPS};

/// Counted paths, or why there are none.
type CountedPaths = Result<Vec<CountedPath>, String>;

/// The note of a table of paths.
fn paths_note(table: &mut Table, paths: &CountedPaths) {
    table.notes.push(match paths {
        Ok(_) => format!(
            "Instructions of Alpha's processor in packets of up to {} bytes, exchanged with the host's TCP. The adapter's process, the \
             host and the dynamic loader are not in them.",
            paths::MTU
        ),
        Err(reason) => format!("Nothing was counted: {reason}."),
    });
}

/// The steps of the stack's paths.
pub fn paths(paths: &CountedPaths) -> Table {
    let columns = [
        ("direction", Kind::Text),
        ("form", Kind::Text),
        ("step", Kind::Text),
        ("instructions", Kind::Real(0)),
        ("loads", Kind::Real(0)),
        ("stores", Kind::Real(0)),
    ];
    let mut table = Table::new("paths", "The stack's paths: counts for 1,000 bytes, by step.", &columns);
    for path in paths.iter().flatten() {
        for (step, counts) in STEPS.into_iter().zip(&path.steps) {
            let texts = [path.direction, path.form, step].map(Value::from);
            table.row(texts.into_iter().chain(counts.map(Value::Real)).collect());
        }
    }
    paths_note(&mut table, paths);
    table
}

/// Instructions of the stack's paths, a column for each step but the application's.
pub fn paths_in_sum(paths: &CountedPaths) -> Table {
    let mut columns = vec![("path", Kind::Text)];
    columns.extend(STEPS[1..].iter().map(|&step| (step, Kind::Real(0))));
    columns.extend([("all", Kind::Real(0)), ("loads and stores", Kind::Real(0))]);
    let title = "The stack's instructions for 1,000 bytes, by form.";
    let mut table = Table::new("paths-in-sum", title, &columns);
    for path in paths.iter().flatten() {
        let steps = &path.steps[1..];
        let sum = |counts: std::ops::Range<usize>| -> f64 {
            steps.iter().flat_map(|step| &step[counts.clone()]).sum()
        };
        let numbers = steps.iter().map(|step| step[0]).chain([sum(0..1), sum(1..3)]);
        let label = format!("{}, {}", path.direction, path.form);
        table.row(std::iter::once(label.into()).chain(numbers.map(Value::Real)).collect());
    }
    paths_note(&mut table, paths);
    table
}

/// Memory operations two ways.
pub fn memory(all: &[MemoryOperations]) -> Table {
    let columns = [
        ("direction", Kind::Text),
        ("path", Kind::Text),
        ("buffers, KB", Kind::Count),
        ("operations, as printed", Kind::Count),
        ("operations of memory", Kind::Real(2)),
        ("load fills", Kind::Real(2)),
        ("store fills", Kind::Real(2)),
        ("write-backs", Kind::Real(2)),
        ("device and memory", Kind::Real(2)),
        ("device and caches", Kind::Real(2)),
    ];
    let title = "Memory operations of a byte as the paper counts them, and of a line as caches leave them.";
    let mut table = Table::new("memory-operations", title, &columns);
    for one in all {
        let numbers = [
            one.memory(),
            one.load_fills,
            one.store_fills,
            one.write_backs,
            one.device_memory,
            one.device_caches,
        ];
        let cells =
            [one.direction.into(), one.path.into(), count(one.kilobytes as f64), count(one.printed.into())];
        table.row(cells.into_iter().chain(numbers.map(Value::Real)).collect());
    }
    table.notes.push(format!(
        "One processor of {} with 4 MB of board cache; packets of 8 KB, in buffers of the application and of the stack that have this \
         size each and are used in turn.",
        memory::MACHINE
    ));
    table
}

/// The memory's operations by the size of buffers, a column for each of four paths.
pub fn memory_by_size(all: &[MemoryOperations]) -> Table {
    let columns = [
        ("buffers, KB", Kind::Count),
        ("sent, traditional", Kind::Real(2)),
        ("sent, DART", Kind::Real(2)),
        ("received, traditional", Kind::Real(2)),
        ("received, DART", Kind::Real(2)),
    ];
    let title = "The memory's operations for a line of data, by the size of buffers.";
    let mut table = Table::new("memory-by-size", title, &columns);
    let of = |direction: &'static str, path: &'static str| {
        all.iter().filter(move |one| one.direction == direction && one.path.starts_with(path))
    };
    let paths = [("send", "traditional"), ("send", "DART"), ("receive", "traditional"), ("receive", "DART")];
    for size in of("send", "traditional") {
        let at = |(direction, path)| {
            of(direction, path).find(|one| one.kilobytes == size.kilobytes).map(MemoryOperations::memory)
        };
        let cells = paths.map(|path| at(path).map_or(Value::Missing, Value::Real));
        table.row(std::iter::once(count(size.kilobytes as f64)).chain(cells).collect());
    }
    table
}

/// The throughput of each adapter, and the bound of the host's memory.
pub fn delivered(all: &[Delivered]) -> Table {
    let columns = [
        ("adapter", Kind::Text),
        ("bus, bits", Kind::Count),
        ("direction", Kind::Text),
        ("memory operations a byte", Kind::Count),
        ("memory's bound, Mb/s", Kind::Count),
        ("delivered, Mb/s", Kind::Count),
        ("bus busy", Kind::Percent(0)),
        ("memory busy", Kind::Percent(0)),
        ("processor busy", Kind::Percent(0)),
    ];
    let mut table = Table::new("delivered", "What each adapter delivers in packets of 8 KB.", &columns);
    for one in all {
        table.row(vec![
            one.adapter.as_str().into(),
            count(one.bits.into()),
            one.direction.into(),
            count(one.operations.into()),
            count(one.bound),
            count(one.mbps),
            Value::Real(one.bus),
            Value::Real(one.memory),
            Value::Real(one.processor),
        ]);
    }
    table
}

/// The same as a chart needs it: a row for each adapter, sending.
pub fn delivered_by_adapter(all: &[Delivered]) -> Table {
    let columns = [("adapter", Kind::Text), ("memory's bound", Kind::Count), ("delivered", Kind::Count)];
    let mut table =
        Table::new("sent", "Sent in packets of 8 KB, and what the host's memory allows.", &columns);
    for one in all.iter().filter(|one| one.direction == "send" && one.bits <= 64) {
        let label = format!("{}, {} bits", one.adapter, one.bits);
        table.row(vec![label.as_str().into(), count(one.bound), count(one.mbps)]);
    }
    table
}

/// Figure 7.
pub fn figure_7(all: &[Figure7]) -> Table {
    let columns = [
        ("cells", Kind::Count),
        ("bytes", Kind::Count),
        ("32 bits", Kind::Real(1)),
        ("64 bits", Kind::Real(1)),
    ];
    let mut table =
        Table::new("figure-7", "Figure 7: Mb/s of cells' payloads by the size of packets.", &columns);
    for one in all {
        let [narrow, wide] = one.mbps.map(Value::Real);
        table.row(vec![count(one.cells.into()), count((one.cells * 48).into()), narrow, wide]);
    }
    table
}

/// The dip by fixed cost.
pub fn dip(all: &[DipPoint]) -> Table {
    let columns = [
        ("fixed bus cycles a packet", Kind::Count),
        ("32 bits", Kind::Change(1)),
        ("64 bits", Kind::Change(1)),
    ];
    let title = "Throughput of 11 cells against 10, if the bus alone is the bound.";
    let mut table = Table::new("dip", title, &columns);
    for point in all {
        let [narrow, wide] = point.computed.map(Value::Real);
        table.row(vec![count(point.fixed.into()), narrow, wide]);
    }
    table
}

/// Table 3.
pub fn table_3(found: &Table3) -> Table {
    let columns = [("statistic", Kind::Text), ("printed", Kind::Percent(0)), ("simulated", Kind::Percent(0))];
    let mut table = Table::new("table-3", "Table 3: packets of 32 cells on 32 bits.", &columns);
    for (name, printed, simulated) in &found.rows {
        table.row(vec![(*name).into(), Value::Real(*printed), Value::Real(*simulated)]);
    }
    table.notes.push(format!(
        "Simulated with {:.0} CSR operations of {:.0} bus operations a packet, four packets under way, 24 us of the driver, and 5 and 9 \
         cycles without data in an access of the data memory and for a cell in the control memory: five figures, five assumptions.",
        found.host_operations, found.operations
    ));
    table
}

/// Interrupts and registers by load.
pub fn by_load(all: &[LoadPoint]) -> Table {
    let columns = [
        ("hold-off, us", Kind::Count),
        ("offered, Mb/s", Kind::Count),
        ("received, Mb/s", Kind::Count),
        ("interrupts a packet", Kind::Real(2)),
        ("CSR reads", Kind::Real(2)),
        ("CSR writes", Kind::Real(2)),
        ("processor busy", Kind::Percent(0)),
    ];
    let title =
        "Interrupts and register operations a packet of 1,460 bytes received by DART, by load and hold-off.";
    let mut table = Table::new("load", title, &columns);
    for one in all {
        table.row(vec![
            count(one.holdoff_us.into()),
            count(one.offered),
            count(one.mbps),
            Value::Real(one.interrupts),
            Value::Real(one.reads),
            Value::Real(one.writes),
            Value::Real(one.processor),
        ]);
    }
    table
}

/// Interrupts a packet, a column for each hold-off.
pub fn interrupts_by_load(all: &[LoadPoint]) -> Table {
    let columns = [
        ("offered, Mb/s", Kind::Count),
        ("no hold-off", Kind::Real(2)),
        ("50 us", Kind::Real(2)),
        ("200 us", Kind::Real(2)),
        ("1 ms", Kind::Real(2)),
    ];
    let mut table = Table::new("interrupts", "Interrupts a packet by load.", &columns);
    let mut loads: Vec<f64> = all.iter().map(|one| one.offered).collect();
    loads.dedup();
    for offered in loads.iter().take(all.len() / 4) {
        let at = all.iter().filter(|one| one.offered == *offered).map(|one| Value::Real(one.interrupts));
        table.row(std::iter::once(count(*offered)).chain(at).collect());
    }
    table
}

/// Break-evens of the model.
pub fn break_even(all: &[BreakEven]) -> Table {
    let columns = [
        ("bus, bits", Kind::Count),
        ("stores combined to, bytes", Kind::Count),
        ("page lock, us", Kind::Count),
        ("DMA from, bytes", Kind::Count),
    ];
    let title = "The least packet for which DMA occupies the bus for less time than programmed output.";
    let mut table = Table::new("break-even", title, &columns);
    for one in all {
        table.row(vec![
            count(one.bits.into()),
            count(one.combined.into()),
            count(one.lock_us.into()),
            one.bytes.map_or(Value::Missing, |bytes| count(bytes.into())),
        ]);
    }
    if all.iter().any(|one| one.bytes.is_none()) {
        table.notes.push("A dash: programmed output is cheaper for all packets.".into());
    }
    table
}

/// Thresholds of today's systems, as their sources publish them.
const PUBLISHED: [(&str, u32, &str); 5] = [
    (
        "rx copybreak, FreeBSD drivers",
        160,
        "shorter packets are copied, and their buffer stays; 20 % less processor time",
    ),
    ("rx copybreak, Linux drivers", 256, "the same"),
    ("io_uring send, zero copy (Linux 6.10)", 3_000, "about"),
    ("I/OAT, tcp_dma_copybreak", 4_096, "longer copies by a DMA engine"),
    (
        "MSG_ZEROCOPY, Linux's documentation",
        10_240,
        "about 10 KB: below, page locks and notifications cost more than the copy",
    ),
];

/// Published thresholds.
pub fn published() -> Table {
    let columns = [("threshold", Kind::Text), ("bytes", Kind::Count), ("meaning", Kind::Text)];
    let mut table = Table::new("published", "Published thresholds between copying and not.", &columns);
    for (name, bytes, meaning) in PUBLISHED {
        table.row(vec![name.into(), count(bytes.into()), meaning.into()]);
    }
    table
}

/// The effect of each feature.
pub fn features(all: &[FeatureEffect]) -> Table {
    let columns = [
        ("feature", Kind::Text),
        ("traffic", Kind::Text),
        ("Mb/s with", Kind::Count),
        ("without", Kind::Count),
        ("change", Kind::Change(0)),
        ("bus cycles a KB with", Kind::Real(0)),
        ("bus cycles without", Kind::Real(0)),
        ("memory bytes a byte with", Kind::Real(1)),
        ("memory bytes without", Kind::Real(1)),
        ("processor us a KB with", Kind::Real(1)),
        ("processor us without", Kind::Real(1)),
    ];
    let mut table = Table::new("features", "What each feature of DART is worth alone, on 64 bits.", &columns);
    for one in all {
        let [with, without] = one.mbps;
        table.row(vec![
            one.feature.into(),
            one.traffic.into(),
            count(with),
            count(without),
            Value::Real(100.0 * (without / with - 1.0)),
            Value::Real(one.bus_cycles[0]),
            Value::Real(one.bus_cycles[1]),
            Value::Real(one.memory[0]),
            Value::Real(one.memory[1]),
            Value::Real(one.processor[0]),
            Value::Real(one.processor[1]),
        ]);
    }
    table
}

/// Packets alone.
pub fn latencies(all: &[PacketLatency]) -> Table {
    let columns = [
        ("adapter", Kind::Text),
        ("bytes", Kind::Count),
        ("until sent, us", Kind::Real(1)),
        ("until delivered, us", Kind::Real(1)),
    ];
    let mut table =
        Table::new("latency", "The time of a packet alone around the adapter's own link.", &columns);
    for one in all {
        table.row(vec![
            one.adapter.as_str().into(),
            count(one.bytes.into()),
            Value::Real(one.send),
            Value::Real(one.whole),
        ]);
    }
    table
}

/// Replayed logs of drivers.
pub fn logs(all: &[ReplayedLog]) -> Table {
    let columns = [
        ("log", Kind::Text),
        ("bus, bits", Kind::Count),
        ("ms", Kind::Real(3)),
        ("packets sent", Kind::Count),
        ("packets received", Kind::Count),
        ("Mb/s sent", Kind::Real(1)),
        ("Mb/s received", Kind::Real(1)),
        ("commands", Kind::Count),
        ("refused commands", Kind::Count),
        ("interrupts", Kind::Count),
        ("CSR reads", Kind::Count),
        ("CSR writes", Kind::Count),
        ("bus busy", Kind::Percent(0)),
    ];
    let mut table = Table::new("logs", "Logs of drivers, replayed on DART.", &columns);
    for one in all {
        let counts = &one.result.counts;
        // Bits in a microsecond are Mb/s.
        let mbps = |bytes: u64| Value::Real(8e6 * bytes as f64 / one.result.time as f64);
        table.row(vec![
            one.name.as_str().into(),
            count(one.bits.into()),
            Value::Real(one.result.time as f64 * 1e-9),
            counts.packets_sent.into(),
            counts.packets_received.into(),
            mbps(counts.bytes_sent),
            mbps(counts.bytes_received),
            counts.commands.into(),
            counts.command_errors.into(),
            counts.interrupts.into(),
            counts.csr_reads.into(),
            counts.csr_writes.into(),
            Value::Real(100.0 * one.result.bus.busy_cycles as f64 / one.bus_cycles),
        ]);
    }
    table.notes.push("The times are the model's: a log has the order in which the driver did things, and delays that it names.".into());
    table
}

fn count(number: f64) -> Value {
    Value::Integer(number.round() as i64)
}
