//! Which registers each block of a region may read before it writes them: what must be in host
//! registers when control comes to it.

use isa::{Flags, Format, Op};

use super::region::Region;
use crate::alpha::block::BlockCache;
use crate::alpha::meaning::{Step, pal};

/// A set of registers: integer ones in the low half, floating-point ones in the high half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers(pub(super) u64);

impl Registers {
    /// An integer register; none for register 31 and the sink.
    pub(super) fn integer(register: u8) -> Registers {
        Registers(if register < 31 { 1 << register } else { 0 })
    }

    /// A floating-point register; none for register 31 and the sink.
    pub(super) fn float(register: u8) -> Registers {
        Registers(Registers::integer(register).0 << 32)
    }

    pub(super) fn and(self, other: Registers) -> Registers {
        Registers(self.0 | other.0)
    }

    pub(super) fn without(self, other: Registers) -> Registers {
        Registers(self.0 & !other.0)
    }

    /// The registers, integer ones first: whether it is a floating-point register, and its number.
    pub(super) fn each(self) -> impl Iterator<Item = (bool, u8)> {
        (0..64u8).filter(move |bit| self.0 >> bit & 1 != 0).map(|bit| (bit >= 32, bit & 31))
    }
}

/// What an instruction may read, and what it certainly writes.
fn effect(step: &Step) -> (Registers, Registers) {
    let (op, none) = (step.op, Registers::default());
    let operands = Registers::integer(step.a).and(Registers::integer(step.b));
    let result = Registers::integer(step.c);
    match op {
        Op::Lda | Op::Ldah | Op::Ldbu | Op::Ldwu | Op::Ldl | Op::Ldq | Op::LdqU => {
            (Registers::integer(step.b), result)
        }
        Op::Ldt => (Registers::integer(step.b), Registers::float(step.c)),
        Op::Br | Op::Bsr => (none, result),
        Op::Jmp | Op::Jsr | Op::Ret | Op::JsrCoroutine => (Registers::integer(step.b), result),
        Op::CallPal if step.immediate == pal::RDUNIQ => (none, Registers::integer(0)),
        _ if op.is_float() => (operands.and(Registers::float(step.a)).and(Registers::float(step.b)), none),
        _ if op.is(Flags::STORE) || op.is(Flags::CONDITIONAL) => (operands, none),
        // Barriers and hints ignore their register's field.
        _ if op.format() == Format::MemoryFunction => (operands, none),
        // A conditional move may keep what was there.
        Op::Cmoveq
        | Op::Cmovne
        | Op::Cmovlt
        | Op::Cmovle
        | Op::Cmovgt
        | Op::Cmovge
        | Op::Cmovlbc
        | Op::Cmovlbs => (operands.and(result), result),
        _ => (operands, result),
    }
}

/// For each block of the region what it, or a block behind it, reads first. What follows a call is
/// not behind it: others may have changed every register.
pub(super) fn live_in(region: &Region, cache: &BlockCache) -> Vec<Registers> {
    let count = region.nodes.len();
    let (mut read, mut written) = (vec![Registers::default(); count], vec![Registers::default(); count]);
    for (index, node) in region.nodes.iter().enumerate() {
        for step in &cache.block(node.id).steps {
            let (reads, writes) = effect(step);
            read[index] = read[index].and(reads.without(written[index]));
            written[index] = written[index].and(writes);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..count).rev() {
            let behind = region.edges[index].iter().filter(|edge| !edge.through_call);
            let out = behind.fold(Registers::default(), |out, edge| out.and(read[edge.to]));
            let live = read[index].and(out.without(written[index]));
            changed |= live != read[index];
            read[index] = live;
        }
    }
    read
}
