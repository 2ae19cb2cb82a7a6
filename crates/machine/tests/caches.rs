//! The cache model against a reference model of the same machine, on random machines and programs.

mod plain;

use events::record::{Event, Mark};
use events::{Block, Consumer, Thread};
use pathlength_machine::{
    Cache, Caches, Crossing, CurvePoint, Hierarchy, HintedRegions, Holds, LineTraffic, Machine, MissClass,
    MissRatioCurves, Model, Prefetch, Replacement, Request, TranslationBuffer, WarmUp, WritePolicy,
};
use plain::{Plain, PlainServed, Sets, pages_of_entry};
use proptest::prelude::*;
use testing::sample;

/// A random machine in TOML, so small that every event happens.
fn machine() -> impl Strategy<Value = String> {
    let replacement = || prop::sample::select(Replacement::names());
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
        let hints = prop::sample::select(&["[]", "[2]", "[8, 64]", "[2, 4, 32]"]);
        (prop::sample::select(&[(1, 1), (2, 2), (4, 4), (4, 2), (8, 8)]), replacement(), hints).prop_map(
            |((entries, ways), replacement, hints)| {
                let replacement = if ways == 1 { "lru" } else { replacement };
                let hints = if ways == entries { hints } else { "[]" };
                format!(
                    "entries = {entries}\nways = {ways}\npage = 512\nreplacement = \"{replacement}\"\nmiss_cycles = 1\n\
                     granularity_hints = {hints}\n"
                )
            },
        )
    };
    // In many machines L1 misses can be deferred.
    let deferrable = (0..3u32, prop::sample::select(&["back", "ignored"])).prop_map(|(sets, write)| {
        format!(
            "size = {}\nways = 8\nwrite = \"{write}\"\nallocate_on_write = true\nlatency = 1\n",
            (32 << sets) * 8
        )
    });
    let l1 = (prop::bool::weighted(0.4), cache(1), cache(1), deferrable.clone(), deferrable);
    let l1 = l1.prop_map(
        |(is_deferrable, i, d, deferrable_i, deferrable_d)| {
            if is_deferrable { (deferrable_i, deferrable_d) } else { (i, d) }
        },
    );
    let includes = prop::sample::select(&["[]", "[\"d\"]", "[\"i\", \"d\"]"]);
    let crossing = prop::sample::select(&["both", "first"]);
    // Data lines may be shorter than an access.
    let data_line = prop::sample::select(&[32, 32, 4]);
    let shape = (0..6u8, includes, crossing, any::<bool>(), data_line, hinted());
    (shape, l1, cache(4), cache(16), buffer(), buffer(), buffer()).prop_map(
        |((shape, includes, crossing, is_long, data_line, hinted), (i, d), l2, l3, itb, dtb, l2_tlb)| {
            let line = if is_long { 64 } else { 32 };
            let mut text =
                format!("title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\ncrossing = \"{crossing}\"\n");
            if shape == 5 {
                text += &format!("[caches.u]\nlevel = 1\nholds = \"both\"\nline = 32\n{i}");
                text += &format!("[translation_buffers.u]\nholds = \"both\"\n{itb}");
            } else {
                text += &format!("[caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\n{i}");
                text += &format!("[caches.d]\nlevel = 1\nholds = \"data\"\nline = {data_line}\n{d}");
                text += &format!("[translation_buffers.i]\nholds = \"instructions\"\n{itb}");
                text += &format!("[translation_buffers.d]\nholds = \"data\"\n{dtb}");
            }
            let includes = if shape == 5 { "[]" } else { includes };
            if shape >= 1 {
                text += &format!(
                    "[caches.l2]\nlevel = 2\nholds = \"both\"\nline = {line}\nincludes = {includes}\n{l2}"
                );
                text += &format!("[translation_buffers.l2]\nlevel = 2\nholds = \"both\"\n{l2_tlb}");
            }
            if shape >= 3 {
                text += &format!(
                    "[caches.l3]\nlevel = 3\nholds = \"both\"\nline = 64\nincludes = [\"l2\"]\n{l3}"
                );
            }
            text + "[memory]\nlatency_ns = 1000\n" + &hinted
        },
    )
}

