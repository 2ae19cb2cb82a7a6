//! Sequences whose cycles follow from the manuals' rules, computed by hand.
//!
//! The rules of the 21164 are those of chapter 2 of its hardware reference manual; sections are named where they
//! are quoted in the machine's file. Those of the 21064 are its scheduling description in GCC, and its manual.

use events::{Consumer, Thread};
use isa::{Alpha, InstructionSet};
use pathlength_machine::Cause::{self, *};

use super::memory::{LEVEL_1, LEVEL_2, LEVEL_3, UNTRANSLATED};
use super::mixed_lengths::MixedLengths;
use super::{START, assembler::assemble, run, run_instructions};

/// A rule; a program; its cycles by cause.
type Sequence = (&'static str, &'static str, &'static [(Cause, u64)]);

/// For the 21164: one block of aligned groups; all data hit L1, at different addresses.
#[rustfmt::skip]
const OF_21164: &[Sequence] = &[
    // Slotting (2.3.1)
    ("either integer unit", "addq r1,r2,r3; addq r4,r5,r6", &[(Issued(2), 1)]),
    ("two integer units", "addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12", &[(Issued(2), 2)]),
    ("four units", "addq r1,r2,r3; addq r4,r5,r6; addt f1,f2,f3; mult f4,f5,f6", &[(Issued(4), 1)]),
    ("shifts in E0 only", "sll r1,r2,r3; srl r4,r5,r6", &[(Issued(1), 2)]),
    ("E0 left to a shift", "addq r1,r2,r3; sll r4,r5,r6", &[(Issued(2), 1)]),
    ("E0 left to a shift beyond a floating-point operation",
        "addq r1,r2,r3; addt f1,f2,f3; sll r4,r5,r6", &[(Issued(3), 1)]),
    ("only to the next integer instruction",
        "addq r1,r2,r3; addq r4,r5,r6; sll r7,r8,r9; addq r10,r11,r12", &[(Issued(2), 2)]),
    ("branches in E1 only", "addq r1,r2,r3; addq r4,r5,r6; bne r7,+8", &[(Issued(2), 1), (Issued(1), 1)]),
    ("one adder", "addt f1,f2,f3; addt f4,f5,f6", &[(Issued(1), 2)]),
    ("adder and multiplier", "addt f1,f2,f3; mult f4,f5,f6", &[(Issued(2), 1)]),
    ("cpys takes the adder first", "cpys f1,f2,f3; addt f4,f5,f6", &[(Issued(1), 2)]),
    ("cpys takes the multiplier else", "addt f4,f5,f6; cpys f1,f2,f3", &[(Issued(2), 1)]),
    ("two cpys", "cpys f1,f2,f3; cpys f4,f5,f6", &[(Issued(2), 1)]),
    ("unop takes no unit", "addq r1,r2,r3; unop; addq r4,r5,r6; unop", &[(Issued(4), 1)]),
    ("two loads", "ldq r1,0(r2); ldq r3,8(r2)", &[(Issued(2), 1)]),
    ("two loads and floating-point",
        "ldt f1,0(r2); ldt f2,8(r2); addt f3,f4,f5; mult f6,f7,f8", &[(Issued(4), 1)]),
    ("no load with a store", "ldq r1,0(r2); stq r3,8(r2)", &[(Issued(1), 2)]),
    ("no store with a load", "stq r3,8(r2); ldq r1,0(r2)", &[(Issued(1), 2)]),
    ("stores in E0 only", "stq r1,0(r2); stq r3,8(r2)", &[(Issued(1), 2)]),
    ("a store and an addition", "addq r1,r2,r3; stq r4,8(r5)", &[(Issued(2), 1)]),
    ("IFII in two parts", "addq r1,r2,r3; addt f1,f2,f3; addq r4,r5,r6; sll r7,r8,r9", &[(Issued(2), 2)]),
    ("FIII in two parts", "addt f1,f2,f3; addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9", &[(Issued(2), 2)]),
    ("IIFI not", "addq r1,r2,r3; addq r4,r5,r6; addt f1,f2,f3; addq r7,r8,r9", &[(Issued(3), 1), (Issued(1), 1)]),
    ("a group after the other", "sll r1,r2,r3; unop; unop; sll r4,r5,r6; addt f1,f2,f3",
        &[(Issued(3), 1), (Issued(1), 2)]),
    // Latencies (2.3.2)
    ("addition, 1", "addq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2)]),
    ("shift, 1", "sll r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2)]),
    ("comparison to branch, 0", "cmpeq r1,r2,r3; bne r3,+8", &[(Issued(2), 1)]),
    ("logical to branch, 0", "and r1,r2,r3; beq r3,+8", &[(Issued(2), 1)]),
    ("addition to branch, 1", "addq r1,r2,r3; bne r3,+8", &[(Issued(1), 2)]),
    ("comparison to what a conditional move tests, 0", "cmpeq r1,r2,r3; cmovne r3,r4,r5", &[(Issued(2), 1)]),
    ("comparison to what it moves, 1", "cmpeq r1,r2,r3; cmovne r4,r3,r5", &[(Issued(1), 2)]),
    ("conditional move, 2", "cmovne r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 1)]),
    ("load, 2", "ldq r1,0(r2); addq r1,r3,r4", &[(Issued(1), 2), (Operand, 1)]),
    ("load to address, 2", "ldq r1,0(r2); ldq r3,0(r1)", &[(Issued(1), 2), (Operand, 1)]),
    ("mull, 8", "mull r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 7)]),
    ("mulq, 12", "mulq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 11)]),
    ("umulh, 14", "umulh r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 13)]),
    ("mull a cycle after addl, 8 + 2", "addl r1,r2,r3; mull r3,r4,r5; addq r5,r6,r7",
        &[(Issued(1), 3), (Operand, 9)]),
    ("mull two cycles after addl, 8 + 1",
        "addl r1,r2,r3; unop; unop; unop; unop; unop; unop; unop; mull r3,r4,r5; unop; unop; unop; addq r5,r6,r7",
        &[(Issued(4), 3), (Issued(1), 1), (Operand, 8)]),
    ("mull after a load, 8 + 1", "ldl r1,0(r2); mull r1,r3,r4; addq r4,r5,r6",
        &[(Issued(1), 3), (Operand, 1 + 8)]),
    ("mull after mull, 4", "mull r1,r2,r3; mull r4,r5,r6", &[(Issued(1), 2), (Unit, 3)]),
    ("mulq after mulq, 8", "mulq r1,r2,r3; mulq r4,r5,r6", &[(Issued(1), 2), (Unit, 7)]),
    ("umulh after mulq, 8", "mulq r1,r2,r3; umulh r1,r2,r4", &[(Issued(1), 2), (Unit, 7)]),
    ("no shift two cycles before a product",
        "mull r1,r2,r3; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; \
         unop; unop; unop; unop; unop; unop; unop; unop; sll r4,r5,r6",
        &[(Issued(4), 6), (Unit, 1), (Issued(1), 1)]),
    ("floating-point addition, 4", "addt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 3)]),
    ("floating-point multiplication, 4", "mult f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 3)]),
    ("floating-point comparison to branch, 4", "cmpteq f1,f2,f3; fbne f3,+8", &[(Issued(1), 2), (Operand, 3)]),
    ("division, as assumed", "divt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 26)]),
    ("division after division", "divt f1,f2,f3; divt f4,f5,f6", &[(Issued(1), 2), (Unit, 26)]),
    // Two writes of one register (2.3.3)
    ("addition after addition", "addq r1,r2,r3; addq r4,r5,r3", &[(Issued(1), 2)]),
    ("conditional moves", "cmoveq r1,r2,r3; cmoveq r4,r5,r3", &[(Issued(1), 2)]),
    ("addition after a load", "ldq r1,0(r2); addq r3,r4,r1", &[(Issued(1), 2), (Operand, 1)]),
    ("addition after mulq", "mulq r1,r2,r3; addq r4,r5,r3", &[(Issued(1), 2), (Operand, 11)]),
    ("addition after division", "divt f1,f2,f3; addt f4,f5,f3", &[(Issued(1), 2), (Operand, 23)]),
    // Loads and stores (2.4, 2.7)
    ("no load two cycles after a store",
        "stq r1,0(r2); addq r3,r4,r5; unop; unop; addq r5,r4,r6; unop; unop; unop; ldq r7,8(r2)",
        &[(Issued(4), 2), (Unit, 1), (Issued(1), 1)]),
    ("a load three cycles after a store",
        "stq r1,0(r2); unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; ldq r7,8(r2)",
        &[(Issued(4), 3), (Issued(1), 1)]),
    // Barriers and calls
    ("mb holds memory, not others", "mb; addq r1,r2,r3; ldq r4,0(r5)", &[(Issued(2), 1), (Issued(1), 1)]),
    ("trapb waits for results", "addt f1,f2,f3; trapb; unop; unop; unop",
        &[(Issued(2), 2), (Barrier, 3), (Issued(1), 1)]),
];

/// For the 21064.
#[rustfmt::skip]
const OF_21064: &[Sequence] = &[
    ("addition and load", "addq r1,r2,r3; ldq r4,0(r5)", &[(Issued(2), 1)]),
    ("load and addition", "ldq r4,0(r5); addq r1,r2,r3", &[(Issued(2), 1)]),
    ("load and store", "ldq r1,0(r2); stq r3,8(r2)", &[(Issued(1), 2)]),
    ("load and load", "ldq r1,0(r2); ldq r3,8(r2)", &[(Issued(1), 2)]),
    ("two integer operations", "addq r1,r2,r3; addq r4,r5,r6", &[(Issued(1), 2)]),
    ("integer and floating-point", "addq r1,r2,r3; addt f4,f5,f6", &[(Issued(2), 1)]),
    ("floating-point load and operation", "ldt f1,0(r2); addt f4,f5,f6", &[(Issued(2), 1)]),
    ("integer store and floating-point", "stq r1,0(r2); addt f4,f5,f6", &[(Issued(1), 2)]),
    ("floating-point store and operation", "stt f1,0(r2); addt f4,f5,f6", &[(Issued(2), 1)]),
    ("floating-point store and integer", "stt f1,0(r2); addq r4,r5,r6", &[(Issued(1), 2)]),
    ("addition and branch", "addq r1,r2,r3; beq r4,+8", &[(Issued(2), 1)]),
    ("addition to addition, 1", "addq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2)]),
    ("addition to address, 2", "addq r1,r2,r3; ldq r4,0(r3)", &[(Issued(1), 2), (Operand, 1)]),
    ("addition to what is stored, 0", "addq r1,r2,r3; stq r3,0(r4)", &[(Issued(2), 1)]),
    ("shift to addition, 2", "sll r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 1)]),
    ("comparison to branch, 1", "cmpeq r1,r2,r3; bne r3,+8", &[(Issued(1), 2)]),
    ("comparison to addition, 2", "cmpeq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 1)]),
    ("load, 3", "ldq r1,0(r2); addq r1,r3,r4", &[(Issued(1), 2), (Operand, 2)]),
    ("mull, 21", "mull r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 20)]),
    ("mulq, 23", "mulq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 22)]),
    ("floating-point addition, 6", "addt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 5)]),
    ("floating-point addition to store, 4", "addt f1,f2,f3; stt f3,0(r4)", &[(Issued(1), 2), (Operand, 3)]),
    ("divs, 34", "divs f1,f2,f3; adds f3,f4,f5", &[(Issued(1), 2), (Operand, 33)]),
    ("divt, 63", "divt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 62)]),
];

/// For the 21164 and instructions of two and four bytes: integer operations and `unop` have two.
#[rustfmt::skip]
const OF_MIXED_LENGTHS: &[Sequence] = &[
    ("no more than four in a cycle", "unop; unop; unop; unop; unop; unop; unop; unop", &[(Issued(4), 2)]),
    ("eight operations are a group", "addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12; addt f1,f2,f3; mult f4,f5,f6",
        &[(Issued(2), 1), (Issued(4), 1)]),
    ("an instruction that crosses groups is issued with the second one",
        "unop; unop; unop; unop; unop; unop; unop; addt f1,f2,f3; addq r1,r2,r3", &[(Issued(4), 1), (Issued(3), 1), (Issued(2), 1)]),
];

/// For the present-day core, in order.
#[rustfmt::skip]
const OF_PRESENT_DAY: &[Sequence] = &[
    ("four additions", "addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12", &[(Issued(4), 1)]),
    ("no more than four", "addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12; addq r13,r14,r15",
        &[(Issued(4), 1), (Issued(1), 1)]),
    ("two shifts", "sll r1,r2,r3; srl r4,r5,r6; sll r7,r8,r9", &[(Issued(2), 1), (Issued(1), 1)]),
    ("two loads and two stores", "ldq r1,0(r2); ldq r3,8(r2); stq r4,16(r2); stq r5,24(r2)", &[(Issued(4), 1)]),
    ("not three loads", "ldq r1,0(r2); ldq r3,8(r2); ldq r4,16(r2)", &[(Issued(2), 1), (Issued(1), 1)]),
    ("comparison to branch, fused", "cmpeq r1,r2,r3; bne r3,+8", &[(Issued(2), 1)]),
    ("comparison to addition, 1", "cmpeq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2)]),
    ("load, 4", "ldq r1,0(r2); addq r1,r3,r4", &[(Issued(1), 2), (Operand, 3)]),
    ("floating-point load, 7", "ldt f1,0(r2); addt f1,f3,f4", &[(Issued(1), 2), (Operand, 6)]),
    ("mulq, 3", "mulq r1,r2,r3; addq r3,r4,r5", &[(Issued(1), 2), (Operand, 2)]),
    ("mulq after mulq", "mulq r1,r2,r3; mulq r4,r5,r6", &[(Issued(1), 2)]),
    ("two additions and two multiplications", "addt f1,f2,f3; addt f4,f5,f6; mult f7,f8,f9; mult f10,f11,f12",
        &[(Issued(4), 1)]),
    ("floating-point addition, 3", "addt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 2)]),
    ("divt, 13", "divt f1,f2,f3; addt f3,f4,f5", &[(Issued(1), 2), (Operand, 12)]),
    ("a division every 5 cycles", "divt f1,f2,f3; divt f4,f5,f6", &[(Issued(1), 2), (Unit, 4)]),
];

fn check(machine: &str, set: &'static dyn InstructionSet, sequences: &[Sequence]) {
    for (rule, program, expected) in sequences {
        let words = assemble(program);
        let data: Vec<u64> = (0..words.len() as u64).map(|number| 0x8000 + 0x100 * number).collect();
        let time = run_instructions(machine, set, START, &words, &[(0, words.len())], &data);
        same(rule, &time.cycles(), expected);
    }
}

fn same(rule: &str, cycles: &pathlength_machine::Cycles, expected: &[(Cause, u64)]) {
    let mut expected = expected.to_vec();
    expected.sort();
    let mut found: Vec<(Cause, u64)> = cycles.iter().collect();
    found.sort();
    assert_eq!(found, expected, "{rule}");
}

#[test]
fn sequences_of_the_21164() {
    check("alphastation500", &Alpha, OF_21164);
}

#[test]
fn sequences_of_the_21064() {
    check("dec3000", &Alpha, OF_21064);
}

#[test]
fn sequences_of_the_present_day_core() {
    check("present-day", &Alpha, OF_PRESENT_DAY);
}

#[test]
fn sequences_of_mixed_lengths() {
    check("alphastation500", &MixedLengths, OF_MIXED_LENGTHS);
}

/// A branch in the last bytes of a group, or of a line, to an instruction that crosses into the next one waits for both.
#[test]
fn a_transfer_to_an_instruction_that_crosses_groups() {
    let cycles = |start: u64| {
        let words = assemble("br r31,+12; unop; addt f1,f2,f3");
        let time = run_instructions("alphastation500", &MixedLengths, start, &words, &[(0, 1), (2, 3)], &[]);
        let sites: u64 = (0..2).flat_map(|block| time.sites(block)).map(|site| site.front_end_stall).sum();
        let stalls = time.cycles().total() - time.cycles().of(Issued(1));
        assert_eq!(sites, stalls, "the sites have all stalls");
        time
    };
    // The addition is at 6, 14 and 30 from the start of a line.
    same("none", &cycles(START).cycles(), &[(Issued(1), 2), (TakenBranch, 1)]);
    same("groups", &cycles(START + 8).cycles(), &[(Issued(1), 2), (TakenBranch, 2)]);
    same("lines", &cycles(START + 24).cycles(), &[(Issued(1), 2), (TakenBranch, 2)]);
    // L2 takes 8 cycles instead of one. Both lines come from there, one after the other.
    same(
        "L2",
        &cycles(LEVEL_1 | (START + 24)).cycles(),
        &[(Issued(1), 2), (TakenBranch, 2), (InstructionMiss(1), 14)],
    );
}

/// A rule; a program; the ranges of it that are executed; the addresses of its data; its cycles by cause.
type Path = (&'static str, &'static str, &'static [(usize, usize)], &'static [u64], &'static [(Cause, u64)]);

const WORKED_EXAMPLE: &str = "ldq r1,0(r3); addq r1,r4,r2; stq r2,8(r3); br r31,-16";

#[rustfmt::skip]
const PATHS_OF_21164: &[Path] = &[
    // Branches
    ("a taken branch costs a cycle", "addq r1,r2,r3; addt f1,f2,f3; unop; br r31,+16; unop; unop; unop; unop; addq r1,r2,r3",
        &[(0, 4), (8, 9)], &[], &[(Issued(4), 1), (TakenBranch, 1), (Issued(1), 1)]),
    ("not if its group waits", "addq r1,r2,r3; addq r3,r4,r5; unop; br r31,+16; unop; unop; unop; unop; addq r1,r2,r3",
        &[(0, 4), (8, 9)], &[], &[(Issued(1), 3), (Issued(2), 1)]),
    ("a wrong prediction costs 5", "beq r1,+12; unop; unop; unop; addq r1,r2,r3",
        &[(0, 1), (4, 5)], &[], &[(Issued(1), 2), (Mispredict, 5)]),
    ("what is not taken goes on in the group", "addq r1,r2,r3; beq r1,+12; addt f1,f2,f3; mult f4,f5,f6",
        &[(0, 2), (2, 4)], &[], &[(Issued(4), 1)]),
    ("two branches are not issued together", "beq r1,+12; fbeq f1,+12; unop; unop",
        &[(0, 1), (1, 2), (2, 4)], &[], &[(Issued(1), 1), (Issued(3), 1)]),
    ("a loop is learned", "addq r1,r2,r3; bne r1,-8",
        &[(0, 2), (0, 2), (0, 2)], &[], &[(Issued(2), 3), (Mispredict, 5), (TakenBranch, 1)]),
    ("returns go back to the instruction after the call", "bsr r26,+12; addq r1,r2,r3; unop; unop; ret r31,(r26)",
        &[(0, 1), (4, 5), (1, 2)], &[], &[(Issued(1), 3), (TakenBranch, 2)]),
    ("a hint that is right", "jmp r31,(r27),+12; unop; unop; unop; addq r1,r2,r3",
        &[(0, 1), (4, 5)], &[], &[(Issued(1), 2), (TakenBranch, 1)]),
    ("a hint that is wrong", "jmp r31,(r27),+16; unop; unop; unop; addq r1,r2,r3",
        &[(0, 1), (4, 5)], &[], &[(Issued(1), 2), (Mispredict, 5)]),
    ("a return to elsewhere", "ret r31,(r26); unop; unop; unop; addq r1,r2,r3",
        &[(0, 1), (4, 5)], &[], &[(Issued(1), 2), (Mispredict, 5)]),
    ("into the middle of a group", "unop; unop; addq r1,r2,r3; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12",
        &[(2, 6)], &[], &[(Issued(2), 2)]),
    ("to the end of a group", "unop; unop; unop; addq r4,r5,r6; addq r7,r8,r9; addq r10,r11,r12",
        &[(3, 6)], &[], &[(Issued(1), 1), (Issued(2), 1)]),
    ("a call of the library", "call_pal 131; addq r1,r2,r3", &[(0, 2)], &[], &[(Issued(1), 2), (CallPal, 16)]),
    // Misses: L2 takes 8 cycles, L3 (the board cache) 20, memory 80.
    ("the second cache, used at once", "ldq r1,0(r2); addq r1,r3,r4",
        &[(0, 2)], &[LEVEL_1], &[(Issued(1), 2), (DataMiss(1), 7)]),
    ("the board cache", "ldq r1,0(r2); addq r1,r3,r4", &[(0, 2)], &[LEVEL_2], &[(Issued(1), 2), (DataMiss(2), 19)]),
    ("memory", "ldq r1,0(r2); addq r1,r3,r4", &[(0, 2)], &[LEVEL_3], &[(Issued(1), 2), (DataMiss(3), 79)]),
    ("a miss whose result is not used", "ldq r1,0(r2); addq r4,r3,r4", &[(0, 2)], &[LEVEL_3], &[(Issued(2), 1)]),
    ("two misses of a block are one", "ldq r1,0(r2); ldq r3,8(r2); addq r3,r4,r5",
        &[(0, 3)], &[LEVEL_2, LEVEL_2 + 8], &[(Issued(2), 1), (DataMiss(2), 19), (Issued(1), 1)]),
    ("a miss that is written over", "ldq r1,0(r2); addq r3,r4,r1", &[(0, 2)], &[LEVEL_2], &[(Issued(1), 2), (DataMiss(2), 19)]),
    ("the seventh miss", "ldq r1,0(r2); ldq r3,0(r2); ldq r4,0(r2); ldq r5,0(r2); ldq r6,0(r2); ldq r7,0(r2); ldq r8,0(r2)",
        &[(0, 7)], &[LEVEL_3, LEVEL_3 + 32, LEVEL_3 + 64, LEVEL_3 + 96, LEVEL_3 + 128, LEVEL_3 + 160, LEVEL_3 + 192],
        &[(Issued(2), 3), (OutstandingMisses, 75), (Issued(1), 1)]),
    ("a missing translation", "ldq r1,0(r2)", &[(0, 1)], &[UNTRANSLATED], &[(DataTranslation, 30), (Issued(1), 1)]),
    ("a load of what was just stored", "stq r1,0(r2); ldq r3,0(r2)", &[(0, 2)], &[0x8000, 0x8000], &[(Issued(1), 2), (Replay, 7)]),
    ("the ninth store finds the write buffer full",
        "stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2)",
        &[(0, 9)], &[0x8000, 0x8020, 0x8040, 0x8060, 0x8080, 0x80a0, 0x80c0, 0x80e0, 0x8100],
        &[(Issued(1), 9), (WriteBuffer, 7)]),
    ("stores to a block are one", "stq r1,0(r2); stq r1,0(r2); stq r1,0(r2); stq r1,0(r2)",
        &[(0, 4)], &[0x8000, 0x8008, 0x8010, 0x8018], &[(Issued(1), 4)]),
    // docs/design/pipeline-model.md
    ("the worked example, three iterations", WORKED_EXAMPLE, &[(0, 4); 3],
        &[0x8000, 0x9000, 0x8100, 0x9100, 0x8200, 0x9200], &[(Issued(1), 6), (Issued(2), 3), (Operand, 3)]),
    ("the worked example, with a load from L2", WORKED_EXAMPLE, &[(0, 4)], &[LEVEL_1, 0x9000],
        &[(Issued(1), 2), (Issued(2), 1), (DataMiss(1), 7)]),
    ("mb waits for a miss", "ldq r1,0(r2); mb; ldq r3,0(r4)", &[(0, 3)], &[LEVEL_2, 0x8000], &[(Issued(1), 3), (Barrier, 16)]),
];

#[test]
fn paths_of_the_21164() {
    for (rule, program, path, data, expected) in PATHS_OF_21164 {
        let time = run("alphastation500", START, &assemble(program), path, data);
        same(rule, &time.cycles(), expected);
    }
}

#[test]
fn paths_of_the_21064() {
    #[rustfmt::skip]
    let paths: &[Path] = &[
        ("pairs are aligned", "unop; addq r1,r2,r3; ldq r4,0(r5)", &[(1, 3)], &[], &[(Issued(1), 2)]),
        ("a wrong prediction costs 4", "beq r1,+12; unop; unop; unop; addq r1,r2,r3",
            &[(0, 1), (4, 5)], &[], &[(Issued(1), 2), (Mispredict, 4)]),
        ("the board cache", "ldq r1,0(r2); addq r1,r3,r4", &[(0, 2)], &[LEVEL_1], &[(Issued(1), 2), (DataMiss(1), 9)]),
    ];
    for (rule, program, path, data, expected) in paths {
        let time = run("dec3000", START, &assemble(program), path, data);
        same(rule, &time.cycles(), expected);
    }
}

#[test]
fn instructions_that_are_missing() {
    let words = assemble("addq r1,r2,r3");
    let cases = [
        (LEVEL_1, (InstructionMiss(1), 7)),
        (LEVEL_2, (InstructionMiss(2), 19)),
        (LEVEL_3, (InstructionMiss(3), 79)),
        (UNTRANSLATED, (InstructionTranslation, 30)),
    ];
    for (start, expected) in cases {
        let time = run("alphastation500", start, &words, &[(0, 1)], &[]);
        same("instructions", &time.cycles(), &[(Issued(1), 1), expected]);
    }
}

#[test]
fn emulated_instructions() {
    let words = assemble("ldbu r1,0(r2); addq r1,r3,r4");
    let native = run("alphastation500", START, &words, &[(0, 2)], &[]);
    same("ldbu", &native.cycles(), &[(Issued(1), 2), (Operand, 1)]);
    assert_eq!(native.emulated(), 0);
    let mut emulated = run("alphastation500-ev5", START, &words, &[(0, 2)], &[]);
    same("6 microseconds at 400 MHz", &emulated.cycles(), &[(Issued(1), 2), (Emulation, 2400)]);
    assert_eq!(emulated.emulated(), 1);
    (0..9).for_each(|_| emulated.executed(Thread::default(), &[!0, 0x8000]));
    assert_eq!((emulated.emulated(), emulated.replays()), (10, 0));
}

#[test]
fn replays_are_counted() {
    let words = assemble("ldq r1,0(r2); addq r1,r3,r4");
    let mut time = run("alphastation500", START, &words, &[(0, 2)], &[LEVEL_1]);
    assert_eq!(time.replays(), 1);
    (0..9).for_each(|_| time.executed(Thread::default(), &[!0, LEVEL_1]));
    assert_eq!((time.replays(), time.emulated()), (10, 0));
    let words = assemble(
        "ldq r1,0(r2); unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; unop; addq r1,r3,r4",
    );
    assert_eq!(run("alphastation500", START, &words, &[(0, words.len())], &[LEVEL_1]).replays(), 0);
}
