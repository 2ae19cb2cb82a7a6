//! The toy's trace in models and tables: misses of caches, the instruction mix, and the listing, against what follows
//! from the program by hand.

use std::collections::BTreeMap;

use analysis::names::Names;
use analysis::profile::Attribution;
use analysis::replay::summary::{EventKind, Kinds};
use analysis::replay::{Accesses, Dictionary, Filter, Listing, Replay, ReplayOrder, Selection};
use events::record::{Entries, Entry};
use events::{Block, Consumer, Thread};
use machine::{Caches, Machine};
use trace::Trace;

use super::instruction_set::ToySet;
use super::tests::{CODE, ROUNDS};
use super::trace_tests::{OF_ROUND, trace};
use crate::test_runner::{ACCESSES, MEMORY, VALUES};

/// Accesses and misses of each cache.
fn counts(caches: &Caches) -> Vec<(String, u64, u64)> {
    caches.structures().into_iter().map(|one| (one.name, one.accesses, one.misses)).collect()
}

#[test]
fn caches_have_the_misses_of_the_program() {
    let _only = MEMORY.lock();
    let trace = trace::<ACCESSES>(true);
    let mut caches = Caches::new(&Machine::find("qemu").expect("a machine"));
    trace.blocks().iter().for_each(|block| caches.define(block));
    let mut words = Vec::new();
    trace.read(0, &mut words).expect("records");
    caches.executed(Thread::default(), &words);
    // Lines are of 64 bytes: the code is in one; each round accesses 16 bytes, all of which fit.
    let (instructions, data) = (2 + OF_ROUND * ROUNDS + 1, 16 * ROUNDS / 64);
    let expected = [("icache", instructions, 1), ("dcache", 2 * ROUNDS, data), ("l2", 1 + data, 1 + data)];
    assert_eq!(counts(&caches), expected.map(|(name, accesses, misses)| (name.into(), accesses, misses)));
}

#[test]
fn an_instruction_that_crosses_lines_is_fetched_from_both() {
    let mut caches = Caches::new(&Machine::find("qemu").expect("a machine"));
    // Four bytes from two before the end of a line on; then two bytes in the same lines.
    let (long, short) = (0x0003, 0x0000);
    caches.define(&Block::new(&ToySet, CODE + 62, [long]));
    caches.define(&Block::new(&ToySet, CODE + 60, [short]));
    caches.define(&Block::new(&ToySet, CODE + 66, [short, short]));
    for (block, misses) in [(0_u64, 2), (1, 2), (2, 2)] {
        caches.executed(Thread::default(), &[!block]);
        assert_eq!(counts(&caches)[0].2, misses, "block {block}");
    }
    assert_eq!(counts(&caches)[0].1, 4);
}

#[test]
fn a_mix_has_the_instructions_of_the_program() {
    let _only = MEMORY.lock();
    let trace = trace::<ACCESSES>(true);
    let (mut words, mut executions) = (Vec::new(), BTreeMap::<u32, f64>::new());
    trace.read(0, &mut words).expect("records");
    for entry in Entries::new(&words, trace.shapes()) {
        if let Entry::Execution(execution) = entry {
            *executions.entry(execution.block).or_default() += 1.0;
        }
    }
    let attribution = Attribution::of(trace.blocks(), &Names::of_trace(&trace));
    let mix = attribution.profile(executions).mix();
    let once_a_round = ["add", "bnz", "call", "callr", "ld", "st", "sub"].map(|name| (name, ROUNDS));
    let others = [("addi", 2 + 2 * ROUNDS), ("ret", 2 * ROUNDS), ("sys", 1)];
    assert_eq!(mix, once_a_round.into_iter().chain(others).collect());
    let first = trace.blocks().iter().find(|block| block.address == CODE + 26).expect("it adds");
    let kinds = Kinds::of(first);
    let expected = [(EventKind::Instruction, 5), (EventKind::Load, 1), (EventKind::Store, 1)];
    for (kind, count) in expected.into_iter().chain([(EventKind::Return, 1), (EventKind::Jump, 0)]) {
        assert_eq!(kinds.get(kind), count, "{kind:?}");
    }
}

/// The first lines of the listing of a trace.
fn listing(trace: &Trace, lines: usize) -> Vec<String> {
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let accesses = Accesses::new(trace);
    let filter = Filter::new(&Selection::default(), &dictionary).expect("all of it");
    let (dictionary, accesses) = (&dictionary, &accesses);
    let replay = Replay { dictionary, accesses, filter: &filter, order: ReplayOrder::Time };
    let mut out = Vec::new();
    let mut listing = Listing::new(dictionary, accesses, &|number| format!("call{number}"), &mut out);
    assert!(replay.run(&mut listing, &mut |_| {}).expect("no writing fails").is_empty());
    listing.finish().expect("no writing fails");
    let text = String::from_utf8(out).expect("ASCII");
    assert_eq!(text.lines().filter(|line| line.contains(": ")).count() as u64, 2 + OF_ROUND * ROUNDS + 2);
    text.lines().take(lines).map(Into::into).collect()
}

/// The first round: the instructions, and their effects if values are recorded. Without values, the effects of those
/// marked by `~` lack their last word; and those marked by `?` are not known.
const FIRST_ROUND: &str = "
           0x4000000000:
        1  4000000000: 00000203  addi    r2, r0, 0                        // r2 now 0
        2  4000000004: 03e80303  addi    r3, r0, 1000                     // r3 now 3e8
        3  4000000008: 00120113  call    r1, 0x400000001a                 // r1 now 400000000c
        4  400000001a: 00005707  ld      r7, 0(r5)                        // @4000002000~ 0
        5  400000001e: 00007200  add     r2, r7                          ? // r2 now 0
        6  4000000020: 0008520b  st      r2, 8(r5)                        // @4000002008~ = 0
        7  4000000024: 00105503  addi    r5, r5, 16                       // r5 now 4000002010
        8  4000000028: 0000100c  ret     (r1)
        9  400000000c: 00006108  callr   r1, (r6)                         // r1 now 400000000e
       10  400000002a: 00003204  sub     r2, r3                          ? // r2 now fffffffffffffc18
       11  400000002c: 0000100c  ret     (r1)
       12  400000000e: ffff3303  addi    r3, r3, -1                       // r3 now 3e7
       13  4000000012: fff6030f  bnz     r3, 0x4000000008                 // (r3 is 3e7)";

#[test]
fn a_listing_has_instructions_and_their_effects() {
    let _only = MEMORY.lock();
    let expected: Vec<&str> = FIRST_ROUND.lines().skip(1).collect();
    let whole: Vec<String> = expected.iter().map(|line| line.replace(['~', '?'], "")).collect();
    assert_eq!(listing(&trace::<VALUES>(false), expected.len()), whole);
    let known = |line: &&str| match line.split_once(['~', '?']) {
        Some((known, _)) => known.trim_end().to_string(),
        None => line.to_string(),
    };
    let without: Vec<String> = expected.iter().map(known).collect();
    assert_eq!(listing(&trace::<ACCESSES>(true), expected.len()), without);
}
