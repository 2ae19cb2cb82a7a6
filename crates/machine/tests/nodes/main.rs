//! Nodes with directories against a plain model ([`plain`]), on random programs and machines; and against sequences worked
//! out by hand.

mod plain;
#[path = "../plain_cache/mod.rs"]
mod plain_cache;

use fastrand::Rng;
use pathlength_machine::{CoherentMemory, InterconnectOperation, Machine};
use plain::{Plain, PlainEvent, Planted};

/// A machine with one or two private caches, and nodes with small far caches.
fn random_machine(rng: &mut Rng) -> Machine {
    let mut text = String::from("title = \"random\"\n[processor]\nname = \"one\"\nclock_mhz = 100\n");
    let levels = rng.usize(1..=2);
    let (mut line, mut size) = (8u64 << rng.u32(0..=2), 0);
    for level in 1..=levels {
        line <<= rng.u32(0..=1);
        let ways = 1u64 << rng.u32(0..=2);
        size = ((line * ways) << rng.u32(0..=3)).max(size * 2);
        text += &format!(
            "[caches.l{level}]\nlevel = {level}\nholds = \"data\"\nsize = {size}\nways = {ways}\nline = {line}\n\
             allocate_on_write = true\nlatency = {level}\n"
        );
    }
    let choice = |rng: &mut Rng, names: &[&'static str]| *rng.choice(names).unwrap();
    let protocol = choice(rng, &["msi", "mesi", "mesi"]);
    let directory = choice(rng, &["sci", "bit-vector"]);
    let placement = choice(rng, &["first-touch", "round-robin", "fixed"]);
    line <<= rng.u32(0..=2);
    let ways = rng.u64(1..=3);
    let size = (line * ways) << rng.u32(1..=5);
    let (processors, home) = (rng.u32(1..=3), rng.u32(0..4));
    text += &format!(
        "[memory]\nlatency_ns = 1000\n[coherence]\nprotocol = \"{protocol}\"\n[coherence.nodes]\n\
         processors = {processors}\ndirectory = \"{directory}\"\nplacement = \"{placement}\"\nhome = {home}\nhop_ns = 1\n\
         directory_ns = 1\n[coherence.nodes.far_cache]\nsize = {size}\nways = {ways}\nline = {line}\n"
    );
    Machine::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An access of a random program: few lines are shared by all, others are a processor's own; in pages of three nodes.
fn random_access(rng: &mut Rng, processors: usize, line: u64) -> (usize, u64, u64) {
    let processor = rng.usize(0..processors);
    let size = 1u64 << rng.u32(0..=3);
    let page = 0x2000 * rng.u64(1..4);
    let at = match rng.u32(0..10) {
        0..4 => page + processor as u64 * 8 % line,
        4..7 => page + rng.u64(0..4 * line),
        7 => page + rng.u64(0..0x2000),
        _ => 0x10_0000 * (processor as u64 + 1) + rng.u64(0..0x800),
    };
    (processor, at & !(size - 1), size)
}

/// Events that occurred in a comparison.
#[derive(Default)]
struct Occurred {
    operations: [u64; 7],
    hits: u64,
}

/// Runs a random program on a random machine and on the plain model. An error at the first difference.
fn compare(seed: u64, steps: usize, planted: Planted, occurred: &mut Occurred) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let machine = random_machine(&mut rng);
    let processors = rng.usize(1..=8);
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), processors);
    let mut plain = Plain::new(&machine, processors, planted);
    let stores = rng.u32(1..10);
    for step in 0..steps {
        let (processor, at, size) = random_access(&mut rng, processors, plain.node_line);
        let is_store = rng.u32(0..10) < stores;
        let event = memory.access(processor as u8, at, size as u8, is_store);
        let expected = plain.access(processor, at, size, is_store.then(|| rng.u64(..)))?;
        let list = |mask: u64| (0..64).filter(|one| mask >> one & 1 != 0).collect::<Vec<u8>>();
        let event = event.map_or_else(PlainEvent::default, |event| PlainEvent {
            operation: Some(event.operation),
            supplier: event.supplier,
            invalidated: list(event.invalidated),
            interconnect: event.exchange.operations,
            hops: event.exchange.hops,
            lookups: event.exchange.lookups,
        });
        let context = || format!("seed {seed}, step {step}, processor {processor} at {at:#x}");
        if event != expected {
            return Err(format!("{}: {event:?} instead of {expected:?}", context()));
        }
        occurred.hits += u64::from(event.operation.is_none());
        occurred.operations.iter_mut().zip(event.interconnect).for_each(|(sum, one)| *sum += u64::from(one));
        let line = plain.line;
        for address in (0..4).flat_map(|page| [at, at + line, 0x2000 * page, 0x2000 * page + line]) {
            for one in 0..processors {
                if memory.state(one as u8, address) != plain.state(one, address / line) {
                    return Err(format!("{}: the state of {one} at {address:#x}", context()));
                }
            }
            memory.check(address)?;
            plain.check(address / line)?;
            if memory.nodes().unwrap().copies(address) != plain.node_copies(address / plain.node_line) {
                return Err(format!("{}: the nodes with {address:#x}", context()));
            }
        }
    }
    let sums = memory.nodes().unwrap().counts();
    let by_home: u64 = sums.by_home.iter().sum();
    if by_home != sums.operations() {
        return Err(format!("{by_home} operations by home of {}", sums.operations()));
    }
    Ok(())
}

