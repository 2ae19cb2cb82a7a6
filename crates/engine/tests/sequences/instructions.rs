//! Random single instructions.

use fastrand::Rng;
use isa::encode::{self, SecondOperand};
use isa::{Flags, InstructionFormat, Op, Operands, QualifierSet, Qualifiers, Rounding};

use super::Kind;
use super::assembler::register::{FREE, PLACE, SCRATCH, ZERO};
use super::assembler::{branch, call_pal, literal, memory};
use super::record::MEMORY_BYTES;

/// qemu-alpha 7.2 mixes bits of the fraction into sign and exponent for the first two, and stores a part of the
/// address with the third; `tests/float_vax.rs` tests these.
const WRONG_IN_QEMU: [Op; 3] = [Op::Ldf, Op::Itoff, Op::Stf];

/// A register that a sequence may write: a free one, or the one that is always zero.
pub fn written(random: &mut Rng) -> u8 {
    Some(random.u8(..=FREE)).filter(|register| *register < FREE).unwrap_or(ZERO)
}

/// A register to read: any, free ones mostly.
pub fn read(random: &mut Rng) -> u8 {
    if random.u32(..4) > 0 { random.u8(..FREE) } else { random.u8(..32) }
}

/// A floating-point register.
pub fn float(random: &mut Rng) -> u8 {
    random.u8(..32)
}

fn any(random: &mut Rng, wanted: impl Fn(Op) -> bool) -> Op {
    loop {
        let op = Op::ALL[random.usize(..Op::ALL.len())];
        if wanted(op) {
            return op;
        }
    }
}

fn is_arithmetic(op: Op) -> bool {
    op.row().qualifiers != QualifierSet::Unqualified
}

/// An operation on integer registers that cannot trap.
pub fn integer_operation(random: &mut Rng) -> u32 {
    operation(random, Kind::Plain, |op| op.format() == InstructionFormat::Operate && !op.is(Flags::OVERFLOW))
}

/// An addition, subtraction or multiplication that traps upon overflow.
pub fn trapping_operation(random: &mut Rng) -> u32 {
    operation(random, Kind::Full, |op| op.is(Flags::OVERFLOW))
}

/// An operation on floating-point registers: moves only, if they must not trap.
pub fn float_operation(random: &mut Rng, kind: Kind) -> u32 {
    let plain = |op| !is_arithmetic(op) && op != Op::MtFpcr && op != Op::MfFpcr;
    operation(random, kind, |op| {
        let fits = kind == Kind::Full || plain(op) && !WRONG_IN_QEMU.contains(&op);
        op.format() == InstructionFormat::FloatOperate && fits
    })
}

fn operation(random: &mut Rng, kind: Kind, wanted: impl Fn(Op) -> bool) -> u32 {
    let op = any(random, wanted);
    let (a, b, c) = (read(random), read(random), written(random));
    let [fa, fb, fc] = std::array::from_fn(|_| float(random));
    let second =
        if random.bool() { SecondOperand::Literal(random.u8(..)) } else { SecondOperand::Register(b) };
    let qualifiers = if kind == Kind::Full { qualifiers(random, op) } else { Qualifiers::NONE };
    let word = match op.row().operands {
        Operands::RaRbRc => encode::operate(op, a, second, c),
        Operands::RegistersRaRbRc => encode::operate(op, a, SecondOperand::Register(b), c),
        Operands::RbRc => encode::operate(op, ZERO, second, c),
        Operands::RegisterRbRc => encode::operate(op, ZERO, SecondOperand::Register(b), c),
        Operands::Rc => encode::operate(op, ZERO, SecondOperand::Literal(1), c),
        Operands::FaFbFc => encode::float_operate(op, qualifiers, fa, fb, fc),
        Operands::FbFc => encode::float_operate(op, qualifiers, ZERO, fb, fc),
        Operands::FaRc => encode::float_operate(op, qualifiers, fa, ZERO, c),
        Operands::RaFc => encode::float_operate(op, qualifiers, a, ZERO, fc),
        Operands::Fpcr => encode::float_operate(op, qualifiers, fc, fc, fc),
        other => panic!("{op:?} has unexpected operands {other:?}"),
    };
    word.unwrap_or_else(|error| panic!("{op:?}: {error}"))
}

/// Qualifiers that the operation may carry. Those that let software complete it are the most frequent, for
/// without them most operands trap.
fn qualifiers(random: &mut Rng, op: Op) -> Qualifiers {
    if !is_arithmetic(op) {
        return Qualifiers::NONE;
    }
    let roundings = [Rounding::Normal, Rounding::Chopped, Rounding::MinusInfinity, Rounding::Dynamic];
    loop {
        let qualifiers = Qualifiers {
            rounding: random.choice(roundings).expect("four"),
            underflow: random.bool(),
            software: random.u32(..8) > 0,
            inexact: random.bool(),
        };
        let registers = if op.row().operands == Operands::FbFc { [ZERO, 0, 0] } else { [0; 3] };
        let [fa, fb, fc] = registers;
        if encode::float_operate(op, qualifiers, fa, fb, fc).is_ok() {
            return qualifiers;
        }
    }
}

/// A load or store that is not half of a load-locked, store-conditional pair.
fn load_or_store(random: &mut Rng, kind: Kind) -> Op {
    any(random, |op| {
        let fits = kind == Kind::Full || !WRONG_IN_QEMU.contains(&op);
        op.format() == InstructionFormat::Memory && !op.is(Flags::LOCKED) && fits
    })
}

