//! Descriptions of machines: valid ones, and the errors of invalid ones.

use events::{Block, Consumer, Thread};
use pathlength_machine::{Caches, Machine, MachineSetting, Prefetch, Replacement, Sweep, WritePolicy};
use proptest::prelude::*;

const GOOD: &str = r#"
title = "A machine"

[processor]
name = "Test"
cpu = "ev56"
clock_mhz = 400

[caches.icache]
level = 1
holds = "instructions"
size = "8K"
ways = 1
line = 32
prefetch = { stream = 4 }
latency = 1

[caches.dcache]
level = 1
holds = "data"
size = "8 K"
ways = 1
line = 32
write = "through"
write_buffer = { entries = 6 }
latency = 2

[caches.scache]
level = 2
holds = "both"
size = 98304
ways = 3
line = 64
replacement = "round-robin"
allocate_on_write = true
includes = ["dcache"]
latency = 8

[translation_buffers.dtb]
holds = "data"
entries = 64
page = "8K"
replacement = "not-last-used"
miss_cycles = 30

[memory]
latency_ns = 200
"#;

#[test]
fn a_valid_description_is_read() {
    let machine = Machine::from_toml(GOOD).unwrap();
    let names: Vec<&str> = machine.caches.iter().map(|cache| cache.name.as_str()).collect();
    assert_eq!(names, ["icache", "dcache", "scache"]);
    let [icache, dcache, scache] = &machine.caches[..] else { unreachable!() };
    assert_eq!((icache.size, icache.sets(), icache.prefetch), (8192, 256, Some(Prefetch::Stream(4))));
    assert_eq!((dcache.write, dcache.write_buffer.unwrap().entries), (WritePolicy::Through, 6));
    assert_eq!(
        (scache.sets(), scache.replacement, scache.write),
        (512, Replacement::Fifo, WritePolicy::Back)
    );
    assert_eq!(machine.translation_buffers[0].ways(), 64);
}