#[test]
fn random_programs_have_the_states_and_operations_of_the_plain_model() {
    let mut occurred = Occurred::default();
    for seed in 0..testing::sample(60, 600) {
        compare(seed, 2000, Planted::Nothing, &mut occurred).unwrap();
    }
    assert!(occurred.operations.iter().all(|&count| count > 1000), "{:?}", occurred.operations);
    assert!(occurred.hits > 10_000, "{} hits", occurred.hits);
}

#[test]
fn planted_errors_are_found() {
    for planted in [
        Planted::LastIsNotPurged,
        Planted::WriteBackIsLost,
        Planted::NotIncluded,
        Planted::ExclusiveWithoutNode,
        Planted::OtherPartsStay,
        Planted::ListIsBroken,
    ] {
        let is_found = |seed| compare(seed, 2000, planted, &mut Occurred::default()).is_err();
        let found = (0..30).filter(|&seed| is_found(seed)).count();
        assert!(found > 0, "{planted:?} is never found");
    }
}

/// A machine with nodes of one processor, and lines of 64 bytes; memory is the first node's.
fn small(directory: &str) -> Machine {
    Machine::from_toml(&format!(
        "title = \"small\"\n[processor]\nname = \"one\"\nclock_mhz = 100\n[caches.l1]\nlevel = 1\nholds = \"data\"\n\
         size = 1024\nways = 2\nline = 64\nallocate_on_write = true\nlatency = 1\n[memory]\nlatency_ns = 1000\n\
         [coherence]\nprotocol = \"mesi\"\n[coherence.nodes]\nprocessors = 1\ndirectory = \"{directory}\"\n\
         placement = \"fixed\"\nhop_ns = 1\ndirectory_ns = 1\n[coherence.nodes.far_cache]\nsize = 4096\nways = 1\n\
         line = 64\n"
    ))
    .unwrap()
}

/// The operations of the last of some accesses: processor, and whether it stores; and for how many messages it waits.
fn last(directory: &str, accesses: &[(u8, bool)]) -> (Vec<(InterconnectOperation, u8)>, u8) {
    let machine = small(directory);
    let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 4);
    let mut events =
        accesses.iter().map(|&(processor, is_store)| memory.access(processor, 0x1000, 8, is_store));
    let exchange = events.by_ref().last().flatten().map(|event| event.exchange).unwrap_or_default();
    let counts = InterconnectOperation::ALL.into_iter().zip(exchange.operations);
    (counts.filter(|&(_, count)| count > 0).collect(), exchange.hops)
}

