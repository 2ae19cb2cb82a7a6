//! The toy's instructions of two and four bytes in a pipeline, against cycles that were worked out by hand.

use std::collections::BTreeMap;

use events::{Block, Consumer, Thread};
use machine::pipeline::PerfectMemory;
use machine::{Cause, Machine, TimingModel};

use super::instruction_set::ToySet;
use super::tests::{CODE, ROUNDS};
use super::trace_tests::trace;
use super::*;
use crate::test_runner::{ACCESSES, MEMORY};

/// The 21164: groups of 16 bytes are issued one after the other, two integer operations a cycle; a branch or jump takes
/// the second integer unit, a store the first. A taken branch costs a cycle, a misprediction 5. All accesses hit. Jumps go
/// where they went before; backward branches are taken.
fn pipeline() -> TimingModel<PerfectMemory> {
    let description = "base = \"alphastation500\"\n[predictor]\nscheme = \"static\"\ntargets = 16";
    let machine = Machine::from_toml(description).expect("a machine");
    TimingModel::with_memory(&machine, PerfectMemory).expect("a pipeline")
}

fn cycles(time: &TimingModel<PerfectMemory>) -> BTreeMap<Cause, u64> {
    time.cycles().iter().collect()
}

fn word(op: Op, a: u32, b: u32) -> u32 {
    op as u32 | a << 8 | b << 12
}

#[test]
fn groups_have_the_instructions_that_end_in_them() {
    let (short, long) = (Op::Add, Op::AddImmediate);
    // Where a block begins, its instructions, and how many are issued in each cycle.
    let cases: [(u64, &[Op], &[u8]); 6] = [
        (0, &[short; 8], &[2, 2, 2, 2]),
        (12, &[short, short], &[2]),
        (14, &[short, short], &[1, 1]),
        (12, &[long, long], &[1, 1]),
        // The second one crosses two groups, and is issued with the third one.
        (12, &[short, long, short], &[1, 2]),
        (10, &[short, short, long, short], &[2, 2]),
    ];
    for (offset, ops, expected) in cases {
        let mut time = pipeline();
        let words: Vec<u32> = (1..).zip(ops).map(|(register, &op)| word(op, register % 8, 0)).collect();
        time.define(&Block::new(&ToySet, CODE + offset, words));
        time.executed(Thread::default(), &[!0]);
        let mut issued = BTreeMap::new();
        expected.iter().for_each(|&count| *issued.entry(Cause::Issued(count)).or_default() += 1);
        assert_eq!(cycles(&time), issued, "{offset}: {ops:?}");
    }
}

/// A round, from the cycle of its call on:
///
/// | cycle | |
/// |---|---|
/// | 0 | `call`, in the group of bytes 0 to 15 |
/// | 1 | taken branch |
/// | 2 | `ld` at 26 |
/// | 3 | operand: a load takes two cycles |
/// | 4 | `add` at 30 |
/// | 5 | `st` at 32 and `addi` at 36 |
/// | 6 | `ret` at 40 needs the unit of `addi` |
/// | 7 | `callr` at 12: the taken branch is hidden, as the group of `ret` had arrived in cycle 5 |
/// | 8 | taken branch |
/// | 9 | `sub` at 42 and `ret` at 44 |
/// | 10 | taken branch: the first half of `addi` at 14 arrives in cycle 11 |
/// | 11 | its second half arrives in cycle 12 |
/// | 12 | `addi` |
/// | 13 | `bnz` at 18 needs its result; the taken branch is hidden |
///
/// In the first round two `addi` are issued in cycle 0, and `call` follows them in place of the stall; `callr` is
/// mispredicted. In the end, `bnz` is mispredicted before `sys`.
#[test]
fn the_program_takes_the_cycles_of_its_groups() {
    let _only = MEMORY.lock();
    let trace = trace::<ACCESSES>(true);
    let mut time = pipeline();
    trace.blocks().iter().for_each(|block| time.define(block));
    let mut words = Vec::new();
    trace.read(0, &mut words).expect("records");
    time.executed(Thread::default(), &words);
    let expected = [
        (Cause::Issued(1), 7 * ROUNDS + 1),
        (Cause::Issued(2), 2 * ROUNDS + 1),
        (Cause::TakenBranch, 4 * ROUNDS - 2),
        (Cause::Operand, ROUNDS),
        (Cause::Mispredict, 2 * 5),
    ];
    assert_eq!(cycles(&time), expected.into_iter().collect());
}
