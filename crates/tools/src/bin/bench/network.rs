//! The speed of simulated adapters, beside packets over a link in ns-3.

use std::path::{Path, PathBuf};
use std::process::Command;

use adapter::{AdapterDescription, Traffic, TrafficDirection, TrafficSettings};
use table::{Kind, Value};

use crate::measure::Used;
use crate::record::BenchRecord;
use crate::{Bench, Error};

const COLUMNS: [(&str, Kind); 6] = [
    ("simulator", Kind::Text),
    ("bytes a packet", Kind::Count),
    ("cells a packet", Kind::Count),
    ("packets a processor second", Kind::Count),
    ("millions of cells", Kind::Real(2)),
    ("millions of events", Kind::Real(1)),
];

/// The sizes of packets: one cell, two, a frame, 32 and 192 cells.
const BYTES: [u32; 5] = [40, 88, 1460, 1528, 9208];

/// The peer, in C++.
const PEER: &str = include_str!("network.cc");

/// Packets around the loop of DART's simulation, and packets over a link without an adapter and a bus in ns-3.
pub fn measure(bench: &Bench, record: &mut BenchRecord) -> Result<(), Error> {
    record.begin("network", "Network adapters simulated, a processor second", &COLUMNS)?;
    let dart = AdapterDescription::find("dart-simulation")?;
    let peer = compile(bench.directory());
    if let Err(reason) = &peer {
        eprintln!("ns-3 is left out: {reason}");
    }
    for bytes in BYTES {
        let cells = dart.link.units(bytes);
        let packets = 3_200_000 / u64::from(cells + 8);
        let settings =
            TrafficSettings { circuits: 16, ..TrafficSettings::new(TrafficDirection::Loop, bytes, packets) };
        let ours = || -> Result<u64, Error> { Ok(Traffic::run(&dart, settings)?.counts.events) };
        let (seconds, events) = cheapest(bench.options.runs, libc::RUSAGE_SELF, ours)?;
        row(record, "pathlength", bytes, Some(cells), packets, seconds, events)?;
        if let Ok(peer) = &peer {
            let packets = packets / 10;
            let run = || simulate(peer, packets, bytes);
            let (seconds, events) = cheapest(bench.options.runs, libc::RUSAGE_CHILDREN, run)?;
            row(record, "ns-3", bytes, None, packets, seconds, events)?;
        }
    }
    Ok(())
}

/// A row of the table; ns-3 has no cells.
fn row(
    record: &mut BenchRecord,
    name: &str,
    bytes: u32,
    cells: Option<u32>,
    packets: u64,
    seconds: f64,
    events: u64,
) -> Result<(), Error> {
    let rate = packets as f64 / seconds;
    record.row(vec![
        name.into(),
        u64::from(bytes).into(),
        cells.map(u64::from).into(),
        (rate as u64).into(),
        cells.map_or(Value::Missing, |cells| Value::Real(rate * f64::from(cells) / 1e6)),
        (events as f64 / seconds / 1e6).into(),
    ])
}

/// The least processor seconds of several runs, and the events of one.
fn cheapest(runs: u32, of: libc::c_int, run: impl Fn() -> Result<u64, Error>) -> Result<(f64, u64), Error> {
    let mut least = f64::INFINITY;
    let mut events = 0;
    for _ in 0..runs {
        let before = used(of);
        events = run()?;
        least = least.min(used(of) - before);
    }
    Ok((least, events))
}

/// The processor seconds of this process, or of its children that have ended.
fn used(of: libc::c_int) -> f64 {
    // SAFETY: A structure of numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: The call writes the structure.
    unsafe { libc::getrusage(of, &mut usage) };
    Used::new(&usage).total()
}

/// Compiles the peer.
fn compile(folder: &Path) -> Result<PathBuf, Error> {
    let (source, program) = (folder.join("network.cc"), folder.join("network-ns3"));
    std::fs::write(&source, PEER)?;
    let libraries = ["-lns3-core", "-lns3-network", "-lns3-point-to-point"];
    let mut compiler = Command::new("c++");
    compiler.args(["-O2", "-std=c++17", "-o"]).arg(&program).arg(&source);
    let output = compiler.args(libraries).output()?;
    match output.status.success() {
        true => Ok(program),
        false => Err("it is not installed: run ./setup bench".into()),
    }
}

/// Runs the peer. Gives the number of its events.
fn simulate(peer: &Path, packets: u64, bytes: u32) -> Result<u64, Error> {
    let output = Command::new(peer).args([packets.to_string(), bytes.to_string()]).output()?;
    if !output.status.success() {
        return Err("ns-3 has lost packets".into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