/// A change to the valid description, and the error.
#[test]
fn an_impossible_machine_is_rejected_with_field_and_reason() {
    let table = [
        ("clock_mhz = 400", "clock_mhz = 0", "processor.clock_mhz: 0 is no clock"),
        (
            "\"ev56\"",
            "\"ev7\"",
            "processor.cpu: unknown Alpha implementation \"ev7\": use ev4, ev5, ev56, pca56, ev6 or ev67",
        ),
        (
            "size = 98304",
            "size = 98300",
            "caches.scache.size: 98300 bytes are not a number of sets of 3 lines of 64 bytes",
        ),
        (
            "size = 98304",
            "size = 96000",
            "caches.scache.size: 500 (the number of sets) is not a power of two",
        ),
        ("size = 98304", "size = 16", "caches.scache.size: 16 bytes do not hold a line of 64"),
        (
            "size = 98304",
            "size = \"1536M\"",
            "caches.scache.size: 1610612736 bytes are more than 16777216 lines",
        ),
        ("ways = 3", "ways = 0", "caches.scache.ways: a set has at least one line"),
        ("line = 64", "line = 48", "caches.scache.line: 48 is not a power of two"),
        (
            "line = 64",
            "line = 16",
            "caches.scache.line: 16 is less than the 32 of icache, which is closer to the processor",
        ),
        ("line = 64", "line = 8192", "caches.scache.line: 8192 is not between 4 and 4096 bytes"),
        ("level = 2", "level = 3", "caches.scache.level: there is level 3 but no level 2"),
        ("level = 2", "level = 1", "caches.scache.level: another one holds the same at level 1"),
        ("level = 2", "level = 0", "caches.scache.level: levels are numbered from 1"),
        (
            "latency = 8",
            "latency = 1",
            "caches.scache.latency: 1 is less than the 2 of dcache, which is closer to the processor",
        ),
        ("latency = 8", "latency = nan", "caches.scache.latency: NaN is no number of cycles"),
        (
            "latency_ns = 200",
            "latency_ns = 10",
            "memory.latency_ns: 10 ns are 4 cycles, less than the 8 of a cache",
        ),
        ("latency_ns = 200", "latency_ns = -1", "memory.latency_ns: -1 is no time"),
        (
            "\"through\"",
            "\"back\"",
            "caches.dcache.write_buffer: only a cache that writes through has a write buffer: others write back lines",
        ),
        ("entries = 6", "entries = 0", "caches.dcache.write_buffer.entries: 0 is not 1 to 1024"),
        ("stream = 4", "stream = 0", "caches.icache.prefetch: 0 is not 1 to 64 lines"),
        (
            "latency = 2",
            "latency = 2\nreplacement = \"not-last-used\"",
            "caches.dcache.replacement: with one way there is nothing to choose: not-last-used needs two",
        ),
        (
            "latency = 2",
            "latency = 2\nvictim_lines = 5000",
            "caches.dcache.victim_lines: more than 1024 are a cache",
        ),
        ("[\"dcache\"]", "[\"l1\"]", "caches.scache.includes: \"l1\" is no cache closer to the processor"),
        (
            "[\"dcache\"]",
            "[\"scache\"]",
            "caches.scache.includes: \"scache\" is no cache closer to the processor",
        ),
        (
            "entries = 64",
            "entries = 0",
            "translation_buffers.dtb.entries: a translation buffer has at least one entry",
        ),
        (
            "entries = 64",
            "entries = 64\nways = 3",
            "translation_buffers.dtb.ways: 64 entries are not a number of sets of 3",
        ),
        (
            "entries = 64",
            "entries = 60\nways = 4",
            "translation_buffers.dtb.ways: 15 (the number of sets) is not a power of two",
        ),
        ("page = \"8K\"", "page = \"9K\"", "translation_buffers.dtb.page: 9216 is not a power of two"),
        ("page = \"8K\"", "page = 256", "translation_buffers.dtb.page: 256 is not between 512 bytes and 4G"),
        (
            "miss_cycles = 30",
            "miss_cycles = -1",
            "translation_buffers.dtb.miss_cycles: -1 is no number of cycles up to a million",
        ),
    ];
    for (from, to, said) in table {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = Machine::from_toml(&text).expect_err(to);
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_syntax_error_is_reported_with_its_line() {
    let table = [
        ("ways = 3", "wais = 3", "unknown field `wais`"),
        ("ways = 3", "", "missing field `ways`"),
        ("size = \"8K\"", "size = \"8Q\"", "a number of bytes, as 32, \"8K\" or \"2M\""),
        ("size = \"8K\"", "size = \"99999999999G\"", "a number of bytes"),
        ("size = \"8K\"", "size = -1", "a number of bytes"),
        (
            "\"round-robin\"",
            "\"best\"",
            "\"best\" is no replacement policy: give lru, fifo, round-robin, random, not-last-used",
        ),
        ("\"round-robin\"", "3", "expected the name of a replacement policy: lru, fifo,"),
        ("title = \"A machine\"", "title = ", "line 2"),
    ];
    for (from, to, said) in table {
        let error = Machine::from_toml(&GOOD.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(said) && error.contains("line"), "{error}");
    }
}

#[test]
fn a_machine_can_be_based_on_another() {
    let text = "base = \"alphastation500-ev5\"\n[processor]\nclock_mhz = 433\n[caches.bcache]\nsize = \"4M\"";
    let (machine, base) = (Machine::from_toml(text).unwrap(), Machine::find("alphastation500").unwrap());
    assert_eq!((machine.processor.clock_mhz, machine.processor.cpu.as_deref()), (433.0, Some("ev5")));
    assert_eq!(machine.caches[..3], base.caches[..3]);
    assert_eq!((machine.caches[3].size, machine.caches[3].ways), (4 << 20, base.caches[3].ways));
    let error = Machine::from_toml("base = \"vax\"").unwrap_err().to_string();
    assert!(
        error.starts_with("base: no machine is called \"vax\": use alpha21264, alphaserver4100, "),
        "{error}"
    );
    let error = Machine::from_toml("base = \"qemu\"\n[caches.l2]\nways = 5").unwrap_err().to_string();
    assert!(error.starts_with("caches.l2.size: 2097152 bytes are not a number of sets of 5"), "{error}");
}

#[test]
fn machines_are_found_by_name_or_in_files() {
    assert!(Machine::all().count() >= 6);
    for (name, machine) in Machine::all() {
        assert_eq!(Machine::find(name).unwrap(), machine);
    }
    let error = Machine::find("pdp11").unwrap_err().to_string();
    assert!(
        error.starts_with("no machine is called \"pdp11\": use alpha21264, alphaserver4100, "),
        "{error}"
    );
    let error = Machine::find("no/such.toml").unwrap_err().to_string();
    assert!(error.starts_with("cannot read the machine's file no/such.toml"), "{error}");
}

proptest! {
    /// A damaged description is rejected, or describes a machine that can be simulated.
    #[test]
    fn damaged_descriptions_do_no_harm(
        cuts in prop::collection::vec((0..GOOD.len(), 0..4usize, "[0-9a-z\"={}\\[\\]\n.-]{0,3}"), 1..4),
    ) {
        let mut text = GOOD.to_owned();
        for (start, length, put) in cuts {
            let start = start.min(text.len());
            text.replace_range(start..(start + length).min(text.len()), &put);
        }
        if let Ok(machine) = Machine::from_toml(&text) {
            let mut caches = Caches::new(&machine);
            caches.define(&Block::new(&isa::Alpha, 0x1_2000_0000, [0xa421_0000, 0xb421_0000]));
            caches.executed(Thread::default(), &[!0, 0x1000, 0x1ffe]);
            prop_assert_eq!(caches.executions(0), 1);
        }
    }
}

#[test]
fn settings_change_fields() {
    let settings: Vec<MachineSetting> = [
        "dcache.size=16K",
        "caches.scache.replacement=lru",
        "processor.clock_mhz=600.5",
        "icache.prefetch.stream=8",
        "dcache.write_buffer=none",
        "dcache.write=back",
        "pipeline.loads.outstanding=8",
        "title=Changed: with an equals sign (=)",
    ]
    .map(|text| text.parse().unwrap())
    .into();
    let machine = Machine::find_with("alphaserver8400", &settings).unwrap();
    let cache = |name| machine.caches.iter().find(|cache| cache.name == name).unwrap();
    let (dcache, scache) = (cache("dcache"), cache("scache"));
    assert_eq!((dcache.size, dcache.write_buffer, dcache.write), (16 << 10, None, WritePolicy::Back));
    assert_eq!((scache.replacement, cache("icache").prefetch), (Replacement::Lru, Some(Prefetch::Stream(8))));
    assert_eq!((machine.processor.clock_mhz, machine.pipeline.unwrap().loads.outstanding), (600.5, 8));
    assert_eq!(machine.title, "Changed: with an equals sign (=)");
    // Everything else is as it was.
    assert_eq!(cache("bcache").size, 4 << 20);
    assert_eq!(Machine::find_with("dec3000", &[]).unwrap(), Machine::find("dec3000").unwrap());
}

#[test]
fn wrong_settings_are_rejected_with_what_there_is() {
    let table = [
        (
            "l9.size=1K",
            "l9.size: there is no l9; there are bcache, dcache, icache, scache, dtb, itb, and title,",
        ),
        (
            "caches.l9.size=1K",
            "caches.l9.size: there is no l9 in caches; there are bcache, dcache, icache, scache",
        ),
        (
            "dcache.sizes=1K",
            "dcache.sizes=1K: unknown field `sizes`, expected one of `level`, `holds`, `size`,",
        ),
        ("dcache.size=big", "dcache.size=big: invalid value: string \"big\", expected a number of bytes"),
        ("dcache.size=none", "dcache.size=none: missing field `size`"),
        (
            "dcache.replacement=best",
            "dcache.replacement=best: \"best\" is no replacement policy: give lru, fifo,",
        ),
        ("dcache=16K", "dcache: dcache has several fields: name one of them"),
        ("memory=1", "memory: memory has several fields: name one of them"),
        ("dcache.size.bytes=1", "dcache.size.bytes=1: size has no fields"),
        ("dcache.ways=3", "caches.dcache.size: 8192 bytes are not a number of sets of 3 lines"),
        ("pipeline.classes.jmp.latency=2", "missing field `units`"),
        (
            "scache.prefetch=stream",
            "scache.prefetch=stream: \"stream\" is no prefetching: give { stream = LINES } or { next-lines = LINES }",
        ),
        ("scache.prefetch.stream=many", "give { stream = LINES } or { next-lines = LINES }"),
        (
            "dcache.write_buffer=6",
            "dcache.write_buffer=6: invalid type: integer `6`, expected { entries = NUMBER }",
        ),
        (
            "pipeline.loads=6",
            "expected a section with fields: name one of them, SECTION.FIELD; it is the section Loads",
        ),
        ("pipeline.split=6", "expected a list, [VALUE, VALUE]"),
        ("pipeline.classes=6", "expected names with values, { NAME = VALUE }"),
        (
            "pipeline.classes.load.latency=3",
            "pipeline.classes.load.latency: loads take the latency of the cache that serves them: set that of the cache",
        ),
        ("pipeline.classes.add.beyond_cache=3", "only loads take the latency of a cache"),
        ("dcache.latency=300", "caches.scache.latency: 8 is less than the 300 of dcache"),
    ];
    for (setting, expected) in table {
        let error =
            Machine::find_with("alphastation500", &[setting.parse().unwrap()]).unwrap_err().to_string();
        assert!(error.contains(expected), "{setting}: {error}");
        assert!(!error.contains('\n'), "{setting}: {error}");
    }
    for text in ["dcache.size", "=1", ".size=1", "dcache.=1", "dcache.size=", ""] {
        assert!(text.parse::<MachineSetting>().unwrap_err().contains("dcache.size=16K"), "{text}");
    }
    for text in ["dcache.size=", "dcache.size=8K,,16K", "dcache.size=8K,8K", "dcache.size=8K,"] {
        assert!(text.parse::<Sweep>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_setting_panics(field in "[a-z.]{0,20}|(dcache|caches|pipeline)\\.[a-z_.]{0,12}", value in ".{0,12}") {
        if let Ok(setting) = format!("{field}={value}").parse::<MachineSetting>() {
            let _ = Machine::find_with("alphastation500", &[setting]);
        }
    }
}