/// Regions with granularity hints, as a field of the memory: none, one, two, or all, mostly not aligned to pages.
fn hinted() -> impl Strategy<Value = String> {
    let region = |first: u64, length: u64, most: &str| {
        format!("{:#x}-{:#x}{most}", first * 0x100, first * 0x100 + length * 0x100 + 0xff)
    };
    let most = || prop::sample::select(&["", "", ":2", ":8", ":64"]);
    let one =
        (0..0x180u64, 0..0x200u64, most()).prop_map(move |(first, length, most)| region(first, length, most));
    let two = (0..0x40u64, 0..0x80u64, 0..0x40u64, 0..0x100u64, most(), most()).prop_map(
        move |(first, length, between, other, most, other_most)| {
            let second = first + length + 1 + between;
            format!("{}+{}", region(first, length, most), region(second, other, other_most))
        },
    );
    let regions = prop_oneof![Just(String::new()), Just("all".into()), Just("all:8".into()), one, two];
    regions.prop_map(|regions| match regions.is_empty() {
        true => regions,
        false => format!("granularity_hints = \"{regions}\"\n"),
    })
}

/// Random addresses, close together so that lines are reused; some differ in high bits only.
fn data_address() -> impl Strategy<Value = u64> {
    let low = prop_oneof![0..0x200u64, 0..0x1000u64, 0..0x8000u64, Just(0x100)];
    (low, prop::sample::select(&[0u64, 0, 0, 0, 1, 2])).prop_map(|(low, high)| low + (high << 20))
}

/// Random fetches, loads and stores that reuse lines.
fn accesses(count: usize) -> impl Strategy<Value = Vec<(u8, u64, u8)>> {
    prop::collection::vec((0..4u8, data_address(), prop::sample::select(&[1u8, 2, 4, 8])), 1..count)
}

fn same_as_plain(text: &str, hierarchy: &mut Hierarchy, accesses: &[(u8, u64, u8)]) {
    let machine = Machine::from_toml(text).expect(text);
    let mut plain = Plain::new(&machine);
    for (number, &(kind, random, size)) in accesses.iter().enumerate() {
        // Mostly aligned, as programs are.
        let address = if random % 7 == 0 { random } else { random & !7 };
        let (served, way): (_, PlainServed) = match kind {
            0 => (hierarchy.fetch(0x1_0000 + address), plain.fetch(0x1_0000 + address)),
            1 | 2 => (hierarchy.load(address, size), plain.data(address, size, false)),
            _ => (hierarchy.store(address, size), plain.data(address, size, true)),
        };
        let way_here = (served.cache_misses, served.level, served.tlb_misses);
        assert_eq!(way_here, way, "access {number}, kind {kind} at {address:#x} of\n{text}");
    }
    let buffer_misses: Vec<_> = hierarchy.buffer_misses().collect();
    assert_eq!(buffer_misses, plain.buffer_misses(), "{text}");
    assert_eq!(hierarchy.counts().count(), machine.caches.len());
    assert_eq!(plain.tallies().len(), machine.caches.len());
    for (counts, tally) in hierarchy.counts().zip(plain.tallies()) {
        assert_eq!(counts.requests, tally.requests, "{text}");
        assert_eq!(counts.misses, tally.misses, "{text}");
        assert_eq!(counts.traffic(), tally.traffic(), "{text}");
        let others = (counts.written_back, counts.from_victims, counts.from_stream, counts.merged);
        assert_eq!(
            others,
            (tally.written_back, tally.from_victims, tally.from_stream, tally.merged),
            "{text}"
        );
    }
}

/// Random blocks of loads, stores and other instructions, with their addresses.
fn blocks() -> impl Strategy<Value = Vec<(u64, Vec<u32>)>> {
    // addq, ldq, ldl, stq, ldq_u to r31 (a no-operation), ldbu, stl_c, wh64.
    let words = [
        0x4020_0400,
        0xa420_0000,
        0xa020_0000,
        0xb420_0000,
        0x2fe0_0000,
        0x2820_0000,
        0xb820_0000,
        0x63ff_f800,
    ];
    let block = (0..0x400u64, prop::collection::vec(prop::sample::select(words.to_vec()), 1..40));
    prop::collection::vec(block.prop_map(|(index, words)| (0x1_2000_0000 + 4 * index, words)), 1..12)
}

