//! IEEE operations compared with the host's SSE unit, bit by bit and flag by flag, in every rounding mode.
#![cfg(target_arch = "x86_64")]

mod float_support;

use std::arch::asm;

use alpha::float::{load_s, store_s};
use float_support::*;
use isa::Op;

const CASES: u32 = 200_000;
const QUIET: u64 = 1 << 51;

/// Rounding fields: of MXCSR, and of the FPCR.
const MODES: [(u32, u64); 4] = [(0, 2), (1, 1), (2, 3), (3, 0)];

/// Executes one SSE instruction on two operands under `mode`; its result and MXCSR's flags.
macro_rules! sse {
    ($instruction:literal, $mode:expr, $a:expr, $b:expr) => {{
        let (control, saved, mut result, mut flags) = (0x1f80u32 | $mode << 13, 0x1f80u32, $a, 0u32);
        let operand: u64 = $b;
        // SAFETY: computes in two registers and restores MXCSR to its default.
        unsafe {
            asm!(
                "ldmxcsr [{control}]",
                "movq {x}, {result}",
                "movq {y}, {operand}",
                $instruction,
                "movq {result}, {x}",
                "stmxcsr [{flags}]",
                "ldmxcsr [{saved}]",
                control = in(reg) &control,
                saved = in(reg) &saved,
                flags = in(reg) &mut flags,
                operand = in(reg) operand,
                result = inout(reg) result,
                x = out(xmm_reg) _,
                y = out(xmm_reg) _,
            );
        }
        (result, flags & 0x3f)
    }};
}

#[derive(Clone, Copy)]
enum Width {
    S,
    T,
}

/// The FPCR status for MXCSR's flags; a denormal operand sets IOV's bit.
fn status(mxcsr: u32) -> u64 {
    [(0, 52), (1, 57), (2, 53), (3, 54), (4, 55), (5, 56)]
        .iter()
        .filter(|(bit, _)| mxcsr >> bit & 1 != 0)
        .map(|(_, status)| 1 << status)
        .sum()
}

fn is_nan(bits: u64) -> bool {
    bits & !(1 << 63) > 0x7ff << 52
}

/// Compares our operation with the host's on operands in register format, in every mode.
fn check(word: u32, operands: [u64; 2], host: impl Fn(u32) -> (u64, u32)) {
    let op = isa::decode(word).unwrap().op;
    let unary = op.row().operands == isa::Operands::FbFc;
    let integer = matches!(op, Op::Cvtqs | Op::Cvtqt);
    let used = &operands[usize::from(unary)..];
    for (mxcsr, dynamic) in MODES {
        let ours = execute(word, dynamic << 58, 0, operands);
        let (mut value, flags) = host(mxcsr);
        let nan = used.iter().rev().find(|x| !integer && is_nan(**x));
        if is_nan(value) {
            // Alpha has its own rule for the propagation of NaNs.
            value = nan.map_or(0xfff8 << 48, |x| x | QUIET);
            if op == Op::Cvtts {
                value &= !0 << 29;
            }
        }
        let mut expected = status(flags);
        let mut found = ours.fpcr & 0x3f << 52;
        assert_eq!(ours.fpcr >> 63 != 0, found != 0, "the summary bit");
        quick_agrees(word, operands, dynamic, ours);
        // The host checks for denormal operands last, Alpha's completion handler first.
        if flags & 0b101 != 0 || nan.is_some() {
            expected &= !(1 << 57);
            found &= !(1 << 57);
        }
        assert_eq!(
            (ours.value, found, ours.exception),
            (value, expected, None),
            "{op:?} {operands:x?} in mode {dynamic}: {:x} for {value:x}",
            ours.value,
        );
    }
}

/// Once INE is recorded, common cases use another code path with the same result.
fn quick_agrees(word: u32, operands: [u64; 2], dynamic: u64, full: Outcome) {
    let quick = execute(word, dynamic << 58 | 1 << 56, 0, operands);
    let expected = (full.value, full.fpcr & 0x3f << 52 | 1 << 56);
    assert_eq!((quick.value, quick.fpcr & 0x3f << 52), expected, "{word:#x} {operands:x?}");
}

fn operands(random: &mut Random, width: Width) -> [u64; 2] {
    match width {
        Width::S => {
            let a = store_s(random.s());
            let b = if random.below(3) == 0 {
                a.wrapping_add(random.next() as u32 & 3)
            } else {
                store_s(random.s())
            };
            [load_s(a), load_s(b)]
        }
        Width::T => {
            let a = random.t();
            [a, if random.below(3) == 0 { random.like(a) } else { random.t() }]
        }
    }
}

macro_rules! binary {
    ($($name:ident: $op:expr, $width:expr, $instruction:literal;)*) => {$(
        #[test]
        fn $name() {
            let (mut random, word) = (Random::new(1), word($op, SUI));
            for _ in 0..CASES {
                let [a, b] = operands(&mut random, $width);
                check(word, [a, b], |mode| match $width {
                    Width::T => sse!($instruction, mode, a, b),
                    Width::S => {
                        let (value, flags) = sse!($instruction, mode, u64::from(store_s(a)), u64::from(store_s(b)));
                        (load_s(value as u32), flags)
                    }
                });
            }
        }
    )*};
}

binary! {
    addt: Op::Addt, Width::T, "addsd {x}, {y}";
    subt: Op::Subt, Width::T, "subsd {x}, {y}";
    mult: Op::Mult, Width::T, "mulsd {x}, {y}";
    divt: Op::Divt, Width::T, "divsd {x}, {y}";
    adds: Op::Adds, Width::S, "addss {x}, {y}";
    subs: Op::Subs, Width::S, "subss {x}, {y}";
    muls: Op::Muls, Width::S, "mulss {x}, {y}";
    divs: Op::Divs, Width::S, "divss {x}, {y}";
}

