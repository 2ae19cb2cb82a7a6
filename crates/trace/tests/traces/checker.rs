//! The checker finds inconsistencies, and reports nothing else.

use events::record::{Heap, MappingEvent, Mark};
use pathlength_trace::Trace;
use pathlength_trace::check::{Rule, check};

use crate::made::path;
use crate::program::Item::{Mark as M, Run};
use crate::program::Name::*;
use crate::program::{DATA, Item, MAIN, OUTSIDE, STACK, checked, right, rules, trace};

#[test]
fn what_happened_is_right() {
    let report = checked("right-records", &right());
    assert_eq!(report.listed, []);
    assert_eq!((report.calls, report.returns, report.outside, report.unwound), (1, 1, 1, 0));
    assert_eq!((report.instructions, report.accesses), (18, 8));
    // The first accesses by sp and by a0 cannot be checked; all others can.
    assert_eq!(report.derived, 6);
}

#[test]
fn an_address_that_its_register_does_not_make_is_found() {
    let mut items = right();
    items[8] = Run(Loop, STACK - 8);
    let report = checked("address", &items);
    assert_eq!(rules(&report), [Rule::Address, Rule::Address]);
    let first = &report.listed[0];
    assert_eq!((first.instruction, first.pc), (11, MAIN + 20));
    let what = "accesses 0x11ffefff8, but its base register says 0x11ffefff0";
    assert_eq!(first.to_string(), format!("stream 0, instruction 11, at 0x120000014: {what}"));
}

#[test]
fn control_that_goes_where_it_cannot_is_found() {
    // A block that is not the branch's target; not the fall-through block; not at the return address.
    for (index, wrong) in [(5, Run(Leave, 0)), (8, Run(Called, DATA + 8)), (3, Run(Loop, STACK - 16))] {
        let mut items = right();
        items[index] = wrong;
        let report = checked("control", &items);
        assert_eq!(report.listed[0].rule, Rule::Control, "{index}");
        // After a discontinuity any block is possible.
        items.insert(index, M(Mark::Discontinuity));
        let diverted = checked("control", &items);
        assert_ne!(diverted.listed.first().map(|one| one.pc), Some(report.listed[0].pc), "{index}");
    }
}

#[test]
fn a_return_to_where_no_call_is_open_is_found() {
    let (gap, back) = (M(Mark::Gap), Run(Behind, STACK));
    // Calls before recording began are unknown.
    assert_eq!(checked("return", &[gap, back, Run(Outside, DATA)]).outside, 1);
    let report = checked("return", &[gap, Run(Indirect, 0), back, Run(Outside, DATA)]);
    // The stack pointer follows from the address from which `ra` was loaded.
    assert_eq!(rules(&report), [Rule::Return]);
    assert_eq!((report.listed[0].instruction, report.listed[0].pc), (3, OUTSIDE));
    assert_eq!(checked("return", &[gap, Run(Indirect, 0), back, Run(After, DATA)]).listed, []);
    // A signal handler returns to the address in its frame.
    let report =
        checked("return", &[gap, Run(Indirect, 0), M(Mark::Discontinuity), back, Run(Outside, DATA)]);
    assert_eq!((report.violations, report.outside), (0, 1));
}

/// In a trace of a whole system only its system call tells that a signal handler ends.
#[test]
fn a_signal_handler_returns_to_its_system_call() {
    let begin = [M(Mark::Gap), Run(Indirect, 0), Run(Behind, STACK), Run(Outside, DATA)];
    let ended = |number| checked("handler", &[&begin[..], &[M(Mark::SystemCall(number))]].concat());
    // No block of this program makes the calls.
    assert_eq!(rules(&ended(20)), [Rule::SystemCall, Rule::Return]);
    assert_eq!((rules(&ended(103)), ended(103).outside), (vec![Rule::SystemCall], 1));
}

#[test]
fn calls_that_are_not_returned_from_are_counted() {
    let items =
        [M(Mark::Gap), Run(Indirect, 0), Run(Again, 0), Run(Behind, STACK), Run(After, DATA), Run(Again, 0)];
    let report = checked("unwound", &items);
    assert_eq!(report.listed, []);
    assert_eq!((report.calls, report.returns, report.unwound), (3, 1, 1));
}