/// The access of a word of [`blocks`]: its bytes, and whether it is a store.
fn access(word: u32) -> Option<(u8, bool)> {
    match word >> 26 {
        0x29 => Some((8, false)),
        0x28 => Some((4, false)),
        0x2d => Some((8, true)),
        0x0a => Some((1, false)),
        0x2e => Some((4, true)),
        _ => None,
    }
}

/// An execution: process, block, and the addresses of its accesses.
type Execution = (u32, prop::sample::Index, Vec<u64>);

fn executions() -> impl Strategy<Value = Vec<Execution>> {
    let addresses = prop::collection::vec(data_address(), 40);
    prop::collection::vec((0..2u32, any::<prop::sample::Index>(), addresses), 1..60)
}

/// Calls with each execution: its process, block, address, words, and the addresses of its accesses.
fn each(
    blocks: &[(u64, Vec<u32>)],
    executions: &[Execution],
    mut call: impl FnMut(u32, usize, u64, &[u32], &[u64]),
) {
    for (process, block, addresses) in executions {
        let block = block.index(blocks.len());
        let (address, words) = &blocks[block];
        let count = words.iter().filter(|&&word| access(word).is_some()).count();
        call(*process, block, *address, words, &addresses[..count]);
    }
}

/// The bits of an address that identify a process.
fn asid_bits(process: u32) -> u64 {
    u64::from(process) << 43
}

/// A thread of a process.
fn thread(process: u32) -> Thread {
    Thread { process, number: process }
}

