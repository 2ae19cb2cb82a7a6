//! The coherent memory against a plain model: one line at a time, sets of bytes, no filter. The plain model has the
//! values of all copies, so that every load is known to return what was stored last.

mod plain;
#[path = "../plain_cache/mod.rs"]
mod plain_cache;

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use pathlength_machine::{
    BusOperation, CoherenceCheck, CoherenceState, CoherentMemory, DeviceCounts, Machine, ProcessorRequest,
    SharingClass, TransitionCause,
};
use plain::{Plain, PlainEvent, PlainMiss};
use plain_cache::PlainCache;

/// A machine with one to three private caches and a shared one.
fn random_machine(rng: &mut Rng) -> Machine {
    let levels = rng.usize(1..=3);
    let mut text = String::from("title = \"random\"\n[processor]\nname = \"one\"\nclock_mhz = 100\n");
    let (mut line, mut size) = (8u64 << rng.u32(0..=2), 0);
    for level in 1..=levels {
        line <<= rng.u32(0..=1);
        let ways = 1 << rng.u32(0..=if level == 3 { 4 } else { 2 });
        size = ((line * ways) << rng.u32(0..=3)).max(size * 2);
        text += &format!(
            "[caches.l{level}]\nlevel = {level}\nholds = \"data\"\nsize = {size}\nways = {ways}\nline = {line}\n\
             allocate_on_write = true\nlatency = {level}\n"
        );
    }
    let private = rng.usize(1..=levels);
    let protocol = rng.choice(["msi", "mesi", "moesi"]).unwrap();
    text += &format!(
        "[coherence]\nprotocol = \"{protocol}\"\nprivate = \"l{private}\"\n[memory]\nlatency_ns = 1000\n"
    );
    Machine::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An access of a random program: few lines are shared by all, others are a processor's own.
fn random_access(rng: &mut Rng, processors: usize, line: u64) -> (usize, u64, u64) {
    let processor = rng.usize(0..processors);
    let size = 1u64 << rng.u32(0..=3);
    let at = match rng.u32(0..10) {
        // Counters of each processor in the same line.
        0..4 => 0x1000 + processor as u64 * 8 % line,
        4..7 => 0x1000 + rng.u64(0..4 * line),
        7 => 0x8000 + rng.u64(0..0x2000),
        _ => 0x10_0000 * (processor as u64 + 1) + rng.u64(0..0x800),
    };
    (processor, at & !(size - 1), size)
}

#[test]
fn random_programs_have_the_states_misses_and_classes_of_the_plain_model() {
    let (mut seen, mut hits) = (BTreeMap::new(), 0u64);
    for seed in 0..testing::sample(60, 3000) {
        let mut rng = Rng::with_seed(seed);
        let machine = random_machine(&mut rng);
        let processors = rng.usize(1..=6);
        let coherence = machine.coherence.as_ref().unwrap();
        let mut memory = CoherentMemory::new(&machine, coherence, processors);
        let mut plain = Plain::new(&machine, processors);
        // By miss: the class, when it is known.
        let mut classes: Vec<Option<SharingClass>> = Vec::new();
        let stores = rng.u32(1..10);
        let (mut check, mut write_backs) = (CoherenceCheck::new(), 0);
        for step in 0..3000 {
            let (processor, at, size) = random_access(&mut rng, processors, memory.line_size());
            let is_store = rng.u32(0..10) < stores;
            let event = memory.access(processor as u8, at, size as u8, is_store);
            hits += u64::from(event.is_none());
            write_backs += event.map_or(0, |event| u64::from(event.write_backs));
            check.accessed(&mut memory, (processor as u8, at, is_store), event.as_ref());
            if let Some(event) = event.filter(|event| event.operation != BusOperation::Upgrade) {
                if event.is_undecided() {
                    memory.set_token(processor as u8, event.line, classes.len() as u32);
                }
                classes.push(event.class);
            }
            let decisions: Vec<_> = memory.take_decisions().collect();
            for decision in decisions {
                let class = if decision.is_true { SharingClass::True } else { SharingClass::False };
                assert_eq!(classes[decision.token as usize].replace(class), None, "decided once");
            }
            let expected = plain.access(processor, at, size, is_store.then(|| rng.u64(..)));
            let list = |mask: u64| (0..64).filter(|one| mask >> one & 1 != 0).collect::<Vec<u8>>();
            let event = event.map(|event| PlainEvent {
                operation: event.operation,
                supplier: event.supplier,
                invalidated: list(event.invalidated),
                needless: list(event.needless),
            });
            assert_eq!(event, expected, "seed {seed}, step {step}");
            for line in [at, 0x1000, 0x1000 + memory.line_size()] {
                let states = (0..processors).map(|one| memory.state(one as u8, line));
                let expected = (0..processors).map(|one| plain.state(one, line / plain.line));
                assert!(states.eq(expected), "seed {seed}, step {step}: {line:#x}");
                memory.check(line).unwrap();
                plain.check(line / plain.line);
            }
        }
        assert_eq!(check.result(), Ok(3000), "seed {seed}");
        memory.end();
        let decisions: Vec<_> = memory.take_decisions().collect();
        for decision in decisions {
            assert!(!decision.is_true, "nothing is used after the end");
            assert_eq!(classes[decision.token as usize].replace(SharingClass::False), None);
        }
        let expected: Vec<_> =
            plain.misses.iter().map(|miss| miss.class.or(Some(SharingClass::False))).collect();
        assert_eq!(classes, expected, "seed {seed}");
        compare_counts(&memory, &plain);
        assert_eq!(write_backs, plain.write_backs, "seed {seed}");
        for class in classes.into_iter().flatten() {
            *seen.entry(class).or_insert(0u64) += 1;
        }
    }
    assert!(SharingClass::ALL.iter().all(|class| seen[class] > 1000), "all classes occur: {seen:?}");
    assert!(hits > 50_000, "{hits} hits");
}

fn compare_counts(memory: &CoherentMemory, plain: &Plain) {
    let counts = memory.counts();
    let own = [counts.write_backs, counts.memory_updates, counts.transfers];
    assert_eq!(own, [plain.write_backs, plain.memory_updates, plain.transfers]);
    for class in SharingClass::ALL {
        for is_store in [false, true] {
            let is_it = |miss: &&PlainMiss| {
                miss.is_store == is_store && miss.class.unwrap_or(SharingClass::False) == class
            };
            let expected = plain.misses.iter().filter(is_it).count() as u64;
            assert_eq!(counts.misses[usize::from(is_store)][class as usize], expected, "{class:?}");
        }
    }
    for cause in TransitionCause::ALL {
        for before in CoherenceState::ALL {
            for after in CoherenceState::ALL {
                let expected = plain.transitions.get(&(cause as u8, before, after)).copied().unwrap_or(0);
                assert_eq!(
                    counts.states.get(cause, before, after),
                    expected,
                    "{cause:?} {before:?} {after:?}"
                );
            }
        }
    }
    assert_eq!(counts.all_misses(), plain.misses.len() as u64);
}

/// A machine with one private cache of 1 KB and lines of 64 bytes.
fn small(protocol: &str) -> Machine {
    Machine::from_toml(&format!(
        "title = \"small\"\n[processor]\nname = \"one\"\nclock_mhz = 100\n[caches.l1]\nlevel = 1\nholds = \"data\"\n\
         size = 1024\nways = 2\nline = 64\nallocate_on_write = true\nlatency = 1\n[coherence]\nprotocol = \"{protocol}\"\n\
         [memory]\nlatency_ns = 1000\n"
    ))
    .unwrap()
}

/// The counts after accesses: processor, address, and whether it stores; of eight bytes each.
fn counts_of(protocol: &str, accesses: &[(u8, u64, bool)]) -> pathlength_machine::BusCounts {
    let machine = small(protocol);
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
    for &(processor, address, is_store) in accesses {
        memory.access(processor, address, 8, is_store);
    }
    memory.end();
    memory.counts().clone()
}

#[test]
fn impossible_coherence_is_rejected_with_field_and_reason() {
    let whole = "base = \"pentium-pro\"\n";
    for (change, what) in [
        (
            "coherence.private = \"icache\"",
            "coherence.private: \"icache\" is no cache of data; there are dcache, l2",
        ),
        (
            "caches.l2.write = \"through\"",
            "caches.l2.write: l2 observes the bus, and must have write = \"back\"",
        ),
        (
            "caches.l2.allocate_on_write = false",
            "caches.l2.allocate_on_write: l2 observes the bus, and must allocate",
        ),
        ("coherence.protocol = \"mosi\"", "\"mosi\" is no coherence protocol: give msi, mesi, moesi"),
        ("coherence.busses = 1", "unknown field `busses`"),
    ] {
        let error = Machine::from_toml(&format!("{whole}{change}")).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let none =
        "title = \"none\"\n[processor]\nname = \"one\"\nclock_mhz = 1\n[coherence]\nprotocol = \"msi\"\n";
    let error = Machine::from_toml(none).unwrap_err().to_string();
    assert_eq!(error, "coherence: there is no cache of data to keep coherent");
}

#[test]
fn counts_are_reset_with_what_is_undecided() {
    let machine = small("mesi");
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
    let access = |memory: &mut CoherentMemory, processor, address, is_store| {
        memory.access(processor, address, 8, is_store);
    };
    access(&mut memory, 1, 0x1008, false);
    access(&mut memory, 0, 0x1000, true);
    access(&mut memory, 1, 0x1008, false);
    memory.reset_counts();
    // Only this load shows that the earlier miss was true sharing; that miss was before counting began.
    access(&mut memory, 1, 0x1000, false);
    memory.end();
    assert_eq!((memory.counts().all_misses(), memory.counts().loads), (0, 1));
    assert_eq!(memory.take_decisions().count(), 0);
}

#[test]
fn counters_in_one_line_have_the_operations_worked_out_by_hand() {
    // Two processors alternately increment counters of their own in one line. Each load misses, as the other's store has
    // invalidated the copy; each store is to a copy that both have then.
    let turns: Vec<_> = (0..100)
        .flat_map(|turn| [false, true].map(|is_store| (turn % 2, 0x1000 + u64::from(turn % 2) * 8, is_store)))
        .collect();
    let counts = counts_of("mesi", &turns);
    // The first load finds no other copy, so that its store needs no bus. The second processor's first miss is cold.
    assert_eq!((counts.reads, counts.upgrades, counts.silent_upgrades), (100, 99, 1));
    assert_eq!(counts.misses_of(SharingClass::Cold), 2);
    assert_eq!(counts.misses_of(SharingClass::False), 98);
    assert_eq!((counts.transfers, counts.memory_updates, counts.invalidations.all), (99, 99, 99));
    // The copies of both cold misses were not needless.
    assert_eq!((counts.upgrades_needless, counts.needless()), (97, 98 + 97));
    // Without the state Exclusive, the first store is an upgrade, too.
    let counts = counts_of("msi", &turns);
    assert_eq!(
        (counts.reads, counts.upgrades, counts.upgrades_alone, counts.silent_upgrades),
        (100, 100, 1, 0)
    );
    // With the state Owned memory is not updated.
    let counts = counts_of("moesi", &turns);
    assert_eq!((counts.reads, counts.upgrades, counts.transfers, counts.memory_updates), (100, 99, 99, 0));
}

#[test]
fn counters_in_lines_of_their_own_need_the_bus_once() {
    let turns: Vec<_> = (0..100)
        .flat_map(|turn| {
            [false, true].map(|is_store| (turn % 2, 0x1000 + u64::from(turn % 2) * 64, is_store))
        })
        .collect();
    let counts = counts_of("mesi", &turns);
    assert_eq!((counts.operations(), counts.reads, counts.misses_of(SharingClass::Cold)), (2, 2, 2));
}

#[test]
fn a_counter_that_both_add_to_is_shared_truly() {
    let turns: Vec<_> =
        (0..100).flat_map(|turn| [false, true].map(|is_store| (turn % 2, 0x1000, is_store))).collect();
    let counts = counts_of("mesi", &turns);
    assert_eq!((counts.misses_of(SharingClass::Cold), counts.misses_of(SharingClass::True)), (2, 98));
    assert_eq!((counts.needless(), counts.upgrades), (0, 99));
}

#[test]
fn what_is_used_later_makes_a_miss_true() {
    // The second processor misses at its own counter, and then reads the other's.
    let accesses = [(1, 0x1008, false), (0, 0x1000, true), (1, 0x1008, false), (1, 0x1000, false)];
    let counts = counts_of("mesi", &accesses);
    assert_eq!((counts.misses_of(SharingClass::True), counts.misses_of(SharingClass::False)), (1, 0));
    let counts = counts_of("mesi", &accesses[..3]);
    assert_eq!((counts.misses_of(SharingClass::True), counts.misses_of(SharingClass::False)), (0, 1));
}

/// Uses eight bytes. Returns whether that needed the bus.
fn used_bus(memory: &mut CoherentMemory, processor: u8, address: u64, is_store: bool) -> bool {
    memory.access(processor, address, 8, is_store).is_some()
}

/// A device reads what a processor has stored, then writes the line, and the processors read it.
#[test]
fn devices_snoop_and_invalidate_as_worked_out_by_hand() {
    for (protocol, after_read, updates) in [
        ("msi", CoherenceState::Shared, 1),
        ("mesi", CoherenceState::Shared, 1),
        ("moesi", CoherenceState::Owned, 0),
    ] {
        let machine = small(protocol);
        let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
        let line = memory.line_size();
        used_bus(&mut memory, 0, 0x1000, true);
        let read = memory.device_read(0x1000);
        assert_eq!((read.supplier, memory.state(0, 0x1000)), (Some(0), after_read), "{protocol}");
        // The copy is not dirty any more, or is supplied again.
        assert_eq!(memory.device_read(0x1008).supplier.is_some(), protocol == "moesi");
        used_bus(&mut memory, 1, 0x1000, false);
        // The whole line: both copies are lost, and none is written back.
        let write = memory.device_write(0, 0x1000, line as u16);
        assert_eq!((write.invalidated, write.placed), (0b11, None), "{protocol}");
        // A part of a line of which a processor has a dirty copy: that is merged first.
        used_bus(&mut memory, 1, 0x2000, true);
        memory.device_write(0, 0x2008, 8);
        // Both processors use what the device wrote: true sharing, also of the line that one alone has used.
        for (processor, address) in [(0, 0x1000), (1, 0x1000), (1, 0x2008)] {
            assert!(used_bus(&mut memory, processor, address, false), "{protocol}");
        }
        memory.end();
        let supplied = if protocol == "moesi" { 2 } else { 1 };
        let expected = DeviceCounts { reads: 2, supplied, writes: 2, merged: 1, invalidated: 3, placed: 0 };
        assert_eq!(memory.devices(), &expected, "{protocol}");
        let counts = memory.counts();
        assert_eq!((counts.misses_of(SharingClass::Cold), counts.misses_of(SharingClass::True)), (3, 3));
        assert_eq!((counts.write_backs, counts.transfers), (0, if protocol == "moesi" { 1 } else { 0 }));
        assert_eq!(counts.memory_updates, updates, "{protocol}");
        for address in [0x1000, 0x2000] {
            memory.check(address).unwrap();
        }
    }
}

/// A device writes the first half of a line of 512 bytes: a processor that uses this half shares it truly, and falsely in the other half.
#[test]
fn a_device_writes_half_of_a_long_line() {
    let mut machine = small("mesi");
    machine.caches[0].line = 512;
    for (used, class) in [(0x1000, SharingClass::True), (0x1100, SharingClass::False)] {
        let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
        used_bus(&mut memory, 0, 0x1000, false);
        memory.device_write(0, 0x1000, 256);
        assert!(used_bus(&mut memory, 0, used, false));
        memory.end();
        assert_eq!(memory.counts().misses_of(class), 1, "{used:#x}");
    }
}

/// With direct cache access a processor finds in its cache what the device wrote, and the cache writes it back.
#[test]
fn direct_cache_access_puts_lines_into_a_cache() {
    let mut machine = small("mesi");
    machine.coherence.as_mut().unwrap().direct_cache_access = true;
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
    let line = memory.line_size();
    used_bus(&mut memory, 1, 0x1000, false);
    let write = memory.device_write(0, 0x1000, line as u16);
    assert_eq!((write.invalidated, write.placed), (0b10, Some(0)));
    assert_eq!(memory.state(0, 0x1000), CoherenceState::Modified);
    assert!(!used_bus(&mut memory, 0, 0x1000, false), "it is there");
    // The other one misses, and gets it from there.
    assert!(used_bus(&mut memory, 1, 0x1000, false));
    assert_eq!((memory.counts().transfers, memory.counts().misses_of(SharingClass::True)), (1, 1));
    memory.check(0x1000).unwrap();
}

/// Processors and devices at random: each access finds what was stored or written last.
#[test]
fn devices_keep_memory_coherent() {
    let mut placed = 0;
    for seed in 0..testing::sample(30, 1000) {
        let mut rng = Rng::with_seed(seed);
        let mut machine = random_machine(&mut rng);
        machine.coherence.as_mut().unwrap().direct_cache_access = seed % 2 == 0;
        let processors = rng.usize(1..=6);
        let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), processors);
        let line = memory.line_size();
        let mut check = CoherenceCheck::new();
        for _ in 0..3000 {
            let (processor, at, size) = random_access(&mut rng, processors, line);
            match rng.u32(0..8) {
                0 => {
                    let event = memory.device_read(at);
                    check.device_accessed(&mut memory, (at, false), &event);
                }
                1 => {
                    let (at, size) = if rng.bool() { (at, size) } else { (at - at % line, line) };
                    let event = memory.device_write(processor as u8, at, size as u16);
                    check.device_accessed(&mut memory, (at, true), &event);
                }
                kind => {
                    let event = memory.access(processor as u8, at, size as u8, kind < 5);
                    check.accessed(&mut memory, (processor as u8, at, kind < 5), event.as_ref());
                }
            }
            memory.check(at).unwrap();
        }
        assert_eq!(check.result(), Ok(3000), "seed {seed}: {machine:?}");
        placed += memory.devices().placed;
    }
    assert!(placed > 1000, "{placed}");
}

