//! Descriptions of adapters: those that come with the crate, and what is refused.

use pathlength_adapter::{AdapterDescription, AdapterSetting, Traffic, TrafficDirection, TrafficSettings};

fn refused(settings: &[&str]) -> String {
    let settings: Vec<AdapterSetting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    AdapterDescription::find_with("dart", &settings).unwrap_err().to_string()
}

#[test]
fn all_adapters_move_packets_of_all_sizes() {
    for (name, description) in AdapterDescription::all() {
        for direction in [TrafficDirection::Loop, TrafficDirection::Send, TrafficDirection::Receive] {
            for bytes in [1, 40, 41, 64, 1460, 9180, 65_535] {
                let result = Traffic::run(&description, TrafficSettings::new(direction, bytes, 20));
                let result = result.unwrap_or_else(|error| panic!("{name}, {direction:?}, {bytes}: {error}"));
                let (sent, received) = (result.counts.packets_sent, result.counts.packets_received);
                let expected = match direction {
                    TrafficDirection::Loop => (20, 20),
                    TrafficDirection::Send => (20, 0),
                    TrafficDirection::Receive => (0, 20),
                };
                assert_eq!((sent, received), expected, "{name}, {direction:?}, {bytes}");
            }
        }
    }
}

#[test]
fn impossible_adapters_are_refused() {
    for (settings, reason) in [
        (&["bus.bits=48"][..], "bus.bits: PCI has 32 or 64 bits, not 48"),
        (&["bus.clock_mhz=0"], "bus.clock_mhz: 0 is not between 0.01 and 100000"),
        (&["bus.clock_mhz=nan"], "bus.clock_mhz: NaN is not between 0.01 and 100000"),
        (&["bus.line=48"], "bus.line: 48 is not a power of two"),
        (&["link.circuits=0"], "link.circuits: 0 is not between 1 and 65536"),
        (&["link.frame=1500"], "link.frame: cells of ATM have 48 bytes; leave it out"),
        (&["receive.shared=1000000"], "data_memory.kilobytes: 1065536 receive buffers leave no room"),
        (&["credits.batch=300"], "credits.batch: 300 is not between 1 and 256"),
        (&["dma.reads=2"], "dma.reads: a master has one read at a time on PCI"),
        (&["dma.write_burst=32"], "dma.write_invalidate: bursts of 32 bytes contain no whole line of 64"),
        (&["buffering=hidden"], "credits: circuits of hidden buffers have no quota"),
        (&["driver.window=0"], "driver.window: 0 is not between 1 and 65536"),
        (&["bus.speed=3"], "bus.speed=3: unknown field `speed`"),
        (&["buss.bits=32"], "buss.bits=32: unknown field `buss`"),
        (&["bus=3"], "bus=3: invalid type: integer `3`"),
        (&["title.x=3"], "title.x=3: title has no fields"),
        (&["bus.bits=none"], "bus.bits=none: missing field `bits`"),
    ] {
        let error = refused(settings);
        assert!(error.starts_with(reason), "{settings:?}: {error}");
    }
    for text in ["", "bits", "=3", "bus.=3", "bus.bits="] {
        assert_eq!(
            text.parse::<AdapterSetting>().unwrap_err(),
            "give SECTION.FIELD=VALUE, such as bus.bits=64"
        );
    }
}

#[test]
fn files_that_are_no_descriptions_are_refused() {
    let error = |text: &str| AdapterDescription::from_toml(text).unwrap_err().to_string();
    assert!(error("title = 3").contains("line 1"), "{}", error("title = 3"));
    assert!(
        error("base = 'dat'").starts_with("base: no adapter is called \"dat\": use dart, dart-simulation")
    );
    assert!(error("base = 'dart'\n[bus]\nbits = 16").starts_with("bus.bits: PCI has 32 or 64 bits"));
    let unknown = AdapterDescription::find("dat").unwrap_err().to_string();
    assert!(unknown.starts_with("no adapter is called \"dat\": use dart,"), "{unknown}");
    let folder = AdapterDescription::find("/").unwrap_err().to_string();
    assert_eq!(folder, "cannot read the adapter's file /: it is not a regular file");
}

/// Random changes of the files: values are replaced, lines are removed and doubled. Whatever is accepted also runs.
#[test]
fn damaged_files_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(9);
    let texts = ["dart", "present-day"].map(|name| {
        let path = format!("{}/../../data/adapters/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    });
    let values = [
        "0",
        "1",
        "-1",
        "7",
        "4294967295",
        "4294967296",
        "1e300",
        "nan",
        "inf",
        "'x'",
        "[]",
        "{}",
        "64",
        "4096",
        "none",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..testing::sample(1000, 100_000) {
        let mut lines: Vec<String> = random.choice(&texts).unwrap().lines().map(String::from).collect();
        for _ in 0..random.usize(1..3) {
            let line = random.usize(0..lines.len());
            match (random.u8(0..6), lines[line].split_once('=')) {
                (0, _) => drop(lines.remove(line)),
                (1, _) => lines.insert(line, lines[line].clone()),
                (_, Some((field, _))) => {
                    lines[line] = format!("{field}= {}", random.choice(&values).unwrap())
                }
                _ => {}
            }
        }
        let Ok(description) = AdapterDescription::from_toml(&lines.join("\n")) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        // It stands still at worst.
        let _ = Traffic::run(&description, TrafficSettings::new(TrafficDirection::Loop, 100, 2));
    }
    assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused");
}
