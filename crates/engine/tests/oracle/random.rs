//! Random sequences of instructions on random registers and memory: integers, bytes, motion video,
//! counts of bits, loads and stores aligned and not, moves between the register files, branches and
//! jumps. (Floating-point arithmetic has `tests/float_qemu.rs`.)

use fastrand::Rng;
use isa::encode::{self, Operand};
use isa::{Flags, Format, Op, Operands, Qualifiers};

use crate::elf;
use crate::engine::{Detail, Engine, Run};
use crate::guest::directory;
use crate::qemu::Qemu;

/// How many sequences are tried, unless this environment variable says more.
const SEQUENCES: usize = 4000;
const VARIABLE: &str = "PATHLENGTH_FUZZ_SEQUENCES";
/// Sequences in one program.
const BATCH: usize = 2000;
/// Pieces of a sequence.
const PIECES: usize = 30;

/// r29 points to the record of the sequence, r30 to the middle of its scratch memory, r28 holds
/// return addresses between sequences: the first two keep their values, the third is free within.
const RECORD: u8 = 29;
const SCRATCH: u8 = 30;
const LINK: u8 = 28;
const FREE_REGISTERS: u8 = 29;

/// qemu-alpha 7.2 mixes bits of the fraction into sign and exponent of the first two and stores a part of
/// the address with the third; `tests/float_vax.rs` has these.
const WRONG_IN_QEMU: [Op; 3] = [Op::Ldf, Op::Itoff, Op::Stf];

/// A record: registers 0 to 30 (of which 29 and 30 are not used), floating-point registers 0 to 30,
/// scratch memory. The sequence starts from it and leaves its results in it.
const FLOATS: usize = 31 * 8;
const MEMORY: usize = 62 * 8;
const MEMORY_BYTES: usize = 256;
const RECORD_BYTES: usize = MEMORY + MEMORY_BYTES;

#[test]
fn random_sequences_agree_with_qemu() {
    let wanted = std::env::var(VARIABLE).ok().map_or(SEQUENCES, |text| text.parse().expect("a number"));
    for batch in 0..wanted.div_ceil(BATCH) {
        check(batch as u64);
    }
}

/// Runs a program of [`BATCH`] sequences on both sides and compares what they leave.
fn check(seed: u64) {
    let directory = directory("random");
    let mut random = Rng::with_seed(seed);
    let sequences: Vec<Vec<u32>> = (0..BATCH).map(|_| sequence(&mut random)).collect();
    let records: Vec<u8> = (0..BATCH).flat_map(|_| record(&mut random)).collect();
    let program = directory.join("random");
    elf::write(&program, &text(&sequences), &records);
    let run = Run::new(program, Detail::Nothing);
    let engine = Engine::start(&run);
    let qemu = Qemu::start(&run, engine.ids());
    let ends = (engine.finish().1.end, qemu.finish().1);
    assert_eq!(ends, ("status 0".into(), "status 0".into()), "batch {seed}");
    let [ours, theirs] =
        ["engine.stdout", "qemu.stdout"].map(|name| std::fs::read(run.output(name)).expect("output"));
    assert_eq!((ours.len(), theirs.len()), (records.len(), records.len()), "batch {seed}");
    for (number, words) in sequences.iter().enumerate() {
        let of = |bytes: &[u8]| bytes[number * RECORD_BYTES..][..RECORD_BYTES].to_vec();
        let (before, ours, theirs) = (of(&records), of(&ours), of(&theirs));
        assert!(
            ours == theirs,
            "batch {seed}, sequence {number}:\n{}",
            explain(words, &before, &ours, &theirs)
        );
    }
}

/// The sequence, and what differs: before, ours, qemu's.
fn explain(words: &[u32], before: &[u8], ours: &[u8], theirs: &[u8]) -> String {
    let lines = words.iter().map(|word| match isa::decode(*word) {
        Some(instruction) => format!("    {}\n", instruction.disassemble(0)),
        None => format!("    {word:#010x}\n"),
    });
    let quad =
        |bytes: &[u8], index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().expect("8"));
    let differing = (0..RECORD_BYTES / 8).filter(|&index| quad(ours, index) != quad(theirs, index));
    let name = |index| match index {
        0..31 => format!("r{index}"),
        31..62 => format!("f{}", index - 31),
        _ => format!("{}(sp)", (index * 8) as i64 - (MEMORY + MEMORY_BYTES / 2) as i64),
    };
    let registers = (0..RECORD_BYTES / 8)
        .map(|i| format!("{} {:#x} -> {:#x}\n", name(i), quad(before, i), quad(ours, i)));
    let differing = differing.map(|index| {
        format!("{}: ours {:#x}, qemu {:#x}\n", name(index), quad(ours, index), quad(theirs, index))
    });
    lines.chain(differing).chain(registers).collect()
}