/// A store written through to L2 uses its line there at once, so that LRU replacement sees it in program order.
#[test]
fn write_through_stores_use_lines_in_program_order() {
    let l1 = "holds = \"data\"\nline = 32\nlatency = 1\nallocate_on_write = true";
    let machine = Machine::from_toml(&format!(
        "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
         [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [caches.d]\nlevel = 1\nsize = 128\nways = 1\nwrite = \"through\"\n{l1}\n\
         [caches.l2]\nlevel = 2\nsize = 64\nways = 2\nwrite = \"back\"\n{l1}\n"
    ));
    let mut caches = Caches::new(&machine.unwrap());
    let (load, store) = (0xa420_0000, 0xb420_0000);
    let words = [vec![load; 3], vec![store; 12], vec![load; 3]].concat();
    caches.define(&Block::new(&isa::Alpha, 0x1_2000_0000, words));
    // Three lines stay in L1; of the lines written through to L2, L2 always has two.
    let three = [0, 0x20, 0x40];
    let last = [0x60, 0xe0, 0x60];
    caches.executed(thread(0), &[&[!0], &three[..], &three, &three, &three, &three, &last].concat());
    // The last load hits the line of the load before the previous one.
    let l2 = &caches.structures()[2];
    assert_eq!((l2.accesses, l2.misses), (6, 5));
}

/// 256 lines are copied through L1 of 16 sets and L2 of 64, both with two ways: a set always has the last line of the source and the
/// last one of the destination. Lines filled for loads, filled for stores and written back by L1 and L2 follow from their policies.
#[test]
fn a_copy_moves_the_lines_worked_out_by_hand() {
    const LINES: u64 = 256;
    let back = "write = \"back\"\nallocate_on_write = true\n";
    let through = "write = \"through\"\nallocate_on_write = false\n";
    let buffered = "write = \"through\"\nallocate_on_write = false\nwrite_buffer.entries = 4\n";
    let around = "write = \"back\"\nallocate_on_write = false\n";
    let ignored = "write = \"ignored\"\nallocate_on_write = true\n";
    for (l1, l2, expected) in [
        (back, back, [[256, 256, 240], [256, 256, 192]]),
        (through, back, [[256, 0, 0], [256, 256, 192]]),
        // Four lines are still in the write buffer.
        (buffered, back, [[256, 0, 0], [256, 252, 188]]),
        (around, back, [[256, 0, 0], [256, 256, 192]]),
        (back, around, [[256, 256, 240], [256, 256, 192]]),
        (through, around, [[256, 0, 0], [256, 0, 0]]),
        (through, through, [[256, 0, 0], [256, 0, 0]]),
        (ignored, ignored, [[256, 256, 0], [256, 256, 0]]),
    ] {
        let common = "holds = \"data\"\nline = 32\nways = 2\nlatency = 1";
        let text = format!(
            "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
             [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
             [caches.d]\nlevel = 1\nsize = 1024\n{common}\n{l1}\
             [caches.l2]\nlevel = 2\nsize = 4096\n{common}\n{l2}"
        );
        let mut caches = Caches::new(&Machine::from_toml(&text).expect(&text));
        // ldq t0,0(a0); stq t0,0(a1)
        caches.define(&Block::new(&isa::Alpha, 0x1_2000_0000, &[0xa430_0000, 0xb431_0000][..]));
        let words = |word: u64| [!0, 0x10_0000 + 8 * word, 0x20_0000 + 8 * word];
        let records: Vec<u64> = [Event::Mark(Mark::UnitBegins(7)).word()]
            .into_iter()
            .chain((0..4 * LINES).flat_map(words))
            .chain([Event::Mark(Mark::UnitEnds(7)).word()])
            .collect();
        caches.executed(thread(0), &records);
        let found: Vec<_> = caches.structures().iter().filter_map(|one| one.traffic).collect();
        assert_eq!(found, expected, "{l1}{l2}");
        assert_eq!(caches.units()[0].traffic, expected.concat(), "{l1}{l2}");
        // Loads fill for the load, and a line is written back when a store needs its place.
        for (&cache, expected) in caches.data_caches().iter().zip(expected) {
            let of = |traffic| caches.traffic_of(cache, traffic, 0).collect::<Vec<_>>();
            let found = LineTraffic::ALL.map(of);
            assert_eq!(found, [vec![expected[0], 0], vec![0, expected[1]], vec![0, expected[2]]], "{l1}{l2}");
        }
    }
}

/// Wrong paths of out-of-order cores access any address.
#[test]
fn the_last_line_of_the_address_space_is_back_invalidated() {
    let mut hierarchy = Hierarchy::new(&Machine::find("alpha21264").unwrap());
    let last = u64::MAX - 7;
    hierarchy.store(last, 8);
    assert!(hierarchy.store(last, 8).is_l1_hit());
    // The next level has 4 MB, is direct-mapped, and includes L1.
    hierarchy.load(last - (4 << 20), 8);
    assert!(!hierarchy.store(last, 8).is_l1_hit());
}

/// A page is used whenever one of its lines is, even if that line has been evicted since.
#[test]
fn pages_are_used_with_lines_that_were_evicted() {
    let text = "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
         [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\nsize = 256\nways = 1\nlatency = 1\n\
         [translation_buffers.d]\nholds = \"data\"\nentries = 4\npage = 512\nmiss_cycles = 1\n";
    let mut hierarchy = Hierarchy::new(&Machine::from_toml(text).unwrap());
    // Of four pages, that of the second line is the least recently used one, and that of the first line is next. Then a
    // line of another resident page evicts the first line, and a fifth page is used: the first line's page stays.
    let loads = [0x000, 0x220, 0x440, 0x660, 0x000, 0x440, 0x660, 0x400, 0x880, 0x0a0];
    same_as_plain(text, &mut hierarchy, &loads.map(|address| (1, address, 8)));
    assert_eq!(hierarchy.buffer_misses().collect::<Vec<_>>(), [[0, 5, 0]]);
}

/// Two pages of a block share an entry, and its eviction makes lines of both miss in the TLB.
#[test]
fn blocks_of_pages_have_one_entry() {
    let text = "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
         granularity_hints = \"0x0-0xfff\"\n\
         [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [translation_buffers.d]\nholds = \"data\"\nentries = 1\npage = 512\nmiss_cycles = 1\n\
         granularity_hints = [8]\n";
    let mut hierarchy = Hierarchy::new(&Machine::from_toml(text).unwrap());
    // Eight pages, then one outside of the region, then the first line of two of the eight, which are in the cache.
    let mut loads: Vec<u64> = (0..8).map(|page| page * 0x220).collect();
    loads.extend([0x1000, 0x000, 0x440]);
    let loads: Vec<_> = loads.into_iter().map(|address| (1, address, 8)).collect();
    same_as_plain(text, &mut hierarchy, &loads);
    assert_eq!(hierarchy.buffer_misses().collect::<Vec<_>>(), [[0, 3, 0]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sample(150, 600), ..ProptestConfig::default() })]

    /// Each instruction of random blocks has the misses that it has in the reference model.
    #[test]
    fn instructions_miss_as_in_the_reference_model(
        text in machine(),
        blocks in blocks(),
        executions in executions(),
    ) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut caches = Caches::new(&machine);
        let mut plain = Plain::new(&machine);
        blocks.iter().for_each(|(address, words)| caches.define(&Block::new(&isa::Alpha, *address, &words[..])));
        let path = |instructions: bool| -> Vec<usize> {
            (0..machine.caches.len()).filter(|&index| machine.caches[index].holds.has(instructions)).collect()
        };
        let buffers = |instructions: bool| -> Vec<usize> {
            let list = &machine.translation_buffers;
            (0..list.len()).filter(|&index| list[index].holds.has(instructions)).map(|index| index + machine.caches.len()).collect()
        };
        let structures = machine.caches.len() + machine.translation_buffers.len();
        let mut expected: Vec<Vec<Vec<u64>>> =
            vec![blocks.iter().map(|(_, words)| vec![0; words.len()]).collect(); structures];
        // Of each instruction and cache, lines filled for loads, filled for stores, and written back.
        let mut moved: Vec<Vec<Vec<[u64; 3]>>> =
            vec![blocks.iter().map(|(_, words)| vec![[0; 3]; words.len()]).collect(); machine.caches.len()];
        let mut before = vec![[0; 3]; machine.caches.len()];
        let mut instructions = 0;
        let note = |expected: &mut Vec<Vec<Vec<u64>>>, is_fetch: bool, way: PlainServed, block: usize, position: usize| {
            let missed = path(is_fetch).into_iter().take(way.0.into());
            let untranslated = buffers(is_fetch).into_iter().take(way.2.into());
            missed.chain(untranslated).for_each(|structure| expected[structure][block][position] += 1);
        };
        // Consecutive records of one process are passed on together.
        let (mut records, mut current) = (Vec::new(), 0);
        each(&blocks, &executions, |process, block, address, words, addresses| {
            if process != current {
                caches.executed(thread(current), &std::mem::take(&mut records));
                current = process;
            }
            records.push(!(block as u64));
            records.extend(addresses);
            let mut addresses = addresses.iter();
            for (position, &word) in words.iter().enumerate() {
                let fetched = address + 4 * position as u64;
                if position == 0 || fetched.is_multiple_of(32) {
                    let way = plain.fetch(fetched + asid_bits(process));
                    note(&mut expected, true, way, block, position);
                }
                if let Some((size, is_store)) = access(word) {
                    let first = addresses.next().unwrap() + asid_bits(process);
                    // Each line of an access can miss by itself.
                    for way in plain.parts(first, size, is_store) {
                        note(&mut expected, false, way, block, position);
                    }
                }
                for ((moved, before), now) in moved.iter_mut().zip(&mut before).zip(plain.tallies()) {
                    let own = &mut moved[block][position];
                    *own = std::array::from_fn(|kind| own[kind] + now.traffic()[kind] - before[kind]);
                    *before = now.traffic();
                }
                instructions += 1;
            }
        });
        caches.executed(thread(current), &records);
        for (structure, by_block) in expected.iter().enumerate() {
            for (block, expected) in by_block.iter().enumerate() {
                let found: Vec<u64> = caches.misses_of(structure, MissClass::Unknown, block as u32).collect();
                prop_assert_eq!(&found, expected, "structure {} block {} of\n{}", structure, block, text);
            }
        }
        for &cache in caches.data_caches() {
            for (block, expected) in moved[cache].iter().enumerate() {
                for (kind, traffic) in LineTraffic::ALL.into_iter().enumerate() {
                    let found: Vec<u64> = caches.traffic_of(cache, traffic, block as u32).collect();
                    let expected: Vec<u64> = expected.iter().map(|moved| moved[kind]).collect();
                    prop_assert_eq!(found, expected, "{:?} of {} block {} of\n{}", traffic, cache, block, text);
                }
            }
        }
        let found = caches.structures();
        let fetches = path(true).first().map_or(0, |&index| if machine.caches[index].holds == Holds::Both { 0 } else { instructions });
        prop_assert!(found[0].accesses >= fetches);
        prop_assert_eq!(found.len(), structures);
        for (structure, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(structure.misses, expected.iter().flatten().sum::<u64>());
        }
    }

    /// The classes of misses follow their definitions, and classification does not change their number.
    #[test]
    fn misses_are_classified_as_defined(blocks in blocks(), executions in executions(), ways in 0..3u32) {
        let text = format!(
            "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\n\
             size = 512\nways = {}\nwrite = \"ignored\"\nallocate_on_write = true\nlatency = 1\n[memory]\nlatency_ns = 1000",
            1 << ways
        );
        let machine = Machine::from_toml(&text).expect(&text);
        let mut caches = Caches::classified(&machine);
        blocks.iter().for_each(|(address, words)| caches.define(&Block::new(&isa::Alpha, *address, &words[..])));
        let (mut real, mut ideal) = (Sets::new(16 >> ways, 1 << ways, Replacement::Lru), Sets::new(1, 16, Replacement::Lru));
        let (mut seen, mut expected) = (std::collections::HashSet::new(), [0; MissClass::COUNT]);
        each(&blocks, &executions, |process, block, _, words, addresses| {
            let mut records = vec![!(block as u64)];
            records.extend(addresses);
            caches.executed(thread(process), &records);
            let sizes = words.iter().filter_map(|&word| access(word));
            for (&address, (size, _)) in addresses.iter().zip(sizes) {
                let first = address + asid_bits(process);
                for line in first / 32..=(first + u64::from(size) - 1) / 32 {
                    let [is_hit, would_hit] = [&mut real, &mut ideal].map(|sets| {
                        let is_hit = sets.touch(line, false);
                        if !is_hit {
                            sets.fill(line, false);
                        }
                        is_hit
                    });
                    let is_new = seen.insert(line);
                    let class = if is_new { MissClass::Compulsory } else if would_hit { MissClass::Conflict } else { MissClass::Capacity };
                    expected[class as usize] += u64::from(!is_hit);
                }
            }
        });
        prop_assert_eq!(caches.structures()[0].classes, expected);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: sample(20, 40), ..ProptestConfig::default() })]

    /// One pass counts the misses that separate simulations of each size count.
    #[test]
    fn curves_are_separate_runs(
        blocks in blocks(),
        executions in executions(),
        line in prop::sample::select(&[16, 32, 64, 256]),
    ) {
        let streams = [Holds::Instructions, Holds::Data, Holds::Both];
        let mut curves = MissRatioCurves::new(line, 32 << 10, &streams).unwrap();
        blocks.iter().for_each(|(address, words)| curves.define(&Block::new(&isa::Alpha, *address, &words[..])));
        let mut lines = [const { Vec::new() }; 3];
        each(&blocks, &executions, |process, block, address, words, addresses| {
            let mut records = vec![!(block as u64)];
            records.extend(addresses);
            curves.executed(thread(process), &records);
            let mut addresses = addresses.iter();
            for (position, &word) in words.iter().enumerate() {
                let fetched = address + 4 * position as u64 + asid_bits(process);
                if position == 0 || fetched.is_multiple_of(line) {
                    lines[0].push(fetched / line);
                    lines[2].push(fetched / line);
                }
                if let Some((size, _)) = access(word) {
                    let first = addresses.next().unwrap() + asid_bits(process);
                    for part in [first / line, (first + u64::from(size) - 1) / line] {
                        lines[1].push(part);
                        lines[2].push(part);
                    }
                }
            }
        });
        prop_assert_eq!(curves.curves().len(), lines.len());
        for (curve, lines) in curves.curves().iter().zip(&lines) {
            // The smallest cache has room for four lines of 256 bytes.
            prop_assert_eq!(curve.points.len(), 4 * 6 + 11 - usize::from(line > 1024 / 8));
            for point in &curve.points {
                let misses = separate_run(point, line, lines);
                prop_assert_eq!(point.misses, misses, "{:?} {:?}", curve.holds, point);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sample(20, 40), ..ProptestConfig::default() })]

    /// Curves of pages, some of them in blocks, are those of TLBs.
    #[test]
    fn curves_of_pages_follow_granularity_hints(executions in executions(), hinted in hinted(), blocks in blocks()) {
        let (page, sizes) = (512, [2, 4, 32]);
        let hinted: HintedRegions = match hinted.split('"').nth(1) {
            Some(text) => text.parse().unwrap(),
            None => HintedRegions::default(),
        };
        let streams = [Holds::Data];
        let curves = MissRatioCurves::new(page, 32 << 10, &streams).unwrap();
        let mut curves = curves.with_granularity_hints(&sizes, &hinted);
        blocks.iter().for_each(|(address, words)| curves.define(&Block::new(&isa::Alpha, *address, &words[..])));
        let mut entries = Vec::new();
        each(&blocks, &executions, |process, block, _, words, addresses| {
            curves.executed(thread(process), &[&[!(block as u64)], addresses].concat());
            let of_words = words.iter().filter_map(|&word| access(word));
            for (&address, (size, _)) in addresses.iter().zip(of_words) {
                let first = address + asid_bits(process);
                for part in [first, first + u64::from(size) - 1] {
                    entries.push(pages_of_entry(part, page, &sizes, &hinted).start);
                }
            }
        });
        for point in &curves.curves()[0].points {
            prop_assert_eq!(point.misses, separate_run(point, page, &entries), "{:?} {:?}", hinted, point);
        }
    }
}

