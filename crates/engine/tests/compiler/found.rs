//! Differences found by random sequences, minimized.

use isa::Op;

use crate::compare;
use crate::sequences::assembler::register::*;
use crate::sequences::assembler::*;
use crate::sequences::batch::{Batch, PASSES};
use crate::sequences::record::QUADS;
use crate::sequences::{Kind, Sequence};

/// Compares one sequence, without its return, from registers with distinct values.
fn check(words: Vec<u32>) {
    let words = [words, vec![jump(Op::Ret, ZERO, BACK)]].concat();
    let record: [u64; QUADS] = std::array::from_fn(|quad| 0x0123_4567_89ab_cdef << (quad % 7) | quad as u64);
    let sequences = vec![Sequence { entry: 0, words }];
    compare(&Batch { sequences, records: vec![[record; PASSES]], ieee_control: 0 }, Kind::Full, &[1, 2, 3]);
}

/// Barriers have a register field, which is ignored.
#[test]
fn a_barrier_leaves_the_register_of_its_field() {
    let trapb = isa::encode::memory_function(Op::Trapb, 8, ZERO).expect("encodable");
    check(vec![trapb, registers(Op::Sra, 0, 8, 4)]);
}

/// Six bytes remain.
#[test]
fn bytes_at_the_end_of_the_address_space() {
    let end = [memory(Op::Lda, PLACE, 1, ZERO), literal(Op::Sll, PLACE, 42, PLACE)];
    for op in [Op::Ldbu, Op::Ldwu, Op::Ldl, Op::Ldq] {
        check([&end[..], &[memory(Op::Lda, PLACE, -6, PLACE), memory(op, 0, 0, PLACE)]].concat());
    }
}

/// An unaligned access was counted by compiled code, and again by the interpreter that re-executed it.
#[test]
fn an_unaligned_access_that_faults() {
    let far = [memory(Op::Lda, PLACE, 1, ZERO), literal(Op::Sll, PLACE, 43, PLACE)];
    for op in [Op::Lds, Op::Ldq, Op::Sts, Op::Stq] {
        check([&far[..], &[memory(op, 0, 1, PLACE)]].concat());
    }
}

/// Registers are written to the Cpu before a backward branch; a later instruction may fault, and must be re-executed
/// from there, not from an earlier state.
#[test]
fn a_fault_behind_a_backward_branch() {
    let far = [memory(Op::Lda, PLACE, 1, ZERO), literal(Op::Sll, PLACE, 43, PLACE)];
    let once = literal(Op::Addq, 1, 1, 1);
    let fault = memory(Op::Ldq, 2, 0, PLACE);
    for ops in [[Op::Br, Op::Br], [Op::Br, Op::Bne], [Op::Br, Op::Beq]] {
        // A jump forward over the faulting instruction, and one back to it.
        let there = branch(ops[0], ZERO, 3);
        let back = [literal(Op::Bis, ZERO, 1, 3), once, branch(ops[1], 3, -6)];
        check([&far[..], &[once, there, fault, NOP, NOP], &back].concat());
        check([&far[..], &[once, branch(Op::Br, ZERO, 0), fault]].concat());
    }
}

/// A block ends with an `and`, whose result the next block tests. That block is also entered with another result, and
/// with the host's flags set by another instruction.
#[test]
fn a_test_at_a_blocks_beginning() {
    let words = vec![
        memory(Op::Lda, 3, 0, ZERO),
        branch(Op::Bne, 1, 2),
        literal(Op::And, 2, 1, 3),
        branch(Op::Br, ZERO, 0),
        branch(Op::Beq, 3, 1),
        literal(Op::Addq, 5, 1, 5),
        jump(Op::Ret, ZERO, BACK),
    ];
    // Registers 1 and 2 are zero every other time.
    let record = |pass: usize| std::array::from_fn(|quad| (quad << 8 | 1) as u64 * (pass as u64 & 1));
    let records: [[u64; QUADS]; PASSES] = std::array::from_fn(record);
    let batch =
        Batch { sequences: vec![Sequence { entry: 0, words }], records: vec![records], ieee_control: 0 };
    compare(&batch, Kind::Full, &[1, 2, 3]);
}

/// No call returns: after a million calls an overflow trap ends the sequence, in an instruction that the interpreter
/// executes, for which there must be stack left.
#[test]
fn calls_much_deeper_than_the_hosts_stack() {
    let least = [memory(Op::Lda, DEPTH, 1, ZERO), literal(Op::Sll, DEPTH, 63, DEPTH)];
    let calls = [literal(Op::Subqv, DEPTH, 1, DEPTH), branch(Op::Bsr, LINK, -2)];
    check([&least[..], &[memory(Op::Ldah, DEPTH, 16, DEPTH)], &calls].concat());
}
