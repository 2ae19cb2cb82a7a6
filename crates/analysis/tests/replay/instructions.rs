//! The instruction listing, line by line.

use events::record::Mark;
use isa::Op;
use isa::encode::{SecondOperand, branch, call_pal, jump, memory, operate};
use pathlength_analysis::names::Names;
use pathlength_analysis::replay::{Dictionary, Filter, NotInTrace, Selection};

use crate::made::{Item, Made, Thread};

const SP: u8 = 30;
const NOP: u32 = 0x47ff_041f;

fn words() -> Vec<u32> {
    vec![
        memory(Op::Lda, SP, SP, -64).unwrap(),
        memory(Op::Stq, 9, SP, 8).unwrap(),
        memory(Op::Ldl, 3, 17, 0).unwrap(),
        operate(Op::Bis, 31, SecondOperand::Literal(1), 4).unwrap(),
        operate(Op::Addq, 4, SecondOperand::Literal(2), 4).unwrap(),
        branch(Op::Beq, 4, 0x100 - 0x18).unwrap(),
        memory(Op::Lda, 1, SP, 16).unwrap(),
        branch(Op::Bsr, 26, 0x200 - 0x20).unwrap(),
    ]
}

fn listed(made: &Made, selection: &Selection) -> Vec<String> {
    made.instructions(selection).lines().map(|line| line.trim_end().into()).collect()
}

#[test]
fn without_values_what_follows_from_addresses_is_told() {
    let made = Made::thread(&[(0x1000, &words())], vec![Item::Block(0, vec![0x8008, 0x9000])]);
    assert_eq!(
        listed(&made, &Selection::default()),
        [
            "           prog.so!main:",
            "        1  1000: 23deffc0  lda     sp, -64(sp)",
            "        2  1004: b53e0008  stq     s0, 8(sp)                        // @8008",
            "        3  1008: a0710000  ldl     t2, 0(a1)                        // @9000",
            "        4  100c: 47e03404  mov     0x1, t3                          // t3 now 1",
            "        5  1010: 40805404  addq    t3, 0x2, t3                      // t3 now 3",
            "        6  1014: e480003a  beq     t3, 0x1100                       // (t3 is 3)",
            "        7  1018: 203e0010  lda     t0, 16(sp)                       // t0 now 8010",
            "        8  101c: d3400078  bsr     ra, 0x1200                       // ra now 1020",
        ]
    );
}

#[test]
fn targets_of_branches_have_names_if_those_are_known() {
    let nop = [NOP];
    let blocks: [(u64, &[u32]); 3] = [(0x1000, &words()), (0x1100, &nop), (0x1210, &nop)];
    let made = Made::thread(&blocks, vec![Item::Block(0, vec![0x8008, 0x9000])]);
    let listed = listed(&made, &Selection::default());
    assert!(listed[6].contains("beq     t3, f ") && listed[8].contains("bsr     ra, g "), "{listed:?}");
}

#[test]
fn with_values_all_effects_are_shown() {
    let mut made = Made::thread(&[(0x1000, &words()[..6])], vec![]);
    made.has_values = true;
    // Two addresses; then values written, stored, loaded, written twice, and tested.
    let rest = vec![0x8008, 0x9000, 0x8000, 0x1234_5678_9abc, u64::MAX, 1, 3, 3];
    made.threads = vec![Thread { process: 0, items: vec![Item::Block(0, rest)] }];
    let lines = listed(&made, &Selection::default());
    let effects: Vec<&str> = lines[1..].iter().map(|line| line.split_once("// ").unwrap().1).collect();
    let expected = [
        "sp now 8000",
        "@8008 = 123456789abc",
        "@9000 ffffffffffffffff",
        "t3 now 1",
        "t3 now 3",
        "(t3 is 3)",
    ];
    assert_eq!(effects, expected);
}

#[test]
fn marks_and_threads_are_lines() {
    let call = [call_pal(0x83).unwrap()];
    let ret = [jump(Op::Ret, 31, 26, 1).unwrap()];
    let mut made = Made::thread(&[(0x1000, &call), (0x1200, &ret)], vec![]);
    let first = vec![
        Item::Mark(Mark::Gap),
        Item::Mark(Mark::Order(1)),
        Item::Block(0, vec![]),
        Item::Mark(Mark::SystemCall(4)),
    ];
    let second = vec![Item::Mark(Mark::Order(2)), Item::Block(1, vec![]), Item::Mark(Mark::UnitLeft(2))];
    made.threads = vec![Thread { process: 0, items: first }, Thread { process: 3, items: second }];
    assert_eq!(
        listed(&made, &Selection::default()),
        [
            "        0  ** process 0 (number 77), thread 0",
            "        0  ** the trace begins",
            "           prog.so!main:",
            "        1  1000: 00000083  callsys",
            "        1  ** system call 4: call4",
            "        0  ** process 3 (number 1003), thread 0",
            "           prog.so!g:",
            "        1  1200: 6bfa8001  ret",
            "        1  ** unit of work 2 is left, not by its function's return",
        ]
    );
}