#[test]
fn a_check_finds_processors_that_do_not_observe_each_other() {
    for protocol in ["msi", "mesi", "moesi"] {
        let machine = small(protocol);
        let new = || CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
        // The same accesses, on one bus or on two that nothing joins.
        let check = |buses: &mut [CoherentMemory], accesses: &[(u8, bool)]| {
            let mut check = CoherenceCheck::new();
            for &(processor, is_store) in accesses {
                let bus = usize::from(processor) % buses.len();
                let event = buses[bus].access(processor, 0x1000, 8, is_store);
                check.accessed(&mut buses[bus], (processor, 0x1000, is_store), event.as_ref());
            }
            check.result()
        };
        // Each ends with the use of a copy that another one's store should have invalidated.
        for accesses in [
            &[(0, false), (1, true), (0, false)][..],
            &[(0, true), (1, true), (0, false)],
            &[(1, false), (0, true), (1, true)],
        ] {
            assert_eq!(check(&mut [new()], accesses), Ok(accesses.len() as u64), "{protocol}");
            let error = check(&mut [new(), new()], accesses).unwrap_err();
            assert!(error.contains("processor"), "{protocol}: {error}");
        }
    }
}

#[test]
fn a_context_switch_empties_the_caches_that_the_machine_flushes() {
    let requests = |flushes: &str| {
        let text = format!("base = \"pentium-pro\"\ncoherence.flushes = {flushes}");
        let machine = Machine::from_toml(&text).unwrap();
        let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 1);
        for process in [1, 1, 2, 2, 1] {
            memory.runs(0, process);
            memory.access(0, 0x1000, 8, true);
            memory.access(0, 0x2000, 8, false);
            memory.fetch(0, 0x3000, 8);
        }
        memory.check(0x1000).unwrap();
        let [stores, loads, fetches] =
            [ProcessorRequest::Store, ProcessorRequest::Load, ProcessorRequest::Fetch]
                .map(|request| memory.counts().requests.all(request));
        (memory.counts().all_misses(), [stores, loads, fetches])
    };
    // Lines are filled into L1 once, or once more after each of two switches; L2 keeps them.
    assert_eq!(requests("[]"), (3, [1, 1, 1]));
    assert_eq!(requests("[\"dcache\"]"), (3, [3, 3, 1]));
    assert_eq!(requests("[\"dcache\", \"icache\"]"), (3, [3, 3, 3]));
    let error =
        Machine::from_toml("base = \"pentium-pro\"\ncoherence.flushes = [\"l2\"]").unwrap_err().to_string();
    assert!(error.contains("coherence.flushes") && error.contains("dcache"), "{error}");
}