/// The misses of one cache for a sequence of lines.
fn separate_run(point: &CurvePoint, line: u64, lines: &[u64]) -> u64 {
    let entries = point.size / line;
    let ways = point.ways.unwrap_or(entries as u32);
    let mut sets = Sets::new(entries / u64::from(ways), ways, Replacement::Lru);
    let mut misses = 0;
    for &line in lines {
        if !sets.touch(line, false) {
            sets.fill(line, false);
            misses += 1;
        }
    }
    misses
}

/// A program that uses far more memory than small caches hold, and reuses it.
#[test]
fn curves_of_much_memory_are_separate_runs() {
    let (line, largest, regions) = (64, 64 << 10, 1u64 << 17);
    let mut curves = MissRatioCurves::new(line, largest, &[Holds::Data]).unwrap();
    curves.define(&Block::new(&isa::Alpha, 0x1_2000_0000, [0xa41e_0000])); // ldq v0,0(sp)
    // Random lines once each, and lines of a slowly moving working set again and again.
    let mut random = 1u64;
    let lines: Vec<u64> = (0..4 * regions)
        .map(|number| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if number % 4 == 0 {
                64 * (number / 4)
            } else {
                (64 * 64 * (random % 20) + number / 1000) % (1 << 20)
            }
        })
        .collect();
    let records: Vec<u64> = lines.iter().flat_map(|number| [!0, number * line]).collect();
    curves.executed(Thread::default(), &records);
    let curve = &curves.curves()[0];
    let points: Vec<_> = curve.points.iter().filter(|point| point.size.is_power_of_two()).collect();
    // Seven sizes, fully associative and with 1, 2, 4 and 8 ways.
    assert!(points.len() >= 7 * 5, "{points:?}");
    for point in points {
        let misses = separate_run(point, line, &lines);
        assert_eq!(point.misses, misses, "{point:?}");
    }
}

