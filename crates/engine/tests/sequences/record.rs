//! A record: the state from which a sequence starts, and the state that it leaves.

use std::ops::Range;

use fastrand::Rng;

use super::{Kind, values};

// In quadwords.
/// Registers 0 to 27.
pub const INTEGERS: usize = 0;
pub const INTEGER_COUNT: usize = 28;
/// The address of the sequence.
pub const ENTRY: usize = 28;
/// The thread's unique value.
pub const UNIQUE: usize = 29;
pub const FPCR: usize = 30;
/// Registers 0 to 30.
pub const FLOATS: usize = 31;
/// The signal that ended the sequence: number, code, address, program counter, three arguments of the trap.
pub const SIGNAL: usize = 62;
/// The end of the functions' stack.
pub const STACK_END: usize = 80;
pub const MEMORY: usize = 80;
pub const QUADS: usize = 112;

pub const BYTES: usize = 8 * QUADS;
pub const MEMORY_BYTES: usize = BYTES - 8 * MEMORY;

/// An FPCR that rounds to nearest.
const NORMAL: u64 = 2 << 58;

/// An initial record, without the address of the sequence.
pub fn random(random: &mut Rng, kind: Kind) -> [u64; QUADS] {
    let mut record = [0; QUADS];
    let mut fill = |range: Range<usize>, value: fn(&mut Rng) -> u64| {
        record[range].iter_mut().for_each(|quad| *quad = value(random));
    };
    fill(INTEGERS..INTEGERS + INTEGER_COUNT, values::integer);
    fill(UNIQUE..FPCR, values::integer);
    fill(FLOATS..SIGNAL, values::float);
    fill(MEMORY..QUADS, |random| if random.bool() { values::integer(random) } else { values::float(random) });
    record[FPCR] = match kind {
        Kind::Plain => NORMAL,
        Kind::Full => random.u64(..4) << 58 | if random.u32(..4) == 0 { random.u64(..) } else { 0 },
    };
    record
}

/// The name of a quadword of a record.
pub fn name(index: usize) -> String {
    match index {
        0..INTEGER_COUNT => format!("r{index}"),
        ENTRY => "the sequence's address".into(),
        UNIQUE => "unique".into(),
        FPCR => "fpcr".into(),
        FLOATS..SIGNAL => format!("f{}", index - FLOATS),
        _ => match SIGNAL_NAMES.get(index - SIGNAL) {
            Some(name) => (*name).into(),
            None => format!("{}(r30)", 8 * index as i64 - (8 * MEMORY + MEMORY_BYTES / 2) as i64),
        },
    }
}

const SIGNAL_NAMES: [&str; 7] = [
    "signal",
    "its code",
    "its address",
    "its program counter",
    "its first argument",
    "its second argument",
    "its third argument",
];
