//! The caches against a plain model of the same machine, on machines and programs at random.

mod plain;

use pathlength_machine::{
    Cache, Caches, Class, Crossing, Curves, Hierarchy, Holds, Machine, Model, Point, Prefetch, Replacement,
    Request, TranslationBuffer, Warming, Write,
};
use plain::{Plain, Sets, Way};
use proptest::prelude::*;
use trace::record::{Event, Mark};
use trace::{Block, Consumer, Thread};

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
    // In many machines what the nearest caches miss may wait.
    let usual = (0..3u32, prop::sample::select(&["back", "ignored"])).prop_map(|(sets, write)| {
        format!(
            "size = {}\nways = 8\nwrite = \"{write}\"\nallocate_on_write = true\nlatency = 1\n",
            (32 << sets) * 8
        )
    });
    let nearest = (prop::bool::weighted(0.4), cache(1), cache(1), usual.clone(), usual);
    let nearest = nearest
        .prop_map(|(is_usual, i, d, usual_i, usual_d)| if is_usual { (usual_i, usual_d) } else { (i, d) });
    let includes = prop::sample::select(&["[]", "[\"d\"]", "[\"i\", \"d\"]"]);
    let crossing = prop::sample::select(&["both", "first"]);
    // Lines of data may be shorter than what is accessed.
    let data_line = prop::sample::select(&[32, 32, 4]);
    let shape = (0..6u8, includes, crossing, any::<bool>(), data_line);
    (shape, nearest, cache(4), cache(16), buffer(), buffer(), buffer()).prop_map(
        |((shape, includes, crossing, is_long, data_line), (i, d), l2, l3, itb, dtb, far)| {
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

/// Addresses that come back to where others were; some differ in high bits only.
fn place() -> impl Strategy<Value = u64> {
    let low = prop_oneof![0..0x200u64, 0..0x1000u64, 0..0x8000u64, Just(0x100)];
    (low, prop::sample::select(&[0u64, 0, 0, 0, 1, 2])).prop_map(|(low, high)| low + (high << 20))
}

/// Accesses that come back to where they were: fetches, loads and stores.
fn accesses(count: usize) -> impl Strategy<Value = Vec<(u8, u64, u8)>> {
    prop::collection::vec((0..4u8, place(), prop::sample::select(&[1u8, 2, 4, 8])), 1..count)
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
        let way_here = (served.cache_misses, served.level, served.tlb_misses);
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

/// Blocks at random: instructions that load (1 and 2), store (3) or do not access memory, at addresses.
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
    prop::collection::vec(block.prop_map(|(place, words)| (0x1_2000_0000 + 4 * place, words)), 1..12)
}

/// What the words of [`blocks`] do: bytes, and whether they write.
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

/// An execution: of which process, which block, and where its accesses go.
type Execution = (u32, prop::sample::Index, Vec<u64>);

fn executions() -> impl Strategy<Value = Vec<Execution>> {
    let addresses = prop::collection::vec(place(), 40);
    prop::collection::vec((0..2u32, any::<prop::sample::Index>(), addresses), 1..60)
}

/// Calls with each execution: its process, block, address, words, and the addresses of its accesses.
fn each(
    blocks: &[(u64, Vec<u32>)],
    executions: &[Execution],
    mut call: impl FnMut(u32, usize, u64, &[u32], &[u64]),
) {
    for (space, block, addresses) in executions {
        let block = block.index(blocks.len());
        let (address, words) = &blocks[block];
        let count = words.iter().filter(|&&word| access(word).is_some()).count();
        call(*space, block, *address, words, &addresses[..count]);
    }
}

/// What distinguishes the addresses of a process.
fn of_space(space: u32) -> u64 {
    u64::from(space) << 43
}

/// A thread of a process.
fn thread(process: u32) -> Thread {
    Thread { process, number: process }
}

/// What is written on to a cache behind the nearest is used then, not before or after: it takes its turn to leave.
#[test]
fn what_is_written_on_is_used_in_its_turn() {
    let near = "holds = \"data\"\nline = 32\nlatency = 1\nallocate_on_write = true";
    let machine = Machine::from_toml(&format!(
        "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
         [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [caches.d]\nlevel = 1\nsize = 128\nways = 1\nwrite = \"through\"\n{near}\n\
         [caches.l2]\nlevel = 2\nsize = 64\nways = 2\nwrite = \"back\"\n{near}\n"
    ));
    let mut caches = Caches::new(&machine.unwrap());
    let (load, store) = (0xa420_0000, 0xb420_0000);
    let words = [vec![load; 3], vec![store; 12], vec![load; 3]].concat();
    caches.define(&Block::new(0x1_2000_0000, words));
    // Three lines stay in the first cache; of what is written to them the second one always has two.
    let three = [0, 0x20, 0x40];
    let last = [0x60, 0xe0, 0x60];
    caches.executed(thread(0), &[&[!0], &three[..], &three, &three, &three, &three, &last].concat());
    // The last load finds what was loaded two loads before.
    let l2 = &caches.structures()[2];
    assert_eq!((l2.accesses, l2.misses), (6, 5));
}

/// A page was used when a line of its was, though another line of the cache is in that one's place since.
#[test]
fn pages_are_used_with_lines_that_have_left() {
    let text = "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[memory]\nlatency_ns = 1000\n\
         [caches.i]\nlevel = 1\nholds = \"instructions\"\nline = 32\nsize = 1024\nways = 1\nlatency = 1\n\
         [caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\nsize = 256\nways = 1\nlatency = 1\n\
         [translation_buffers.d]\nholds = \"data\"\nentries = 4\npage = 512\nmiss_cycles = 1\n";
    let mut hierarchy = Hierarchy::new(&Machine::from_toml(text).unwrap());
    // Of four pages that of the second line is used first, and that of the first line next: then another line, of a page
    // that is there, takes its place, and a fifth page comes. The first line's page stays.
    let loads = [0x000, 0x220, 0x440, 0x660, 0x000, 0x440, 0x660, 0x400, 0x880, 0x0a0];
    same_as_plain(text, &mut hierarchy, &loads.map(|address| (1, address, 8)));
    assert_eq!(hierarchy.buffer_misses().collect::<Vec<_>>(), [[0, 5, 0]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Each instruction of random blocks has the misses that it has in the plain model.
    #[test]
    fn instructions_miss_as_in_the_plain_model(
        text in machine(),
        blocks in blocks(),
        executions in executions(),
    ) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut caches = Caches::new(&machine);
        let mut plain = Plain::new(&machine);
        blocks.iter().for_each(|(address, words)| caches.define(&Block::new(*address, &words[..])));
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
        let mut instructions = 0;
        let note = |expected: &mut Vec<Vec<Vec<u64>>>, is_fetch: bool, way: Way, block: usize, position: usize| {
            let missed = path(is_fetch).into_iter().take(way.0.into());
            let untranslated = buffers(is_fetch).into_iter().take(way.2.into());
            missed.chain(untranslated).for_each(|structure| expected[structure][block][position] += 1);
        };
        // What a process executes without a break is told at once.
        let (mut records, mut process) = (Vec::new(), 0);
        each(&blocks, &executions, |space, block, address, words, addresses| {
            if space != process {
                caches.executed(thread(process), &std::mem::take(&mut records));
                process = space;
            }
            records.push(!(block as u64));
            records.extend(addresses);
            let mut addresses = addresses.iter();
            for (position, &word) in words.iter().enumerate() {
                let place = address + 4 * position as u64;
                if position == 0 || place.is_multiple_of(32) {
                    let way = plain.fetch(place + of_space(space));
                    note(&mut expected, true, way, block, position);
                }
                if let Some((size, is_store)) = access(word) {
                    let first = addresses.next().unwrap() + of_space(space);
                    // Each line that an access asks for is a miss of its own.
                    for way in plain.parts(first, size, is_store) {
                        note(&mut expected, false, way, block, position);
                    }
                }
                instructions += 1;
            }
        });
        caches.executed(thread(process), &records);
        for (structure, by_block) in expected.iter().enumerate() {
            for (block, expected) in by_block.iter().enumerate() {
                let found: Vec<u64> = caches.misses_of(structure, Class::Unknown, block as u32).collect();
                prop_assert_eq!(&found, expected, "structure {} block {} of\n{}", structure, block, text);
            }
        }
        let found = caches.structures();
        let nearest = path(true).first().map_or(0, |&index| if machine.caches[index].holds == Holds::Both { 0 } else { instructions });
        prop_assert!(found[0].accesses >= nearest);
        for (structure, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(structure.misses, expected.iter().flatten().sum::<u64>());
        }
    }

    /// Misses are of the classes that their definitions say, and as many as without.
    #[test]
    fn misses_are_classified_as_defined(blocks in blocks(), executions in executions(), ways in 0..3u32) {
        let text = format!(
            "title = \"\"\n[processor]\nname = \"\"\nclock_mhz = 1\n[caches.d]\nlevel = 1\nholds = \"data\"\nline = 32\n\
             size = 512\nways = {}\nwrite = \"ignored\"\nallocate_on_write = true\nlatency = 1\n[memory]\nlatency_ns = 1000",
            1 << ways
        );
        let machine = Machine::from_toml(&text).expect(&text);
        let mut caches = Caches::classified(&machine);
        blocks.iter().for_each(|(address, words)| caches.define(&Block::new(*address, &words[..])));
        let (mut real, mut ideal) = (Sets::new(16 >> ways, 1 << ways, Replacement::Lru), Sets::new(1, 16, Replacement::Lru));
        let (mut seen, mut expected) = (std::collections::HashSet::new(), [0; Class::COUNT]);
        each(&blocks, &executions, |space, block, _, words, addresses| {
            let mut records = vec![!(block as u64)];
            records.extend(addresses);
            caches.executed(thread(space), &records);
            let sizes = words.iter().filter_map(|&word| access(word));
            for (&address, (size, _)) in addresses.iter().zip(sizes) {
                let first = address + of_space(space);
                for line in first / 32..=(first + u64::from(size) - 1) / 32 {
                    let [is_hit, would_hit] = [&mut real, &mut ideal].map(|sets| {
                        let is_hit = sets.touch(line, false);
                        if !is_hit {
                            sets.fill(line, false);
                        }
                        is_hit
                    });
                    let is_new = seen.insert(line);
                    let class = if is_new { Class::Compulsory } else if would_hit { Class::Conflict } else { Class::Capacity };
                    expected[class as usize] += u64::from(!is_hit);
                }
            }
        });
        prop_assert_eq!(caches.structures()[0].classes, expected);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// One pass finds the misses that separate runs at each size find.
    #[test]
    fn curves_are_separate_runs(
        blocks in blocks(),
        executions in executions(),
        line in prop::sample::select(&[16, 32, 64, 256]),
    ) {
        let streams = [Holds::Instructions, Holds::Data, Holds::Both];
        let mut curves = Curves::new(line, 32 << 10, &streams).unwrap();
        blocks.iter().for_each(|(address, words)| curves.define(&Block::new(*address, &words[..])));
        let mut lines = [const { Vec::new() }; 3];
        each(&blocks, &executions, |space, block, address, words, addresses| {
            let mut records = vec![!(block as u64)];
            records.extend(addresses);
            curves.executed(thread(space), &records);
            let mut addresses = addresses.iter();
            for (position, &word) in words.iter().enumerate() {
                let fetched = address + 4 * position as u64 + of_space(space);
                if position == 0 || fetched.is_multiple_of(line) {
                    lines[0].push(fetched / line);
                    lines[2].push(fetched / line);
                }
                if let Some((size, _)) = access(word) {
                    let first = addresses.next().unwrap() + of_space(space);
                    for part in [first / line, (first + u64::from(size) - 1) / line] {
                        lines[1].push(part);
                        lines[2].push(part);
                    }
                }
            }
        });
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

/// The misses of one cache that is asked for lines of so many bytes.
fn separate_run(point: &Point, line: u64, lines: &[u64]) -> u64 {
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

/// Programs use far more memory than small caches hold, and come back to it.
#[test]
fn curves_of_much_memory_are_separate_runs() {
    let (line, largest, pieces) = (64, 64 << 10, 1u64 << 17);
    let mut curves = Curves::new(line, largest, &[Holds::Data]).unwrap();
    curves.define(&Block::new(0x1_2000_0000, [0xa41e_0000])); // ldq v0,0(sp)
    // Far places once, and near ones, which move slowly, again and again.
    let mut random = 1u64;
    let lines: Vec<u64> = (0..4 * pieces)
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
    for point in curves.curves()[0].points.iter().filter(|point| point.size.is_power_of_two()) {
        let misses = separate_run(point, line, &lines);
        assert_eq!(point.misses, misses, "{point:?}");
    }
}

/// The largest caches that may be asked for have room for 64 million lines; only what is used costs memory.
#[test]
fn what_no_cache_has_costs_no_memory() {
    let pages = || -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let before = pages();
    let curves = Curves::new(16, 1 << 30, &[Holds::Instructions, Holds::Data, Holds::Both]).unwrap();
    assert!(pages() < before + (64 << 20) / 4096);
    assert!(curves.curves().iter().all(|curve| curve.points.iter().all(|point| point.misses == 0)));
}

/// A model that heard all, one that heard what is before a place, and one that counts what is behind it.
fn parts<M: Model>(
    make: impl Fn() -> M,
    blocks: &[(u64, Vec<u32>)],
    heard: &[(u32, Vec<u64>)],
    place: usize,
) -> [M; 3] {
    let ready = || {
        let mut model = make();
        blocks.iter().for_each(|(address, words)| model.define(&Block::new(*address, &words[..])));
        model
    };
    let [mut all, mut before] = [ready(), ready()];
    let mut behind = Warming::new(ready(), 6..7);
    for (number, (space, records)) in heard.iter().enumerate() {
        all.executed(thread(*space), records);
        if number < place {
            before.executed(thread(*space), records);
        }
        // The unit's predecessor, which is not counted, begins as well.
        let unit = if number < place { 6 } else { 7 };
        let begins = Event::Mark(Mark::UnitBegins(unit)).word();
        behind.executed(thread(*space), &[&[begins], &records[..]].concat());
    }
    assert_eq!(behind.is_warming(), place == heard.len());
    [all, before, behind.model]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// A unit has the misses between its marks, whether they are told with what is executed or apart.
    #[test]
    fn misses_are_those_of_their_unit(text in machine(), blocks in blocks(), executions in executions()) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut told = Vec::new();
        each(&blocks, &executions, |_, block, _, _, addresses| {
            let unit = told.len() as u64 / 3;
            told.push(vec![Event::Mark(Mark::UnitBegins(unit)).word()]);
            told.push([&[!(block as u64)], addresses].concat());
            told.push(vec![Event::Mark(Mark::UnitEnds(unit)).word()]);
        });
        let units = |pieces: &[Vec<u64>]| {
            let mut caches = Caches::new(&machine);
            blocks.iter().for_each(|(address, words)| caches.define(&Block::new(*address, &words[..])));
            pieces.iter().for_each(|piece| caches.executed(thread(0), piece));
            caches.units().to_vec()
        };
        prop_assert_eq!(units(&told), units(&[told.concat()]));
    }

    /// What warms up is not counted, and what is counted behind it is what there would be more.
    #[test]
    fn counts_go_on_from_what_warmed_up(
        text in machine(),
        blocks in blocks(),
        executions in executions(),
        place in any::<prop::sample::Index>(),
    ) {
        let machine = Machine::from_toml(&text).expect(&text);
        let mut heard = Vec::new();
        each(&blocks, &executions, |space, block, _, _, addresses| {
            heard.push((space, [&[!(block as u64)], addresses].concat()));
        });
        prop_assume!(!heard.is_empty());
        let place = place.index(heard.len());
        let [all, before, behind] = parts(|| Caches::new(&machine), &blocks, &heard, place);
        prop_assert_eq!(behind.instructions(), all.instructions() - before.instructions());
        let structures = [&all, &before, &behind].map(Caches::structures);
        for (structure, behind) in structures[2].iter().enumerate() {
            let [all, before] = [0, 1].map(|model| &structures[model][structure]);
            prop_assert_eq!(behind.accesses, all.accesses - before.accesses, "{} of\n{}", behind.name, text);
            prop_assert_eq!(behind.misses, all.misses - before.misses, "{} of\n{}", behind.name, text);
            let written = [all, before, behind].map(|one| one.counts.as_ref().map_or(0, |counts| counts.written_back));
            prop_assert_eq!(written[2], written[0] - written[1]);
        }
        let streams = [Holds::Instructions, Holds::Data];
        let curves = parts(|| Curves::new(32, 4 << 10, &streams).unwrap(), &blocks, &heard, place);
        prop_assert_eq!(curves[2].instructions(), behind.instructions());
        let [all, before, behind] = curves.map(|curves| curves.curves());
        for stream in 0..streams.len() {
            let points = behind[stream].points.iter().zip(&all[stream].points).zip(&before[stream].points);
            for ((behind, all), before) in points {
                prop_assert_eq!(behind.misses, all.misses - before.misses, "{:?}", behind);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Each access of a random machine goes as far as in the plain model.
    #[test]
    fn accesses_go_as_far_as_in_the_plain_model(text in machine(), accesses in accesses(400)) {
        let machine = Machine::from_toml(&text).expect(&text);
        same_as_plain(&text, &mut Hierarchy::new(&machine), &accesses);
        same_as_plain(&text, &mut Hierarchy::classified(&machine), &accesses);
    }
}
