//! Floating-point instructions that compiled code executes itself: rounding to nearest, mostly, with an inexact
//! result already recorded or nothing recorded. Operands and results are near the limits of normal numbers.

use fastrand::Rng;
use isa::Op;

use crate::compare;
use crate::sequences::assembler::register::*;
use crate::sequences::assembler::{jump, memory};
use crate::sequences::batch::{Batch, PASSES};
use crate::sequences::record::{self, FLOATS, FPCR, MEMORY, MEMORY_BYTES, QUADS};
use crate::sequences::{Kind, Sequence, instructions};

/// FPCR: rounding to nearest, INE and the summary recorded.
const RECORDED: u64 = NOTHING | 1 << 56 | 1 << 63;
/// FPCR: rounding to nearest, nothing recorded.
const NOTHING: u64 = 2 << 58;

/// Interesting exponents of T numbers: the limits of T, of S, and of integers.
const EXPONENTS: [u64; 23] = [
    0, 1, 2, 3, 0x200, 0x380, 0x381, 0x382, 0x3ff, 0x432, 0x433, 0x434, 0x43d, 0x43e, 0x43f, 0x47d, 0x47e,
    0x47f, 0x5ff, 0x600, 0x7fd, 0x7fe, 0x7ff,
];

/// Numbers with these exponents, zeroes, integers.
fn edge(random: &mut Rng) -> u64 {
    let exponent = random.choice(EXPONENTS).expect("many");
    let fraction = match random.u32(..4) {
        0 => 0,
        1 => random.u64(..2),
        2 => random.u64(..) >> 12 & !0 << 29,
        _ => random.u64(..) >> 12,
    };
    match random.u32(..8) {
        0 => random.u64(..2) << 63,
        1 => f64::from(random.i32(-3..=3)).to_bits(),
        2 => random.i64(..) as u64 >> random.u32(..64),
        _ => random.u64(..2) << 63 | exponent << 52 | fraction,
    }
}

fn record(random: &mut Rng) -> [u64; QUADS] {
    let mut record = record::random(random, Kind::Full);
    record[FLOATS..FLOATS + 31].iter_mut().for_each(|float| *float = edge(random));
    record[MEMORY..].iter_mut().for_each(|quad| *quad = edge(random));
    match random.u32(..8) {
        // Other qualifiers.
        0 => {}
        1..4 => record[FPCR] = NOTHING,
        _ => record[FPCR] = RECORDED,
    }
    record
}

/// Some operations; loads of singles are as frequent.
fn sequence(random: &mut Rng) -> Sequence {
    let half = MEMORY_BYTES as i16 / 2;
    let one = |random: &mut Rng| match random.u32(..8) {
        0 => memory(Op::Lds, random.u8(..31), random.i16(-half..half) & !3, SCRATCH),
        _ => instructions::float_operation(random, Kind::Full),
    };
    let mut words: Vec<u32> = (0..random.u32(1..4)).map(|_| one(random)).collect();
    words.push(jump(Op::Ret, ZERO, BACK));
    Sequence { entry: 0, words }
}

fn check(seed: u64, ieee_control: u64) {
    let random = &mut Rng::with_seed(seed);
    let sequences: Vec<Sequence> = (0..4000).map(|_| sequence(random)).collect();
    let records = sequences.iter().map(|_| [[0; QUADS]; PASSES].map(|_| record(random))).collect();
    compare(&Batch { sequences, records, ieee_control }, Kind::Full, &[1]);
}

#[test]
fn without_traps() {
    check(1, 0);
}

/// The trap on inexact results is enabled.
#[test]
fn with_traps() {
    check(2, 1 << 5);
}
