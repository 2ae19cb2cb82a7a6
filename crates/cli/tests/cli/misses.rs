//! What caches do with a real program: the same as a plain model of them, instruction by instruction.

use std::path::Path;

use events::record::{Entries, Entry};
use events::{Consumer, Thread};
use machine::{
    Cache, Caches, Crossing, HintedRegions, Holds, Machine, MissClass, MissRatioCurves, Prefetch,
    Replacement, Request, TranslationBuffer, WritePolicy,
};
use trace::Trace;

use crate::caches::{Folder, cell};
use crate::support::run;

#[path = "../../../machine/tests/plain/mod.rs"]
mod plain;

use plain::{Plain, PlainServed, Sets};

/// An execution of a block: its number, and the addresses of its accesses.
type Execution = (usize, Vec<u64>);

/// Records a program of one thread, and what it did in order.
fn record(folder: &Path, words: &str) -> (Trace, Vec<Execution>) {
    let path = folder.join("file.trace");
    let outcome = run(&format!("trace -o {} {words}", path.display()));
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (0, ""), "{words}");
    let trace = Trace::open(&path).unwrap();
    let (mut executions, mut words) = (Vec::new(), Vec::new());
    for chunk in 0..trace.chunks().len() {
        trace.read(chunk, &mut words).unwrap();
        executions.extend(Entries::new(&words, trace.shapes()).filter_map(|entry| match entry {
            Entry::Execution(one) => Some((one.block as usize, one.addresses.to_vec())),
            Entry::Mark(_) => None,
        }));
    }
    (trace, executions)
}

fn replay(model: &mut dyn Consumer, trace: &Trace, executions: &[Execution]) {
    trace.blocks().iter().for_each(|block| model.define(block));
    for (block, addresses) in executions {
        let records: Vec<u64> = std::iter::once(!(*block as u64)).chain(addresses.iter().copied()).collect();
        model.executed(Thread::default(), &records);
    }
}

/// Calls with each fetch of a line, and each access: its instruction's position, its address, and, of an
/// access, its size and whether it writes.
fn each(
    words: &[u32],
    address: u64,
    addresses: &[u64],
    mut call: impl FnMut(usize, u64, Option<(u8, bool)>),
) {
    let mut addresses = addresses.iter();
    for (position, &word) in words.iter().enumerate() {
        let place = address + 4 * position as u64;
        if position == 0 || place.is_multiple_of(32) {
            call(position, place, None);
        }
        let instruction = isa::decode(word);
        if let Some((instruction, size)) = instruction.and_then(|one| Some((one, one.access_size()?))) {
            let is_store = instruction.op.is(isa::Flags::STORE);
            call(position, *addresses.next().unwrap(), Some((size, is_store)));
        }
    }
}

#[test]
fn each_instruction_of_a_program_misses_as_in_a_plain_model_of_each_machine() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, executions) = record(folder.path(), "--until 150us :ev56/modes work");
    let mut hinted = Machine::find("alphastation500").unwrap();
    hinted.memory.granularity_hints = "program:8+mappings:64".parse().unwrap();
    for (name, machine) in Machine::all().chain([("with granularity hints", hinted)]) {
        let mut caches = Caches::new(&machine);
        replay(&mut caches, &trace, &executions);
        let mut plain = Plain::new(&machine);
        let structures = caches.structures().len();
        let mut misses: Vec<Vec<Vec<u64>>> =
            vec![trace.blocks().iter().map(|block| vec![0; block.words.len()]).collect(); structures];
        let path = |is_fetch| {
            let caches = machine.caches.iter().enumerate();
            caches.filter(move |(_, cache)| cache.holds.has(is_fetch)).map(|(index, _)| index)
        };
        let buffers = |is_fetch| {
            let buffers = machine.translation_buffers.iter().zip(machine.caches.len()..);
            buffers.filter(move |(buffer, _)| buffer.holds.has(is_fetch)).map(|(_, index)| index)
        };
        for (block, addresses) in &executions {
            let defined = &trace.blocks()[*block];
            each(&defined.words, defined.address, addresses, |position, address, access| {
                let is_fetch = access.is_none();
                let ways: Vec<PlainServed> = match access {
                    None => vec![plain.fetch(address)],
                    Some((size, is_store)) => plain.parts(address, size, is_store),
                };
                for (missed, _, untranslated) in ways {
                    let far =
                        path(is_fetch).take(missed.into()).chain(buffers(is_fetch).take(untranslated.into()));
                    far.for_each(|structure| misses[structure][*block][position] += 1);
                }
            });
        }
        for (structure, blocks) in misses.iter().enumerate() {
            for (block, expected) in blocks.iter().enumerate() {
                let found: Vec<u64> = caches.misses_of(structure, MissClass::Unknown, block as u32).collect();
                assert_eq!(&found, expected, "{name}: structure {structure}, block {block}");
            }
        }
        assert!(caches.structures().iter().all(|one| one.misses > 0), "{name}: {:?}", caches.structures());
    }
}

#[test]
fn memory_that_a_program_asks_for_in_large_pages_has_granularity_hints() {
    let folder = Folder::new();
    let misses = |hints: &str, words: &str| {
        let rows = folder.table(&format!("caches --machine alphastation500 {hints} :ev56/large {words}"));
        let row = rows.iter().position(|row| row[1] == "dtb");
        cell(&rows, row.unwrap_or_else(|| panic!("{rows:?}")), "misses")
    };
    let large = "--set memory.granularity_hints=large";
    let of_program = misses("", "");
    assert!((10_230.0..11_000.0).contains(&of_program), "{of_program}");
    // Without hints, or memory that was not asked for so, there is a miss for each page: 64 entries hold nothing of 1,024 pages.
    assert!(misses(large, "") >= 10_230.0 && misses("", "large") >= 10_240.0);
    assert!(misses(large, "large") < of_program - 10_000.0);
    assert!(misses("--set memory.granularity_hints=large:64", "large") < of_program - 10_000.0);
}

#[test]
fn one_pass_finds_the_misses_of_all_sizes_of_caches_for_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, executions) = record(folder.path(), "--until 150000 :ev56/modes work");
    let mut curves = MissRatioCurves::new(32, 1 << 20, &[Holds::Data]).unwrap();
    replay(&mut curves, &trace, &executions);
    let mut lines = Vec::new();
    for (block, addresses) in &executions {
        let defined = &trace.blocks()[*block];
        each(&defined.words, defined.address, addresses, |_, address, access| {
            if let Some((size, _)) = access {
                lines.push(address / 32);
                lines.push((address + u64::from(size) - 1) / 32);
            }
        });
    }
    lines.dedup();
    for point in &curves.curves()[0].points {
        let entries = point.size / 32;
        let ways = point.ways.unwrap_or(entries as u32);
        let mut sets = Sets::new(entries / u64::from(ways), ways, Replacement::Lru);
        let misses = lines.iter().filter(|&&line| {
            let is_hit = sets.touch(line, false);
            if !is_hit {
                sets.fill(line, false);
            }
            !is_hit
        });
        assert_eq!(misses.count() as u64, point.misses, "{point:?}");
    }
}