/// The register that an access names: one to read for a store, and one to write for a load.
fn accessed(random: &mut Rng, op: Op) -> u8 {
    match op {
        _ if op.is_float() => float(random),
        _ if op.is(Flags::STORE) => read(random),
        _ => written(random),
    }
}

/// A displacement from the middle of the scratch memory at which an access stays in it.
fn displacement(random: &mut Rng) -> i16 {
    let half = MEMORY_BYTES as i16 / 2;
    random.i16(-half..half - 7)
}

/// A load or store.
pub fn access(random: &mut Rng, kind: Kind) -> Vec<u32> {
    let (op, offset) = (load_or_store(random, kind), displacement(random));
    vec![memory(op, accessed(random, op), offset, SCRATCH)]
}

/// A load or store through an address computed before.
pub fn indirect_access(random: &mut Rng, kind: Kind) -> Vec<u32> {
    let (op, offset) = (load_or_store(random, kind), displacement(random));
    let (base, further) = (random.u8(..FREE), random.i16(-20000..20000));
    let first = memory(Op::Lda, base, offset - further, SCRATCH);
    vec![first, memory(op, accessed(random, op), further, base)]
}

/// A load-locked and a store-conditional, or only the former.
pub fn exchange(random: &mut Rng) -> Vec<u32> {
    let (load, store) = if random.bool() { (Op::LdlL, Op::StlC) } else { (Op::LdqL, Op::StqC) };
    let at = random.i16(-16..16) * 8;
    let store = memory(store, random.u8(..FREE), at, SCRATCH);
    if random.u32(..4) == 0 {
        return vec![store];
    }
    let load = memory(load, random.u8(..FREE), at, SCRATCH);
    vec![load, integer_operation(random), store]
}

/// A conditional branch over this number of instructions.
pub fn conditional(random: &mut Rng, skipped: usize) -> u32 {
    let op = any(random, |op| op.is(Flags::CONDITIONAL));
    let register = if op.is_float() { float(random) } else { read(random) };
    branch(op, register, skipped as i64)
}

/// Other instructions: barriers, hints, the interrupt flag, the unique value, address computations.
pub fn other(random: &mut Rng) -> u32 {
    let ops = [Op::Trapb, Op::Excb, Op::Mb, Op::Wmb, Op::Rc, Op::Rs];
    let hints = [Op::Fetch, Op::FetchM, Op::Ecb];
    let (rduniq, wruniq) = (0x9e, 0x9f);
    match random.u32(..6) {
        0 => encode::memory_function(random.choice(ops).expect("six"), written(random), ZERO)
            .expect("encodable"),
        1 => encode::memory_function(random.choice(hints).expect("three"), ZERO, SCRATCH).expect("encodable"),
        2 => call_pal(random.choice([rduniq, wruniq]).expect("two")),
        3 => memory(Op::Ldah, written(random), random.i16(..), read(random)),
        _ => memory(Op::Lda, written(random), random.i16(..), read(random)),
    }
}

/// Computes in `PLACE` an address that is not mapped, or not writable: low, negative, or near the end of the address
/// space.
pub fn wild_address(random: &mut Rng) -> Vec<u32> {
    let near = random.i16(-40..40);
    let end = [memory(Op::Lda, PLACE, 1, ZERO), literal(Op::Sll, PLACE, 42, PLACE)];
    match random.u32(..6) {
        0 => vec![memory(Op::Lda, PLACE, random.i16(..), ZERO)],
        1 => vec![memory(Op::Ldah, PLACE, random.i16(..4096), ZERO)],
        2 => vec![end[0], literal(Op::Sll, PLACE, random.u8(42..64), PLACE)],
        3 => end.into_iter().chain([memory(Op::Lda, PLACE, random.i16(..), PLACE)]).collect(),
        // Code, which is not writable.
        4 => vec![branch(Op::Br, PLACE, 0)],
        _ => end.into_iter().chain([memory(Op::Lda, PLACE, near, PLACE)]).collect(),
    }
}

/// A load or store at such an address.
pub fn wild_access(random: &mut Rng) -> Vec<u32> {
    let op = any(random, |op| op.format() == InstructionFormat::Memory && op != Op::Lda && op != Op::Ldah);
    let register = if op.is(Flags::LOCKED) { random.u8(..FREE) } else { accessed(random, op) };
    let further = random.i16(-24..24);
    let mut words = wild_address(random);
    words.push(memory(op, register, further, PLACE));
    words
}

/// A load from the address in any register.
pub fn wild_load(random: &mut Rng) -> u32 {
    let op = any(random, |op| op.is(Flags::LOAD) && !op.is(Flags::LOCKED));
    memory(op, accessed(random, op), random.i16(..), read(random))
}

/// Half of a load-locked, store-conditional pair, at an address that may be misaligned.
pub fn misaligned_exchange(random: &mut Rng) -> u32 {
    let op = any(random, |op| op.is(Flags::LOCKED));
    memory(op, random.u8(..FREE), displacement(random), SCRATCH)
}

/// A system call, or a word that is not an instruction.
pub fn illegal(random: &mut Rng) -> u32 {
    let (bpt, bugchk, gentrap, clrfen) = (0x80, 0x81, 0xaa, 0xae);
    let undefined = 1 << 26;
    match random.u32(..5) {
        0 => undefined,
        1 => call_pal(random.u32(0xb0..0xc0)),
        _ => call_pal(random.choice([bpt, bugchk, gentrap, clrfen]).expect("four")),
    }
}
