//! A program of the toy's, interpreted and compiled: the same registers, counts and records.

use std::collections::BTreeMap;

use events::BlockId;
use guest_memory::{Layout, RegionBacking};

use super::*;
use crate::test_runner::{ACCESSES, COUNTS, GuestRunner, MEMORY};

/// Rounds of the program's loop.
pub(super) const ROUNDS: u64 = 1000;
pub(super) const CODE: u64 = 1 << 38;
pub(super) const DATA: u64 = CODE + 2 * PAGE;
const PAGE: u64 = 4096;
pub(super) const LAYOUT: Layout =
    Layout { page: PAGE, bytes: 1 << 39, map_base: CODE, large_page: PAGE, large_base: 1 << 39 };

fn long(op: Op, a: u8, b: u8, immediate: i16) -> Vec<u8> {
    let word = op as u32 | u32::from(a) << 8 | u32::from(b) << 12 | u32::from(immediate as u16) << 16;
    word.to_le_bytes().to_vec()
}

fn short(op: Op, a: u8, b: u8) -> Vec<u8> {
    long(op, a, b, 0)[..2].to_vec()
}

/// Adds numbers from memory up and writes the sums back, by a call, and subtracts the rounds left, by a call to where a
/// register points. Its blocks, by address, and how many instructions each has, and how often it is executed.
fn program() -> (Vec<u8>, [(u64, u64, u64); 6]) {
    let parts = [
        long(Op::AddImmediate, 2, 0, 0),
        long(Op::AddImmediate, 3, 0, ROUNDS as i16),
        // 8: the loop
        long(Op::Call, 1, 0, 18),
        short(Op::CallRegister, 1, 6),
        long(Op::AddImmediate, 3, 3, -1),
        long(Op::BranchNotZero, 3, 0, -10),
        long(Op::SystemCall, 0, 0, 0),
        // 26: adds
        long(Op::Load, 7, 5, 0),
        short(Op::Add, 2, 7),
        long(Op::Store, 2, 5, 8),
        long(Op::AddImmediate, 5, 5, 16),
        short(Op::Return, 0, 1),
        // 42: subtracts
        short(Op::Subtract, 2, 3),
        short(Op::Return, 0, 1),
    ];
    let blocks = [
        // The first block goes on into the loop's.
        (0, 3, 1),
        (8, 1, ROUNDS - 1),
        (12, 1, ROUNDS),
        (14, 2, ROUNDS),
        (22, 1, 1),
        (26, 5, ROUNDS),
    ];
    (parts.concat(), blocks)
}

/// Executes the toy's code.
pub(super) type ToyRunner<'a, const LEVEL: u8> = GuestRunner<'a, Toy, LEVEL>;

/// A runner at the program's beginning.
pub(super) fn runner<const LEVEL: u8>(memory: &Memory, is_compiled: bool) -> ToyRunner<'_, LEVEL> {
    let mut toy = Toy { pc: CODE, ..Toy::default() };
    (toy.registers[5], toy.registers[6]) = (DATA, CODE + 42);
    GuestRunner::new(toy, (), memory, is_compiled)
}

/// The program's memory: its code, and numbers to add up.
pub(super) fn load() -> Memory {
    let memory = Memory::new(LAYOUT).expect("address space");
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let bytes = DATA - CODE + (16 * ROUNDS).next_multiple_of(PAGE);
    memory.map_anonymous(CODE, bytes, protection, false, RegionBacking::Anonymous).expect("memory");
    memory.write(CODE, &program().0).expect("the program fits");
    for number in 0..ROUNDS {
        memory.store::<8>(DATA + 16 * number, number * number).expect("data");
    }
    memory
}

/// The result of the program.
fn expected_sum() -> u64 {
    (0..ROUNDS).map(|number| number * number).sum::<u64>().wrapping_sub((1..=ROUNDS).sum())
}

/// Executions and instructions of all blocks, by address.
fn counted<const LEVEL: u8>(runner: &ToyRunner<LEVEL>) -> BTreeMap<u64, (u64, u64)> {
    let block = |(&id, &times): (&BlockId, &u64)| {
        let block = runner.cache.block(id);
        (block.address - CODE, (block.instructions.len() as u64, times))
    };
    runner.observer.executions.iter().map(block).collect()
}

#[test]
fn a_toy_is_interpreted_compiled_and_counted() {
    let _only = MEMORY.lock();
    let expected: BTreeMap<_, _> = program()
        .1
        .into_iter()
        .chain([(42, 2, ROUNDS)])
        .map(|(at, length, times)| (at, (length, times)))
        .collect();
    for is_compiled in [false, true] {
        let memory = load();
        let runner = runner::<COUNTS>(&memory, is_compiled).run();
        assert_eq!(runner.guest.registers[2], expected_sum(), "compiled: {is_compiled}");
        assert_eq!(runner.entered > 0, is_compiled);
        assert_eq!(counted(&runner), expected, "compiled: {is_compiled}");
        let instructions: u64 = expected.values().map(|(length, times)| length * times).sum();
        assert_eq!(runner.guest.instructions, instructions, "compiled: {is_compiled}");
    }
}

#[test]
fn a_toys_records_are_the_same_interpreted_and_compiled() {
    let _only = MEMORY.lock();
    let records = [false, true].map(|is_compiled| {
        let memory = load();
        let runner = runner::<ACCESSES>(&memory, is_compiled).run();
        assert_eq!(runner.guest.registers[2], expected_sum(), "compiled: {is_compiled}");
        assert_eq!(runner.entered > 0, is_compiled);
        let accesses = runner.observer.records.iter().filter(|&&word| word >> 63 == 0).count() as u64;
        assert_eq!(accesses, 2 * ROUNDS);
        runner.observer.records
    });
    assert!(records[0] == records[1], "the records differ");
}

#[test]
fn no_page_is_writable_and_executable_while_compiled_code_runs() {
    let _only = MEMORY.lock();
    let memory = load();
    let runner = runner::<COUNTS>(&memory, true).run();
    let (mappings, code) = runner.mappings.expect("compiled code called the interpreter");
    let mut rights_of_code = "";
    for mapping in mappings.lines() {
        let (range, rest) = mapping.split_once(' ').expect("addresses and rights");
        let ends = range.split('-').map(|end| u64::from_str_radix(end, 16).expect("an address"));
        let ends: Vec<u64> = ends.collect();
        assert!(!rest.starts_with("rwx"), "{mapping}");
        if (ends[0]..ends[1]).contains(&code) {
            rights_of_code = &rest[..4];
        }
    }
    assert_eq!(rights_of_code, "r-xp");
}
