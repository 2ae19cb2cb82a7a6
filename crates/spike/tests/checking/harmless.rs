//! Changes of an instruction that cannot change what a program does, decided without the checker: by following the code
//! from the instruction on until the register that it changes is read, or written again.

use std::collections::HashSet;

use isa::{Flags, InstructionFormat, InstructionSet, Op, Register};

/// Whether what an instruction does is the same for what comes after it. `code` has the original words.
pub fn is_harmless(code: &[u32], index: usize, new: u32) -> bool {
    let (Some(old), Some(other)) = (isa::decode(code[index]), isa::decode(new)) else { return false };
    let is_jump = |one: isa::Instruction| one.op.format() == InstructionFormat::MemoryJump;
    // The hint of a jump.
    if is_jump(old) && is_jump(other) && (old.word ^ new) & 0xffff_c000 == 0 {
        return true;
    }
    // Another register for the return address of a jump that is no call.
    let is_plain = |one: isa::Instruction| matches!(one.op, Op::Br | Op::Ret | Op::Jmp);
    if is_plain(old) && (old.word ^ new) & !(31 << 21) == 0 {
        let is_branch = old.op == Op::Br;
        let target = if is_branch { index as i64 + 1 + i64::from(old.displacement() / 4) } else { 0 };
        return [old.ra(), other.ra()].iter().filter(|&&link| link != 31).all(|&link| match is_branch {
            true => usize::try_from(target).is_ok_and(|at| is_dead(code, at, Register::Integer(link))),
            false => is_free(Register::Integer(link), old.op == Op::Ret),
        });
    }
    // A branch to instructions that do nothing, before those of the old target.
    if old.op == other.op && old.op.format() == InstructionFormat::Branch && old.ra() == other.ra() {
        let target = |one: isa::Instruction| index as i64 + 1 + i64::from(one.displacement() / 4);
        return destination(code, target(old)) == destination(code, target(other));
    }
    let has_effect = |one: isa::Instruction| {
        one.op.is(Flags::STORE) || one.op.is(Flags::BRANCH) || one.op.format() == InstructionFormat::Pal
    };
    if has_effect(old) || has_effect(other) {
        return false;
    }
    let written = |word: u32| isa::Alpha.summary(word).into_iter().flat_map(|one| one.written).flatten();
    let is_dead = |register: Register| is_dead(code, index + 1, register);
    written(code[index]).chain(written(new)).all(is_dead) || is_equal(old, other)
}

/// Where control comes to from an instruction that does nothing, or a branch.
fn destination(code: &[u32], mut at: i64) -> i64 {
    for _ in 0..100 {
        let Some(one) = usize::try_from(at).ok().and_then(|at| isa::decode(*code.get(at)?)) else {
            return at;
        };
        match one.op {
            Op::Br if one.ra() == 31 => at += 1 + i64::from(one.displacement() / 4),
            _ if isa::nop_kind(one.word).is_some() => at += 1,
            _ => return at,
        }
    }
    at
}

/// Whether two operations compute the same.
fn is_equal(old: isa::Instruction, other: isa::Instruction) -> bool {
    let is_same = |a: isa::Instruction, b: isa::Instruction| {
        let copies = |one: isa::Instruction| match (one.op, one.ra(), one.rb(), one.literal()) {
            (Op::Bis | Op::Addq | Op::Xor, 31, rb, None) => Some(rb),
            (Op::Bis | Op::Addq | Op::Subq | Op::Xor | Op::Bic, ra, 31, None) => Some(ra),
            (Op::Bis | Op::And, ra, rb, None) if ra == rb => Some(ra),
            _ => None,
        };
        a.rc() == b.rc() && copies(a).is_some() && copies(a) == copies(b)
    };
    is_same(old, other)
}

fn is_dead(code: &[u32], from: usize, register: Register) -> bool {
    let mut open = vec![from];
    let mut seen = HashSet::new();
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        let Some(one) = code.get(at).and_then(|&word| isa::decode(word)) else { continue };
        let Some(summary) = isa::Alpha.summary(one.word) else { return false };
        if isa::nop_kind(one.word).is_some() {
            open.push(at + 1);
            continue;
        }
        if summary.read.contains(&Some(register)) {
            return false;
        }
        let is_call = one.op.is(Flags::CALL);
        let is_return = one.op.is(Flags::RETURN);
        if is_call
            || is_return
            || one.op.format() == InstructionFormat::MemoryJump
            || one.op.format() == InstructionFormat::Pal
        {
            // A procedure called through a pointer computes the global pointer at its entry, and the caller again after the return.
            let is_recomputed = register == Register::Integer(29) && one.op != Op::Bsr;
            if !is_recomputed && !is_free(register, is_return) {
                return false;
            }
            continue;
        }
        if summary.written.contains(&Some(register)) {
            continue;
        }
        let is_branch = one.op.format() == InstructionFormat::Branch;
        if is_branch {
            open.extend(usize::try_from(at as i64 + 1 + i64::from(one.displacement() / 4)));
        }
        if !is_branch || one.op.is(Flags::CONDITIONAL) {
            open.push(at + 1);
        }
    }
    true
}

/// Whether nobody reads a register after a call or a return, by the calling standard.
fn is_free(register: Register, is_return: bool) -> bool {
    match register {
        // Nobody relies on what a returning procedure leaves in temporaries and arguments; one that is called reads arguments.
        Register::Integer(2..=8 | 22..=25 | 28) => true,
        Register::Integer(1 | 16..=21 | 27) => is_return,
        _ => false,
    }
}