/// An access of a litmus test: a variable, and the value that it stores, if it does.
type LitmusAccess = (usize, Option<u64>);

/// The values that loads return, in the order of processors and programs, in all interleavings.
fn litmus_outcomes(protocol: &str, distance: u64, programs: &[&[LitmusAccess]]) -> BTreeSet<Vec<u64>> {
    fn interleavings(left: &[usize], order: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        if left.iter().all(|&count| count == 0) {
            found.push(order.clone());
        }
        for processor in 0..left.len() {
            if left[processor] > 0 {
                let mut rest = left.to_vec();
                rest[processor] -= 1;
                order.push(processor);
                interleavings(&rest, order, found);
                order.pop();
            }
        }
    }
    let machine = small(protocol);
    let coherence = machine.coherence.as_ref().unwrap();
    let mut orders = Vec::new();
    let counts: Vec<usize> = programs.iter().map(|program| program.len()).collect();
    interleavings(&counts, &mut Vec::new(), &mut orders);
    let mut outcomes = BTreeSet::new();
    for order in orders {
        let mut plain = Plain::new(&machine, programs.len());
        let mut memory = CoherentMemory::new(&machine, coherence, programs.len());
        let mut next = vec![0; programs.len()];
        let mut loaded = vec![Vec::new(); programs.len()];
        for processor in order {
            let (variable, value) = programs[processor][next[processor]];
            next[processor] += 1;
            let address = 0x1000 + distance * variable as u64;
            plain.access(processor, address, 8, value);
            memory.access(processor as u8, address, 8, value.is_some());
            let line = address / plain.line;
            for other in 0..programs.len() {
                assert_eq!(memory.state(other as u8, address), plain.state(other, line));
            }
            if value.is_none() {
                let data = &plain.copies[processor][&line].data;
                loaded[processor].push(data.get(&address).copied().unwrap_or(0));
            }
        }
        outcomes.insert(loaded.concat());
    }
    outcomes
}

