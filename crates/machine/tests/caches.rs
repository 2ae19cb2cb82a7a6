//! The caches against a plain model of the same machine, on machines and programs at random.

mod plain;

use pathlength_machine::{Caches, Hierarchy, Machine, Model, Request};
use plain::{Plain, Way};
use proptest::prelude::*;

/// A small machine at random, in TOML: so small that everything happens.
fn machine() -> impl Strategy<Value = String> {
    let replacement = || prop::sample::select(&["lru", "fifo", "random", "not-last-used"]);
    let cache = move |lines: u32| {
        let write = prop::sample::select(&["back", "through", "ignored"]);
        let prefetch = prop::sample::select(&["", "", "prefetch.next-lines = 2", "prefetch.stream = 3"]);
        let numbers = (0..3u32, prop::sample::select(&[1u32, 2, 3, 4, 8]), any::<bool>(), 0..3u32, 0..4u32);
        (numbers, replacement(), write, prefetch).prop_map(move |(numbers, replacement, write, prefetch)| {
            let (sets, ways, allocates, victims, buffer) = numbers;
            let (replacement, ways) = if ways == 1 { ("lru", 1) } else { (replacement, ways) };
            let buffer = match write {
                "through" if buffer > 0 => format!("write_buffer.entries = {buffer}"),
                _ => String::new(),
            };
            let size = (32u32 << sets) * ways * lines;
            format!(
                "size = {size}\nways = {ways}\nreplacement = \"{replacement}\"\nwrite = \"{write}\"\n\
                 allocate_on_write = {allocates}\nvictim_lines = {victims}\n{prefetch}\n{buffer}\nlatency = 1\n"
            )
        })
    };
    let buffer = move || {
        (prop::sample::select(&[(1, 1), (2, 2), (4, 4), (4, 2), (8, 8)]), replacement()).prop_map(
            |((entries, ways), replacement)| {
                let replacement = if ways == 1 { "lru" } else { replacement };
                format!("entries = {entries}\nways = {ways}\npage = 512\nreplacement = \"{replacement}\"\nmiss_cycles = 1\n")
            },
        )
    };
    let includes = prop::sample::select(&["[]", "[\"d\"]", "[\"i\", \"d\"]"]);
    let crossing = prop::sample::select(&["both", "first"]);
    let shape = (0..6u8, includes, crossing, any::<bool>());
    (shape, cache(1), cache(1), cache(4), cache(16), buffer(), buffer(), buffer()).prop_map(
        |((shape, includes, crossing, is_long), i, d, l2, l3, itb, dtb, far)| {
            let line = if is_long { 64 } else { 32 };
            let mut text =
                format!("title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\ncrossing = \"{crossing}\"\n");
            if shape == 5 {
                text += &format!("[caches.u]\nlevel = 1\nholds = \"both\"\nline = 32\n{i}");
                text += &format!("[translation_buffers.u]\nholds = \"both\"\n{itb}");
            } else {
                text += &format!("[caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\n{i}");
                text += &format!("[caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\n{d}");
                text += &format!("[translation_buffers.i]\nholds = \"instructions\"\n{itb}");
                text += &format!("[translation_buffers.d]\nholds = \"data\"\n{dtb}");
            }
            let includes = if shape == 5 { "[]" } else { includes };
            if shape >= 1 {
                text += &format!(
                    "[caches.l2]\nlevel = 2\nholds = \"both\"\nline = {line}\nincludes = {includes}\n{l2}"
                );
                text += &format!("[translation_buffers.far]\nlevel = 2\nholds = \"both\"\n{far}");
            }
            if shape >= 3 {
                text += &format!(
                    "[caches.l3]\nlevel = 3\nholds = \"both\"\nline = 64\nincludes = [\"l2\"]\n{l3}"
                );
            }
            text + "[memory]\nlatency_ns = 1000\n"
        },
    )
}

/// Accesses that come back to where they were: fetches, loads and stores.
fn accesses(count: usize) -> impl Strategy<Value = Vec<(u8, u64, u8)>> {
    let place = prop_oneof![0..0x200u64, 0..0x1000u64, 0..0x8000u64, Just(0x100)];
    prop::collection::vec((0..4u8, place, prop::sample::select(&[1u8, 2, 4, 8])), 1..count)
}

fn same_as_plain(text: &str, hierarchy: &mut Hierarchy, accesses: &[(u8, u64, u8)]) {
    let machine = Machine::from_toml(text).expect(text);
    let mut plain = Plain::new(&machine);
    for (number, &(kind, place, size)) in accesses.iter().enumerate() {
        // Mostly aligned, as programs are.
        let address = if place % 7 == 0 { place } else { place & !7 };
        let (served, way): (_, Way) = match kind {
            0 => (hierarchy.fetch(0x1_0000 + address), plain.fetch(0x1_0000 + address)),
            1 | 2 => (hierarchy.load(address, size), plain.data(address, size, false)),
            _ => (hierarchy.store(address, size), plain.data(address, size, true)),
        };
        let way_here = (served.missed, served.level, served.untranslated);
        assert_eq!(way_here, way, "access {number}, kind {kind} at {address:#x} of\n{text}");
    }
    let buffer_misses: Vec<_> = hierarchy.buffer_misses().collect();
    assert_eq!(buffer_misses, plain.buffer_misses(), "{text}");
    for (counts, tally) in hierarchy.counts().zip(plain.tallies()) {
        assert_eq!(counts.requests, tally.requests, "{text}");
        assert_eq!(counts.misses, tally.misses, "{text}");
        let others = (counts.written_back, counts.from_victims, counts.from_stream, counts.merged);
        assert_eq!(
            others,
            (tally.written_back, tally.from_victims, tally.from_stream, tally.merged),
            "{text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Each access of a random machine goes as far as in the plain model.
    #[test]
    fn accesses_go_as_far_as_in_the_plain_model(text in machine(), accesses in accesses(400)) {
        let machine = Machine::from_toml(&text).expect(&text);
        same_as_plain(&text, &mut Hierarchy::new(&machine), &accesses);
        same_as_plain(&text, &mut Hierarchy::classified(&machine), &accesses);
    }
}