#[test]
fn sequences_have_the_operations_worked_out_by_hand() {
    use InterconnectOperation::{DirectoryUpdate, Forward, Invalidation, Read, ReadExclusive, Upgrade};
    let both = |accesses: &[(u8, bool)]| ["sci", "bit-vector"].map(|directory| last(directory, accesses));
    // The home node's own accesses need no other node; one that reads asks the home node, which answers.
    assert_eq!(both(&[(0, true)]), [(vec![], 0), (vec![], 0)]);
    assert_eq!(both(&[(1, false)]), [(vec![(Read, 1)], 2), (vec![(Read, 1)], 2)]);
    // The second reader's data come from memory, and the first one is told that it has a predecessor.
    let readers = both(&[(1, false), (2, false)]);
    assert_eq!(readers, [(vec![(Read, 1), (DirectoryUpdate, 1)], 2), (vec![(Read, 1), (Forward, 1)], 3)]);
    // What node 1 has changed comes from it: in four messages by way of the reader, or in three.
    let changed = both(&[(1, true), (2, false)]);
    assert_eq!(changed, [(vec![(Read, 1), (Forward, 1)], 4), (vec![(Read, 1), (Forward, 1)], 3)]);
    // The only node with the line: SCI's must ask for a copy that it has read, the owner by bits need not.
    assert_eq!(both(&[(1, false), (1, true)]), [(vec![(Upgrade, 1)], 2), (vec![], 0)]);
    // Node 3 stores to what nodes 1 and 2 read. With SCI it becomes the head of the list, and purges one after the other; with a
    // bit vector both are invalidated at once. (The home node reads first, so that no node owns the line.)
    let purged = both(&[(0, false), (1, false), (2, false), (3, true)]);
    let sci = vec![(ReadExclusive, 1), (Invalidation, 2), (DirectoryUpdate, 1)];
    assert_eq!(purged, [(sci, 2 + 2 + 4), (vec![(ReadExclusive, 1), (Invalidation, 2)], 3)]);
    // Node 1, the last of the list, stores: it leaves the list, becomes its head, and purges the other two.
    let from_behind = both(&[(0, false), (1, false), (2, false), (3, false), (1, true)]);
    let sci = vec![(Upgrade, 1), (Invalidation, 2), (DirectoryUpdate, 2)];
    assert_eq!(from_behind, [(sci, 2 + 2 + 2 + 4), (vec![(Upgrade, 1), (Invalidation, 2)], 3)]);
    // The home node stores to what the others read.
    let home = both(&[(0, false), (1, false), (2, false), (0, true)]);
    assert_eq!(home, [(vec![(Invalidation, 2)], 4), (vec![(Invalidation, 2)], 2)]);
}

/// Instructions come from other nodes as data do, and are in the far cache for the node's other processors.
#[test]
fn instructions_are_fetched_from_other_nodes() {
    for directory in ["sci", "bit-vector"] {
        let machine = Machine::from_toml(&format!(
            "base = \"av20000\"\n[coherence.nodes]\nplacement = \"fixed\"\ndirectory = \"{directory}\"\n"
        ))
        .unwrap();
        let mut memory = CoherentMemory::new(&machine, machine.coherence.as_ref().unwrap(), 8);
        let fetched = [0, 4, 4, 5].map(|processor| memory.fetch(processor, 0x1000, 32));
        let operations =
            fetched.map(|event| event.map(|event| (event.exchange.count(), event.exchange.hops)));
        assert_eq!(operations, [Some((0, 0)), Some((1, 2)), None, Some((0, 0))], "{directory}");
        let stored = memory.access(0, 0x1000, 8, true).unwrap();
        assert_eq!(
            stored.exchange.operations[InterconnectOperation::Invalidation as usize],
            1,
            "{directory}"
        );
        assert_eq!(stored.invalidated, 0b11_0000, "{directory}");
        memory.check(0x1000).unwrap();
        assert!(memory.fetch(5, 0x1000, 32).unwrap().exchange.hops > 0, "{directory}");
    }
}

#[test]
fn impossible_nodes_are_rejected() {
    let whole = "base = \"av20000\"\n";
    for (change, what) in [
        ("coherence.protocol = \"moesi\"", "coherence.protocol: processors of nodes have msi or mesi"),
        ("coherence.nodes.processors = 0", "coherence.nodes.processors: 0 is not 1 to 64"),
        ("coherence.nodes.home = 64", "coherence.nodes.home: 64 is not 0 to 63"),
        ("coherence.nodes.hop_ns = -1", "coherence.nodes.hop_ns: -1 is no time"),
        (
            "coherence.nodes.far_cache.line = 16",
            "coherence.nodes.far_cache.line: 16 is not a power of two from the 32",
        ),
        (
            "coherence.nodes.far_cache.ways = 3",
            "coherence.nodes.far_cache.size: 134217728 bytes are not a power of two",
        ),
        (
            "coherence.nodes.far_cache.size = \"1G\"",
            "coherence.nodes.far_cache.size: 1073741824 bytes are more than",
        ),
        ("coherence.nodes.directory = \"snoopy\"", "\"snoopy\" is no directory: give sci, bit-vector"),
    ] {
        let error = Machine::from_toml(&format!("{whole}{change}")).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