/// Accesses reach the caches in one order, in which each processor's are in the order of its program: the outcomes are
/// those of sequential consistency. What only weaker models allow does not occur, and everything else does.
#[test]
fn litmus_tests_have_the_outcomes_of_sequential_consistency() {
    const X: usize = 0;
    const Y: usize = 1;
    let (load, store) = (|variable| (variable, None), |variable, value| (variable, Some(value)));
    // Name, programs, the number of outcomes, and the one that does not occur.
    let store_buffering: (&[&[LitmusAccess]], usize, &[u64]) =
        (&[&[store(X, 1), load(Y)], &[store(Y, 1), load(X)]], 3, &[0, 0]);
    let message_passing: (&[&[LitmusAccess]], usize, &[u64]) =
        (&[&[store(X, 1), store(Y, 1)], &[load(Y), load(X)]], 3, &[1, 0]);
    let load_buffering: (&[&[LitmusAccess]], usize, &[u64]) =
        (&[&[load(X), store(Y, 1)], &[load(Y), store(X, 1)]], 3, &[1, 1]);
    let coherence_of_reads: (&[&[LitmusAccess]], usize, &[u64]) =
        (&[&[store(X, 1)], &[load(X), load(X)]], 3, &[1, 0]);
    let independent_reads: (&[&[LitmusAccess]], usize, &[u64]) =
        (&[&[store(X, 1)], &[store(Y, 1)], &[load(X), load(Y)], &[load(Y), load(X)]], 15, &[1, 0, 1, 0]);
    let all = [store_buffering, message_passing, load_buffering, coherence_of_reads, independent_reads];
    for protocol in ["msi", "mesi", "moesi"] {
        // Both variables in one line, in two, and in two of the same set.
        for distance in [8, 64, 1024] {
            for (programs, count, impossible) in all {
                let outcomes = litmus_outcomes(protocol, distance, programs);
                assert_eq!(outcomes.len(), count, "{protocol} {distance} {programs:?}: {outcomes:?}");
                assert!(!outcomes.contains(impossible), "{protocol} {distance} {programs:?}");
            }
        }
    }
}

