//! The function trace follows calls, tail calls, longjmp, signals and recursion.

use events::record::Mark;
use isa::Op;
use isa::encode::{branch, call_pal, jump};
use pathlength_analysis::replay::Selection;

use crate::made::{Item, Made};

const RA: u8 = 26;
const ZERO: u8 = 31;

/// Blocks of one instruction: what it does, its address, its word.
fn blocks() -> Vec<(&'static str, u64, u32)> {
    let call = jump(Op::Jsr, RA, 27, 0).unwrap();
    let ret = jump(Op::Ret, ZERO, RA, 1).unwrap();
    let jmp = jump(Op::Jmp, ZERO, 27, 0).unwrap();
    let beq = branch(Op::Beq, 1, 64).unwrap();
    let system = call_pal(0x83).unwrap();
    vec![
        ("main calls", 0x1000, call),
        ("main goes on", 0x1004, call),
        ("main after", 0x1008, beq),
        ("main far behind", 0x1020, beq),
        ("f calls", 0x1100, call),
        ("f after", 0x1104, ret),
        ("f behind gp", 0x1108, call),
        ("f returns", 0x110c, ret),
        ("f branches", 0x1150, beq),
        ("g returns", 0x1200, ret),
        ("g jumps", 0x1210, jmp),
        ("g calls the system", 0x1220, system),
        ("h returns", 0x1300, ret),
        ("h calls", 0x1310, call),
        ("h after", 0x1314, jmp),
        ("trampoline", 0x9000, system),
    ]
}