#[test]
fn square_roots() {
    let (sqrtt, sqrts) = (word(Op::Sqrtt, SUI), word(Op::Sqrts, SUI));
    let mut random = Random::new(2);
    for _ in 0..CASES {
        let t = random.t() & if random.below(8) == 0 { !0 } else { !(1 << 63) };
        check(sqrtt, [0, t], |mode| sse!("sqrtsd {x}, {y}", mode, 0u64, t));
        let s = load_s(store_s(random.s()) & if random.below(8) == 0 { !0 } else { !(1 << 31) });
        check(sqrts, [0, s], |mode| {
            let (value, flags) = sse!("sqrtss {x}, {y}", mode, 0u64, u64::from(store_s(s)));
            (load_s(value as u32), flags)
        });
    }
}

#[test]
fn conversions_between_formats() {
    let software = isa::Qualifiers { software: true, ..isa::Qualifiers::NONE };
    let (cvtts, cvtst) = (word(Op::Cvtts, SUI), word(Op::Cvtst, software));
    let mut random = Random::new(3);
    for _ in 0..CASES {
        // Many numbers are near the limits of S, where results overflow and underflow.
        let t = if random.below(2) == 0 { random.t() } else { random.number(11, 52, 1023 - 126) };
        check(cvtts, [0, t], |mode| {
            let (value, flags) = sse!("cvtsd2ss {x}, {y}", mode, 0u64, t);
            (load_s(value as u32), flags)
        });
        let s = random.s();
        let ours = execute(cvtst, NORMAL, 0, [0, s]);
        let (value, flags) = sse!("cvtss2sd {x}, {y}", 0, 0u64, u64::from(store_s(s)));
        assert_eq!((ours.value, ours.fpcr & 0x3f << 52), (value, status(flags)), "cvtst {s:x}");
    }
}

#[test]
fn conversions_of_integers() {
    let (cvtqt, cvtqs) = (word(Op::Cvtqt, SUI), word(Op::Cvtqs, SUI));
    let mut random = Random::new(4);
    for _ in 0..CASES {
        let integer = (random.next() as i64 >> random.below(64)) as u64;
        let integer = if random.below(4) == 0 { integer & !0 << random.below(64) } else { integer };
        check(cvtqt, [0, integer], |mode| sse!("cvtsi2sd {x}, {operand}", mode, 0u64, integer));
        check(cvtqs, [0, integer], |mode| {
            let (value, flags) = sse!("cvtsi2ss {x}, {operand}", mode, 0u64, integer);
            (load_s(value as u32), flags)
        });
    }
}

#[test]
fn conversions_to_integers() {
    let cvttq = word(Op::Cvttq, SUI);
    let mut random = Random::new(5);
    for _ in 0..CASES {
        let t = if random.below(4) == 0 { random.t() } else { random.number(11, 52, 1023 + 40) };
        for (mxcsr, dynamic) in MODES {
            let ours = execute(cvttq, dynamic << 58, 0, [0, t]);
            let (rounded, flags) = sse!("roundsd {x}, {y}, 4", mxcsr, 0u64, t);
            let rounded = f64::from_bits(rounded);
            let invalid = flags & 1 != 0 || rounded.is_infinite();
            let overflow = rounded.is_finite() && !(-(2f64.powi(63))..2f64.powi(63)).contains(&rounded);
            let expected = match () {
                _ if !rounded.is_finite() => 0,
                _ if overflow => low_bits(rounded),
                _ => rounded as i64 as u64,
            };
            let denormal = flags >> 1 & 1 != 0 || t << 1 != 0 && t << 1 >> 53 == 0;
            let status = u64::from(invalid || overflow) << 52
                | u64::from(flags >> 5 & 1 != 0 || overflow) << 56
                | u64::from(overflow || denormal) << 57;
            assert_eq!((ours.value, ours.fpcr & 0x3f << 52), (expected, status), "cvttq {t:x} {dynamic}");
            quick_agrees(cvttq, [0, t], dynamic, ours);
        }
    }
}

/// The low 64 bits of a number without fraction.
fn low_bits(number: f64) -> u64 {
    let significand = number.to_bits() & ((1 << 52) - 1) | 1 << 52;
    let shift = (number.to_bits() >> 52 & 0x7ff) - 1075;
    let magnitude = if shift < 64 { significand << shift } else { 0 };
    if number < 0.0 { magnitude.wrapping_neg() } else { magnitude }
}

#[test]
fn comparisons() {
    let su = isa::Qualifiers { rounding: isa::Rounding::Normal, inexact: false, ..SUI };
    let words = [Op::Cmptun, Op::Cmpteq, Op::Cmptlt, Op::Cmptle].map(|op| word(op, su));
    let mut random = Random::new(6);
    for _ in 0..CASES {
        let [a, b] = operands(&mut random, Width::T);
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let signaling = [a, b].iter().any(|bits| is_nan(*bits) && bits & QUIET == 0);
        let unordered = x.is_nan() || y.is_nan();
        let denormal = x.is_subnormal() || y.is_subnormal();
        let outcomes = [(unordered, signaling), (x == y, signaling), (x < y, unordered), (x <= y, unordered)];
        for (word, (holds, invalid)) in words.into_iter().zip(outcomes) {
            let ours = execute(word, NORMAL, 0, [a, b]);
            let expected = (if holds { 2.0f64.to_bits() } else { 0 }, invalid, denormal);
            assert_eq!(
                (ours.value, ours.fpcr >> 52 & 1 != 0, ours.fpcr >> 57 & 1 != 0),
                expected,
                "{word:#x} {a:x} {b:x}"
            );
        }
    }
}