/// The program: for each record, load, sequence, save; then write all records and exit.
fn text(sequences: &[Vec<u32>]) -> Vec<u32> {
    const CALLSYS: u32 = 0x83;
    let (write, exit, output) = (4, 1, 1);
    let [load, save] = [load(), save()];
    let mut words = constant(RECORD, elf::DATA);
    words.push(branch(Op::Br, 31, (load.len() + save.len()) as i64));
    let load_at = words.len() as i64;
    let save_at = load_at + load.len() as i64;
    words.extend(load.into_iter().chain(save));
    for sequence in sequences {
        words.push(branch(Op::Bsr, LINK, load_at - words.len() as i64 - 1));
        words.push(memory(Op::Ldq, LINK, 8 * i16::from(LINK), RECORD));
        words.extend(sequence);
        words.push(memory(Op::Stq, LINK, 8 * i16::from(LINK), RECORD));
        words.push(branch(Op::Bsr, LINK, save_at - words.len() as i64 - 1));
    }
    let bytes = (sequences.len() * RECORD_BYTES) as u64;
    words.extend(
        [constant(0, write), constant(16, output), constant(17, elf::DATA), constant(18, bytes)].concat(),
    );
    words.push(CALLSYS);
    words.extend([constant(0, exit), constant(16, 0)].concat());
    words.push(CALLSYS);
    words
}

/// Registers from the record; r30 to the middle of the scratch memory.
fn load() -> Vec<u32> {
    let integers = (0..LINK).map(|r| memory(Op::Ldq, r, 8 * i16::from(r), RECORD));
    let floats = (0..31).map(|r| memory(Op::Ldt, r, FLOATS as i16 + 8 * i16::from(r), RECORD));
    let scratch = memory(Op::Lda, SCRATCH, (MEMORY + MEMORY_BYTES / 2) as i16, RECORD);
    integers.chain(floats).chain([scratch, back()]).collect()
}

/// Registers to the record; r29 to the next one.
fn save() -> Vec<u32> {
    let integers = (0..LINK).map(|r| memory(Op::Stq, r, 8 * i16::from(r), RECORD));
    let floats = (0..31).map(|r| memory(Op::Stt, r, FLOATS as i16 + 8 * i16::from(r), RECORD));
    let next = memory(Op::Lda, RECORD, RECORD_BYTES as i16, RECORD);
    integers.chain(floats).chain([next, back()]).collect()
}

fn back() -> u32 {
    encode::jump(Op::Ret, 31, LINK, 1).expect("encodable")
}

/// Sets a register, byte by byte.
fn constant(register: u8, value: u64) -> Vec<u32> {
    let mut words = vec![memory(Op::Lda, register, 0, 31)];
    for byte in value.to_be_bytes() {
        words.push(operate(Op::Sll, register, Operand::Literal(8), register));
        words.push(operate(Op::Bis, register, Operand::Literal(byte), register));
    }
    words
}

fn memory(op: Op, ra: u8, displacement: i16, rb: u8) -> u32 {
    encode::memory(op, ra, rb, displacement).expect("encodable")
}

fn operate(op: Op, ra: u8, rb: Operand, rc: u8) -> u32 {
    encode::operate(op, ra, rb, rc).expect("encodable")
}

/// A branch over so many instructions.
fn branch(op: Op, ra: u8, instructions: i64) -> u32 {
    encode::branch(op, ra, 4 * instructions).expect("encodable")
}

/// A record to begin with.
fn record(random: &mut Rng) -> Vec<u8> {
    (0..RECORD_BYTES / 8).flat_map(|_| value(random).to_le_bytes()).collect()
}

/// Mostly values at the edges of types.
fn value(random: &mut Rng) -> u64 {
    let edge = |random: &mut Rng| (1u64 << random.u32(..64)).wrapping_add_signed(random.i64(-2..=2));
    match random.u32(..8) {
        0 => random.u64(..4),
        1 => edge(random),
        2 => edge(random).wrapping_neg(),
        3 => random.u64(..) >> random.u32(..64),
        4 => random.u32(..) as i32 as u64,
        5 => u64::from_le_bytes(std::array::from_fn(|_| {
            random.choice([0, 1, 0x7f, 0x80, 0xff]).expect("five")
        })),
        _ => random.u64(..),
    }
}

/// A register that a sequence may use: 0 to 28, or the one that is zero.
fn register(random: &mut Rng) -> u8 {
    Some(random.u8(..=FREE_REGISTERS)).filter(|register| *register < FREE_REGISTERS).unwrap_or(31)
}

fn sequence(random: &mut Rng) -> Vec<u32> {
    let straight = |random: &mut Rng| match random.u32(..8) {
        0..4 => one(random, Format::Operate),
        4 => one(random, Format::FloatOperate),
        5 => access(random),
        6 => indirect_access(random),
        _ => locked(random),
    };
    let mut words = Vec::new();
    for _ in 0..PIECES {
        let piece: Vec<u32> = straight(random);
        match random.u32(..12) {
            0 => words.extend(jump(random, piece.len())),
            1 => words.extend(one_branch(random, piece.len())),
            2 => words.extend(other(random)),
            _ => {}
        }
        words.extend(piece);
    }
    words
}