enum Step {
    At(&'static str),
    Mark(Mark),
}
use Step::At;

/// A thread on this path.
fn path(path: &[Step]) -> Made {
    let blocks = blocks();
    let items = path.iter().map(|step| match step {
        Step::Mark(mark) => Item::Mark(*mark),
        At(name) => {
            let index = blocks.iter().position(|(known, ..)| known == name);
            Item::Block(index.unwrap_or_else(|| panic!("no block {name}")), vec![])
        }
    });
    let items = items.collect();
    let words: Vec<[u32; 1]> = blocks.iter().map(|(.., word)| [*word]).collect();
    let blocks: Vec<(u64, &[u32])> =
        blocks.iter().zip(&words).map(|((_, address, _), words)| (*address, &words[..])).collect();
    Made::thread(&blocks, items)
}

/// Expects these lines: number, depth and the rest.
fn expect(steps: &[Step], expected: &[(u64, usize, &str)]) {
    let text = path(steps).functions(&Selection::default());
    let line = |line: &str| {
        let (number, rest) = line.split_once("  ** ").unwrap();
        let name = rest.trim_start();
        (number.trim().parse().unwrap(), (rest.len() - name.len()) / 2, name.replace("prog.so!", ""))
    };
    let found: Vec<(u64, usize, String)> = text.lines().map(line).collect();
    let expected: Vec<_> =
        expected.iter().map(|&(number, depth, name)| (number, depth, name.into())).collect();
    assert_eq!(found, expected);
}

#[test]
fn calls_nest_and_return() {
    let steps = [
        At("main calls"),
        At("f calls"),
        At("g returns"),
        At("f after"),
        At("main goes on"),
        At("h returns"),
        At("main after"),
    ];
    expect(&steps, &[(0, 0, "main"), (1, 1, "f"), (2, 2, "g"), (5, 1, "h")]);
}

#[test]
fn a_function_entered_behind_its_global_pointer_is_the_same_function() {
    let steps = [At("main calls"), At("f behind gp"), At("g returns"), At("f returns"), At("main goes on")];
    expect(&steps, &[(0, 0, "main"), (1, 1, "f"), (2, 2, "g")]);
}

#[test]
fn a_tail_call_takes_the_place_of_its_caller() {
    let steps = [
        At("main calls"),
        At("f calls"),
        At("g jumps"),
        At("h returns"),
        At("f after"),
        At("main goes on"),
        At("g returns"),
    ];
    expect(&steps, &[(0, 0, "main"), (1, 1, "f"), (2, 2, "g+0x10"), (3, 2, "h"), (6, 1, "g")]);
}

#[test]
fn recursion_nests() {
    let steps = ["f calls", "f calls", "f calls", "g returns", "f after", "f after", "f after", "f calls"];
    let expected = [(0, 0, "f"), (1, 1, "f"), (2, 2, "f"), (3, 3, "g")];
    // The last call is of a function that returned below where recording began.
    let steps = steps.map(At);
    expect(&steps[..7], &expected);
}

#[test]
fn longjmp_goes_back_to_the_function_that_waits() {
    let steps = [
        At("main calls"),
        At("f calls"),
        At("h calls"),
        At("g returns"),
        At("h after"),
        At("main far behind"),
        At("main goes on"),
        At("f calls"),
    ];
    expect(&steps, &[(0, 0, "main"), (1, 1, "f"), (2, 2, "h+0x10"), (3, 3, "g"), (7, 1, "f")]);
}

#[test]
fn returns_below_where_recording_began() {
    let steps = [At("g returns"), At("f branches"), At("f calls"), At("g returns")];
    let caller = "f+0x50 (called before recording began)";
    expect(&steps, &[(0, 0, "g"), (1, 0, caller), (3, 1, "g")]);
}

#[test]
fn a_signal_interrupts_and_its_end_goes_on_with_what_it_interrupted() {
    // It comes between the call of f and its first instruction.
    let steps = [
        At("main calls"),
        Step::Mark(Mark::Discontinuity),
        At("h returns"),
        At("trampoline"),
        Step::Mark(Mark::SystemCall(351)),
        Step::Mark(Mark::Discontinuity),
        At("f calls"),
        At("g returns"),
        At("f after"),
        At("main goes on"),
        At("h returns"),
    ];
    let expected = [
        (0, 0, "main"),
        (1, 1, "h (a signal's handler)"),
        (2, 1, "0x9000"),
        (3, 1, "f"),
        (4, 2, "g"),
        (7, 1, "h"),
    ];
    expect(&steps, &expected);
}

#[test]
fn another_program_begins_anew() {
    let steps = [
        At("main calls"),
        At("g calls the system"),
        Step::Mark(Mark::SystemCall(59)),
        Step::Mark(Mark::Discontinuity),
        At("f calls"),
        At("g returns"),
    ];
    expect(&steps, &[(0, 0, "main"), (1, 1, "g+0x20"), (2, 0, "f"), (3, 1, "g")]);
}

#[test]
fn units_and_gaps_are_shown() {
    let steps = [
        Step::Mark(Mark::Gap),
        Step::Mark(Mark::UnitBegins(3)),
        At("f calls"),
        At("g returns"),
        At("f after"),
        Step::Mark(Mark::UnitEnds(3)),
        Step::Mark(Mark::Gap),
        At("h returns"),
    ];
    let expected = [
        (0, 0, "the trace begins"),
        (0, 0, "unit of work 3 begins"),
        (0, 0, "f"),
        (1, 1, "g"),
        (3, 0, "unit of work 3 ends"),
        (3, 0, "the trace continues after a gap"),
        (3, 0, "h"),
    ];
    expect(&steps, &expected);
}

#[test]
fn with_callees_is_all_that_a_function_calls() {
    let made = path(&[
        At("main calls"),
        At("f calls"),
        At("g returns"),
        At("f after"),
        At("main goes on"),
        At("g returns"),
        At("main after"),
    ]);
    let selection =
        |with_callees| Selection { functions: vec!["prog!f".into()], with_callees, ..Selection::default() };
    let numbers = |with_callees| -> Vec<u64> {
        let listed = made.instructions(&selection(with_callees));
        listed.lines().filter_map(|line| line[..9].trim().parse().ok()).collect()
    };
    assert_eq!((numbers(false), numbers(true)), (vec![2, 4], vec![2, 3, 4]));
    let shown = made.functions(&selection(true));
    assert!(shown.contains("!f") && shown.contains("!g") && !shown.contains("main"), "{shown}");
}