#[test]
fn numbers_units_and_addresses_select() {
    let mut items: Vec<Item> = (0..5).map(|_| Item::Block(0, vec![])).collect();
    items.insert(4, Item::Mark(Mark::UnitEnds(7)));
    items.insert(2, Item::Mark(Mark::UnitBegins(7)));
    let made = Made::thread(&[(0x1000, &[NOP; 4])], items);
    let numbers = |selection: &Selection| -> Vec<u64> {
        let lines = listed(&made, selection);
        let instructions = lines.iter().filter(|line| line.contains("nop"));
        instructions.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    };
    let instructions = |range| Selection { instructions: Some(range), ..Selection::default() };
    assert_eq!(numbers(&instructions(3..=6)), [3, 4, 5, 6]);
    assert_eq!(numbers(&instructions(20..=99)), [20]);
    assert!(numbers(&instructions(21..=99)).is_empty());
    let units = |range| Selection { units: Some(range), ..Selection::default() };
    assert_eq!(numbers(&units(7..=7)), (9..=16).collect::<Vec<_>>());
    assert!(numbers(&units(0..=6)).is_empty());
    let both = Selection { instructions: Some(12..=18), ..units(5..=9) };
    assert_eq!(numbers(&both), (12..=16).collect::<Vec<_>>());
    let range = Selection { range: Some(0x1004..=0x1009), instructions: Some(1..=8), ..Selection::default() };
    assert_eq!(numbers(&range), [2, 3, 6, 7]);
}

/// Where each unit is, whatever chunks it is spread over.
#[test]
fn units_are_found_in_any_chunk() {
    let mut items = Vec::new();
    let mut expected = Vec::new();
    let mut number = 0;
    for (unit, length) in [3, 20, 1, 1, 9, 4, 30, 2, 2].into_iter().enumerate() {
        items.push(Item::Mark(Mark::UnitBegins(2 * unit as u64)));
        items.extend((0..length).map(|_| Item::Block(0, vec![])));
        items.push(Item::Mark(Mark::UnitEnds(2 * unit as u64)));
        // Instructions between units.
        items.extend((0..unit % 3).map(|_| Item::Block(0, vec![])));
        expected.push((number + 1..=number + length).collect::<Vec<u64>>());
        number += length + unit as u64 % 3;
    }
    let made = Made::thread(&[(0x1000, &[NOP])], items);
    let numbers = |first: usize, last: usize| -> Vec<u64> {
        let selection =
            Selection { units: Some(2 * first as u64..=2 * last as u64 + 1), ..Selection::default() };
        let lines = listed(&made, &selection);
        let instructions = lines.iter().filter(|line| line.contains("nop"));
        instructions.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    };
    for first in 0..expected.len() {
        for last in first..expected.len() {
            assert_eq!(numbers(first, last), expected[first..=last].concat(), "{first} to {last}");
        }
    }
}

#[test]
fn selections_that_match_nothing_are_errors() {
    let trace = Made::thread(&[(0x1000, &[NOP])], vec![Item::Block(0, vec![])]).open();
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let absent = |selection: Selection| Filter::new(&selection, &dictionary).err();
    let function =
        |name: &str| Selection { functions: vec!["main".into(), name.into()], ..Selection::default() };
    assert_eq!(absent(function("g")), Some(NotInTrace::Function("g".into(), Vec::new())));
    assert_eq!(
        absent(function("other!main")),
        Some(NotInTrace::Function("other!main".into(), vec!["main".into()]))
    );
    assert_eq!(absent(function("prog.so!main")), None);
    assert_eq!(absent(function("prog!main")), None);
    let image = Selection { images: vec!["pro".into()], ..Selection::default() };
    assert_eq!(absent(image), Some(NotInTrace::Image("pro".into(), vec!["prog.so".into()])));
    let thread = |one| Selection { threads: vec![one], ..Selection::default() };
    assert_eq!(absent(thread((0, Some(0)))), None);
    assert_eq!(absent(thread((0, Some(1)))), Some(NotInTrace::Thread("thread 0.1".into())));
    assert_eq!(absent(thread((1, None))), Some(NotInTrace::Thread("process 1".into())));
}