/// An instruction on registers that cannot trap and needs no other preparation.
fn one(random: &mut Rng, format: Format) -> Vec<u32> {
    loop {
        let op = Op::ALL[random.usize(..Op::ALL.len())];
        let arithmetic = op.row().qualifiers != isa::QualifierSet::Unqualified && op != Op::Cvtql;
        let special = matches!(op, Op::MtFpcr | Op::MfFpcr) || WRONG_IN_QEMU.contains(&op);
        if op.format() != format || op.is(Flags::OVERFLOW) || arithmetic || special {
            continue;
        }
        let [a, b, c] = std::array::from_fn(|_| register(random));
        let literal = Operand::Literal(random.u8(..));
        let second = if random.bool() { literal } else { Operand::Register(b) };
        let word = match op.row().operands {
            Operands::RaRbRc => encode::operate(op, a, second, c),
            Operands::RegistersRaRbRc => encode::operate(op, a, Operand::Register(b), c),
            Operands::RbRc => encode::operate(op, 31, second, c),
            Operands::RegisterRbRc => encode::operate(op, 31, Operand::Register(b), c),
            Operands::Rc => encode::operate(op, 31, Operand::Literal(1), c),
            Operands::FaFbFc => encode::float_operate(op, Qualifiers::NONE, a, b, c),
            Operands::FbFc => encode::float_operate(op, Qualifiers::NONE, 31, b, c),
            Operands::FaRc | Operands::RaFc => encode::float_operate(op, Qualifiers::NONE, a, 31, c),
            other => panic!("{op:?} has unexpected operands {other:?}"),
        };
        return vec![word.unwrap_or_else(|error| panic!("{op:?}: {error}"))];
    }
}

/// A load or store, and a displacement at which it stays in the scratch memory.
fn load_or_store(random: &mut Rng) -> (Op, i16) {
    loop {
        let op = Op::ALL[random.usize(..Op::ALL.len())];
        if op.format() == Format::Memory && !op.is(Flags::LOCKED) && !WRONG_IN_QEMU.contains(&op) {
            let half = MEMORY_BYTES as i16 / 2;
            return (op, random.i16(-half..half - 7));
        }
    }
}

fn access(random: &mut Rng) -> Vec<u32> {
    let (op, displacement) = load_or_store(random);
    vec![memory(op, register(random), displacement, SCRATCH)]
}

/// Through an address computed before.
fn indirect_access(random: &mut Rng) -> Vec<u32> {
    let (op, place) = load_or_store(random);
    let (base, displacement) = (random.u8(..FREE_REGISTERS), random.i16(-20000..20000));
    let first = memory(Op::Lda, base, place - displacement, SCRATCH);
    vec![first, memory(op, register(random), displacement, base)]
}

/// A load-locked and a store-conditional, or that alone.
fn locked(random: &mut Rng) -> Vec<u32> {
    let (load, store) = if random.bool() { (Op::LdlL, Op::StlC) } else { (Op::LdqL, Op::StqC) };
    let at = random.i16(-16..16) * 8;
    let store = memory(store, random.u8(..FREE_REGISTERS), at, SCRATCH);
    let mut words = vec![store];
    if random.u32(..4) > 0 {
        let load = memory(load, random.u8(..FREE_REGISTERS), at, SCRATCH);
        words.splice(0..0, [load].into_iter().chain(one(random, Format::Operate)));
    }
    words
}

/// A branch, taken or not, over so many instructions.
fn one_branch(random: &mut Rng, skipped: usize) -> Vec<u32> {
    loop {
        let op = Op::ALL[random.usize(..Op::ALL.len())];
        if op.format() == Format::Branch {
            return vec![branch(op, register(random), skipped as i64)];
        }
    }
}

/// A jump through a register over so many instructions; the low bits of the target do not count.
fn jump(random: &mut Rng, skipped: usize) -> Vec<u32> {
    let op = random.choice([Op::Jmp, Op::Jsr, Op::Ret, Op::JsrCoroutine]).expect("four");
    let target = random.u8(..FREE_REGISTERS);
    let distance = 4 * (2 + skipped as i16) + random.i16(0..4);
    vec![
        branch(Op::Br, target, 0),
        memory(Op::Lda, target, distance, target),
        encode::jump(op, register(random), target, random.u16(..1 << 14)).expect("encodable"),
    ]
}

/// What else there is: barriers, hints, the interrupt flag, the unique value, address computations.
fn other(random: &mut Rng) -> Vec<u32> {
    let ops = [Op::Trapb, Op::Excb, Op::Mb, Op::Wmb, Op::Rc, Op::Rs];
    let hints = [Op::Fetch, Op::FetchM, Op::Ecb];
    let (rduniq, wruniq) = (0x9e, 0x9f);
    vec![match random.u32(..6) {
        0 => encode::memory_function(random.choice(ops).expect("six"), register(random), 31)
            .expect("encodable"),
        1 => encode::memory_function(random.choice(hints).expect("three"), 31, SCRATCH).expect("encodable"),
        2 => encode::call_pal(random.choice([rduniq, wruniq]).expect("two")).expect("encodable"),
        3 => memory(Op::Ldah, register(random), random.i16(..), register(random)),
        _ => memory(Op::Lda, register(random), random.i16(..), register(random)),
    }]
}