#[test]
fn marks_out_of_order_are_found() {
    let [caller, size, block] = [Heap::Caller(16), Heap::Size(8), Heap::Block(64)].map(Mark::Heap);
    let [start, bytes, object, offset] = [
        MappingEvent::Start(8192),
        MappingEvent::Size(8192),
        MappingEvent::Shared(1),
        MappingEvent::Offset(0),
    ]
    .map(Mark::Mapping);
    let cases: [(Rule, &[Mark]); 14] = [
        (Rule::Order, &[Mark::Order(5), Mark::Order(5)]),
        (Rule::Order, &[Mark::Order(0), Mark::Order(0)]),
        (Rule::Order, &[Mark::Order(5), Mark::Order(4)]),
        (Rule::Unit, &[Mark::UnitEnds(3)]),
        (Rule::Unit, &[Mark::UnitBegins(3), Mark::UnitLeft(4)]),
        (Rule::Unit, &[Mark::UnitBegins(3), Mark::UnitBegins(4)]),
        (Rule::Unit, &[Mark::UnitBegins(3), Mark::UnitEnds(3), Mark::UnitBegins(3)]),
        (Rule::SystemCall, &[Mark::SystemCall(1)]),
        (Rule::Heap, &[size]),
        (Rule::Heap, &[caller, block]),
        (Rule::Heap, &[caller, size, block, block]),
        (Rule::Mapping, &[bytes, object, offset]),
        (Rule::Mapping, &[start, bytes, start, bytes, object, offset]),
        (Rule::Mapping, &[start, Mark::Mapping(MappingEvent::Gone)]),
    ];
    for (rule, marks) in cases {
        let mut items: Vec<Item> = vec![M(Mark::Gap), Run(Enter, STACK - 16)];
        items.extend(marks.iter().map(|&mark| M(mark)));
        assert_eq!(rules(&checked("marks", &items)), [rule], "{marks:?}");
    }
    // In traces of attached programs numbers once began with 0.
    for first in [0, 2] {
        let fine =
            [Mark::Order(first), Mark::UnitBegins(3), Mark::UnitLeft(3), Mark::UnitBegins(7), Mark::Order(9)];
        let freed = Mark::Heap(Heap::Freed(64));
        let mapped = [Mark::Mapping(MappingEvent::Copied(0)), start, bytes, object, offset];
        let heap = [caller, size, block, freed, freed];
        let items: Vec<Item> = fine.into_iter().chain(heap).chain(mapped).map(M).collect();
        assert_eq!(checked("marks", &items).listed, []);
    }
}

/// Changes a field of the last chunk's head, and corrects its checksum.
fn forge(name: &str, offset: usize, change: impl Fn(&mut u8)) -> Trace {
    const HEAD: usize = 72;
    drop(trace(name, &right()));
    let path = path(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let magic = &bytes[12..20].to_vec();
    let at = bytes.windows(8).rposition(|window| window == magic).unwrap();
    change(&mut bytes[at + offset]);
    let checksum = crc32fast::hash(&bytes[at..at + HEAD - 4]);
    bytes[at + HEAD - 4..at + HEAD].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    Trace::open(&path).unwrap()
}

#[test]
fn heads_that_claim_something_else_are_found() {
    assert_eq!(check(&forge("forged", 32, |_| {})).violations, 0);
    // Words, first instruction, instructions, order, first unit, the payload's checksum.
    for offset in [28, 32, 40, 48, 56, 64] {
        let trace = forge("forged", offset, |byte| *byte ^= 1);
        let report = check(&trace);
        assert_eq!(rules(&report), [Rule::Chunk], "{offset}: {report:?}");
    }
}

#[test]
fn only_the_first_violations_are_listed() {
    let items: Vec<Item> = (0..1000).map(|_| M(Mark::UnitEnds(0))).collect();
    let report = checked("many", &items);
    assert_eq!((report.violations, report.listed.len()), (1000, 100));
}