/// The largest caches have room for 64 million lines; only lines that are used cost memory.
#[test]
fn unused_lines_cost_no_memory() {
    let pages = || -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let before = pages();
    let curves = MissRatioCurves::new(16, 1 << 30, &[Holds::Instructions, Holds::Data, Holds::Both]).unwrap();
    assert!(pages() < before + (64 << 20) / 4096);
    assert_eq!(curves.curves().len(), 3);
    assert!(curves.curves().iter().all(|curve| curve.points.iter().all(|point| point.misses == 0)));
}

/// Three models: one that counts all records, one that counts those before `position`, and one that is warmed up by
/// those and counts the rest.
fn parts<M: Model>(
    make: impl Fn() -> M,
    blocks: &[(u64, Vec<u32>)],
    recorded: &[(u32, Vec<u64>)],
    position: usize,
) -> [M; 3] {
    let ready = || {
        let mut model = make();
        blocks
            .iter()
            .for_each(|(address, words)| model.define(&Block::new(&isa::Alpha, *address, &words[..])));
        model
    };
    let [mut all, mut warm_up] = [ready(), ready()];
    let mut counted = WarmUp::new(ready(), 6..7);
    for (number, (process, records)) in recorded.iter().enumerate() {
        all.executed(thread(*process), records);
        if number < position {
            warm_up.executed(thread(*process), records);
        }
        // The unit's predecessor, which is not counted, begins as well.
        let unit = if number < position { 6 } else { 7 };
        let begins = Event::Mark(Mark::UnitBegins(unit)).word();
        counted.executed(thread(*process), &[&[begins], &records[..]].concat());
    }
    assert_eq!(counted.is_warming(), position == recorded.len());
    [all, warm_up, counted.model]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sample(30, 100), ..ProptestConfig::default() })]

    /// A unit has the misses between its marks, whether those come with the records or separately.
    #[test]
    fn misses_are_those_of_their_unit(text in machine(), blocks in blocks(), executions in executions()) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut batches = Vec::new();
        each(&blocks, &executions, |_, block, _, _, addresses| {
            let unit = batches.len() as u64 / 3;
            batches.push(vec![Event::Mark(Mark::UnitBegins(unit)).word()]);
            batches.push([&[!(block as u64)], addresses].concat());
            batches.push(vec![Event::Mark(Mark::UnitEnds(unit)).word()]);
        });
        let units = |batches: &[Vec<u64>]| {
            let mut caches = Caches::new(&machine);
            blocks.iter().for_each(|(address, words)| caches.define(&Block::new(&isa::Alpha, *address, &words[..])));
            batches.iter().for_each(|batch| caches.executed(thread(0), batch));
            caches.units().to_vec()
        };
        prop_assert_eq!(units(&batches).len(), executions.len());
        prop_assert_eq!(units(&batches), units(&[batches.concat()]));
    }

    /// After a warm-up, the counts are those of all records less those of the warm-up.
    #[test]
    fn counts_go_on_from_what_warmed_up(
        text in machine(),
        blocks in blocks(),
        executions in executions(),
        position in any::<prop::sample::Index>(),
    ) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut recorded = Vec::new();
        each(&blocks, &executions, |process, block, _, _, addresses| {
            recorded.push((process, [&[!(block as u64)], addresses].concat()));
        });
        prop_assume!(!recorded.is_empty());
        let position = position.index(recorded.len());
        let [all, warm_up, counted] = parts(|| Caches::new(&machine), &blocks, &recorded, position);
        prop_assert_eq!(counted.instructions(), all.instructions() - warm_up.instructions());
        let structures = [&all, &warm_up, &counted].map(Caches::structures);
        for (structure, counted) in structures[2].iter().enumerate() {
            let [all, warm_up] = [0, 1].map(|model| &structures[model][structure]);
            prop_assert_eq!(counted.accesses, all.accesses - warm_up.accesses, "{} of\n{}", counted.name, text);
            prop_assert_eq!(counted.misses, all.misses - warm_up.misses, "{} of\n{}", counted.name, text);
            let written = [all, warm_up, counted].map(|one| one.counts.as_ref().map_or(0, |counts| counts.written_back));
            prop_assert_eq!(written[2], written[0] - written[1]);
        }
        let streams = [Holds::Instructions, Holds::Data];
        let curves = parts(|| MissRatioCurves::new(32, 4 << 10, &streams).unwrap(), &blocks, &recorded, position);
        prop_assert_eq!(curves[2].instructions(), counted.instructions());
        let [all, warm_up, counted] = curves.map(|curves| curves.curves());
        for stream in 0..streams.len() {
            let points = counted[stream].points.iter().zip(&all[stream].points).zip(&warm_up[stream].points);
            for ((counted, all), warm_up) in points {
                prop_assert_eq!(counted.misses, all.misses - warm_up.misses, "{:?}", counted);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sample(100, 400), ..ProptestConfig::default() })]

    /// Each access is served by the same level as in the reference model.
    #[test]
    fn accesses_are_served_as_in_the_reference_model(text in machine(), accesses in accesses(400)) {
        let machine = Machine::from_toml(&text).expect(&text);
        same_as_plain(&text, &mut Hierarchy::new(&machine), &accesses);
        same_as_plain(&text, &mut Hierarchy::classified(&machine), &accesses);
    }
}