#[test]
fn fetches_reach_the_cache_at_the_bus_as_in_a_plain_model() {
    let small =
        "base = \"pentium-pro\"\ncaches.icache.size = 256\ncaches.dcache.size = 256\ncaches.l2.size = 1024";
    let machine = Machine::from_toml(small).unwrap();
    let coherence = machine.coherence.as_ref().unwrap();
    let (mut misses, mut found) = (0u64, [[0u64; 5]; 3]);
    for seed in 0..testing::sample(30, 1000) {
        let mut rng = Rng::with_seed(seed);
        let mut memory = CoherentMemory::new(&machine, coherence, 1);
        let plain = |size: u64, ways: u32| PlainCache::new(32, ways, size / 32 / u64::from(ways));
        let [mut code, mut data, mut l2] = [plain(256, 4), plain(256, 2), plain(1024, 4)];
        let mut states: BTreeMap<u64, CoherenceState> = BTreeMap::new();
        let mut expected = [[0u64; 5]; 3];
        for _ in 0..2000 {
            let request = *rng.choice(&ProcessorRequest::ALL).unwrap();
            // Some lines have both instructions and data.
            let line = 100 + rng.u64(0..60);
            let is_fetch = request == ProcessorRequest::Fetch;
            let before = states.get(&line).copied().unwrap_or_default();
            let is_hit = if is_fetch { code.touch(line) } else { data.touch(line) };
            let is_shared_store = request == ProcessorRequest::Store && before == CoherenceState::Shared;
            if !is_hit || is_shared_store {
                expected[request as usize][before as usize] += 1;
            }
            if !is_hit {
                if !l2.touch(line)
                    && let Some(evicted) = l2.fill(line)
                {
                    code.remove(evicted);
                    data.remove(evicted);
                    states.remove(&evicted);
                }
                if is_fetch {
                    code.fill(line)
                } else {
                    data.fill(line)
                };
            }
            let after = match (request, before) {
                (ProcessorRequest::Store, _) => CoherenceState::Modified,
                (ProcessorRequest::Load, CoherenceState::Invalid) => CoherenceState::Exclusive,
                (ProcessorRequest::Fetch, CoherenceState::Invalid) => CoherenceState::Shared,
                (_, before) => before,
            };
            states.insert(line, after);
            let event = match request {
                ProcessorRequest::Fetch => memory.fetch(0, 32 * line, 32),
                _ => memory.access(0, 32 * line, 8, request == ProcessorRequest::Store),
            };
            let is_miss = before == CoherenceState::Invalid;
            assert_eq!(event.is_some(), is_miss || is_shared_store, "seed {seed}: {request:?} of {line}");
            assert_eq!(memory.state(0, 32 * line), after, "seed {seed}");
            memory.check(32 * line).unwrap();
            misses += u64::from(is_miss);
        }
        for request in ProcessorRequest::ALL {
            for state in CoherenceState::ALL {
                let count = memory.counts().requests.get(request, state);
                assert_eq!(
                    count, expected[request as usize][state as usize],
                    "seed {seed}: {request:?} {state:?}"
                );
                found[request as usize][state as usize] += count;
            }
        }
    }
    assert!(misses > 10_000, "{misses}");
    // A fetch finds every state but Owned, as lines have both.
    let state = |request: ProcessorRequest, state: CoherenceState| found[request as usize][state as usize];
    for request in ProcessorRequest::ALL {
        for one in [
            CoherenceState::Invalid,
            CoherenceState::Shared,
            CoherenceState::Exclusive,
            CoherenceState::Modified,
        ] {
            assert!(state(request, one) > 100, "{request:?} {one:?}: {found:?}");
        }
    }
}

#[test]
fn another_processor_fetches_what_was_stored() {
    let machine = Machine::find("pentium-pro").unwrap();
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 2);
    memory.access(0, 0x1000, 8, true);
    let event = memory.fetch(1, 0x1000, 32).unwrap();
    assert_eq!((event.operation, event.supplier), (BusOperation::Read, Some(0)));
    assert_eq!([0, 1].map(|one| memory.state(one, 0x1000)), [CoherenceState::Shared; 2]);
    assert_eq!(memory.counts().requests.get(ProcessorRequest::Fetch, CoherenceState::Invalid), 1);
    // A store invalidates the line of instructions, which then misses again.
    assert!(memory.fetch(1, 0x1000, 32).is_none());
    memory.access(0, 0x1000, 8, true);
    assert!(memory.fetch(1, 0x1000, 32).is_some());
}
