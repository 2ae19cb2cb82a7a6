//! VAX operates against exact rational arithmetic.

mod float_support;

use alpha::cpu::Exception;
use alpha::float::{load_f, load_g, store_f, store_g};
use float_support::*;
use isa::{Op, Qualifiers, Rounding};
use num_rational::BigRational;
use testing::sample;

/// Operands that each operation is tried with.
fn cases() -> u32 {
    sample(500, 2_000)
}

const DZE: u64 = 1 << 2;
const OVF: u64 = 1 << 3;
const UNF: u64 = 1 << 4;
const INV: u64 = 1 << 1;

/// Precision, exponents of the smallest and largest numbers, the register's exponent bias, and the position of its
/// exponent field.
#[derive(Clone, Copy)]
struct Vax(u32, i32, i32, i32, u32);

const F: Vax = Vax(24, -128, 126, 1025, 52);
const G: Vax = Vax(53, -1024, 1022, 1025, 52);
const D: Vax = Vax(56, -128, 126, 129, 55);

fn two_to(exponent: i32) -> BigRational {
    BigRational::from_integer(2.into()).pow(exponent)
}

fn half() -> BigRational {
    two_to(-1)
}

fn integer(value: u64) -> BigRational {
    BigRational::from_integer(value.into())
}

fn magnitude(x: &BigRational) -> BigRational {
    if *x < integer(0) { -x } else { x.clone() }
}

impl Vax {
    fn value(self, register: u64) -> BigRational {
        let Vax(_, _, _, bias, at) = self;
        if register == 0 {
            return integer(0);
        }
        let significand = integer(register & ((1 << at) - 1) | 1 << at);
        let exponent = (register << 1 >> (at + 1)) as i32 - bias;
        let value = significand * two_to(exponent - at as i32);
        if register >> 63 != 0 { -value } else { value }
    }

    /// The register with `x` rounded, or the trap.
    fn round(self, x: &BigRational, chopped: bool) -> Result<u64, u64> {
        let Vax(precision, least, greatest, bias, at) = self;
        let size = magnitude(x);
        if size == integer(0) {
            return Ok(0);
        }
        let mut exponent = size.numer().bits() as i32 - size.denom().bits() as i32;
        if size < two_to(exponent) {
            exponent -= 1;
        }
        let scaled = size * two_to(precision as i32 - 1 - exponent);
        let rounded = if chopped { scaled } else { scaled + half() }.floor().to_integer();
        let mut significand = u64::try_from(rounded).unwrap();
        if significand >> precision != 0 {
            (significand, exponent) = (significand >> 1, exponent + 1);
        }
        let sign = u64::from(*x < integer(0)) << 63;
        match exponent {
            e if e > greatest => Err(OVF),
            e if e < least => Err(UNF),
            e => {
                let fraction = significand << (at + 1 - precision) & ((1 << at) - 1);
                Ok(sign | ((e + bias) as u64) << at | fraction)
            }
        }
    }

    /// A random number: with a likely exponent, or at the ends of the range; zero sometimes.
    fn random(self, random: &mut Random) -> u64 {
        let Vax(precision, least, greatest, bias, at) = self;
        let exponent = match random.below(8) {
            0 => return 0,
            1 => least + random.below(64) as i32,
            2 => greatest - random.below(64) as i32,
            _ => random.below(60) as i32 - 30,
        };
        let fraction = random.fraction(precision - 1);
        random.below(2) << 63 | ((exponent + bias) as u64) << at | fraction << (at + 1 - precision)
    }
}

fn qualifiers(chopped: bool, underflow: bool) -> Qualifiers {
    let rounding = if chopped { Rounding::Chopped } else { Rounding::Normal };
    Qualifiers { rounding, underflow, ..Qualifiers::NONE }
}

/// The traps that executing `op` raised, or its result.
fn run(op: Op, qualifiers: Qualifiers, operands: [u64; 2]) -> Result<u64, u64> {
    let outcome = execute(word(op, qualifiers), NORMAL, 0, operands);
    match outcome.exception {
        None => Ok(outcome.value),
        Some(Exception::Arithmetic { summary, registers: 0x8_0000_0000 }) => {
            assert_eq!(outcome.fpcr >> 52 & 0x3f, summary >> 1, "the status of what trapped");
            Err(summary)
        }
        other => panic!("{other:?}"),
    }
}

/// Checks an operation with and without /c and /u.
fn check(op: Op, to: Vax, operands: [u64; 2], exact: &BigRational) {
    for chopped in [false, true] {
        let expected = to.round(exact, chopped);
        assert_eq!(run(op, qualifiers(chopped, true), operands), expected, "{op:?} {operands:x?} {chopped}");
        // Without /u an underflow gives a true zero and no trap.
        let expected = if expected == Err(UNF) { Ok(0) } else { expected };
        assert_eq!(run(op, qualifiers(chopped, false), operands), expected, "{op:?} {operands:x?} {chopped}");
    }
}

#[test]
fn arithmetic() {
    let mut random = Random::new(11);
    for (format, add, subtract, multiply, divide) in
        [(F, Op::Addf, Op::Subf, Op::Mulf, Op::Divf), (G, Op::Addg, Op::Subg, Op::Mulg, Op::Divg)]
    {
        for _ in 0..cases() {
            let (a, b) = (format.random(&mut random), format.random(&mut random));
            let (x, y) = (format.value(a), format.value(b));
            check(add, format, [a, b], &(&x + &y));
            check(subtract, format, [a, b], &(&x - &y));
            check(multiply, format, [a, b], &(&x * &y));
            if b == 0 {
                assert_eq!(run(divide, Qualifiers::NONE, [a, b]), Err(DZE));
            } else {
                check(divide, format, [a, b], &(&x / &y));
            }
        }
    }
}

#[test]
fn square_roots() {
    let mut random = Random::new(12);
    for (format, op) in [(F, Op::Sqrtf), (G, Op::Sqrtg)] {
        for _ in 0..cases() {
            let b = format.random(&mut random);
            if b >> 63 != 0 {
                assert_eq!(run(op, Qualifiers::NONE, [0, b]), Err(INV));
                continue;
            }
            for chopped in [false, true] {
                let root = run(op, qualifiers(chopped, false), [0, b]).unwrap();
                if b == 0 {
                    assert_eq!(root, 0);
                    continue;
                }
                let ulp = two_to((root << 1 >> 53) as i32 - 1025 + 1 - format.0 as i32);
                let below = if chopped { integer(0) } else { half() } * &ulp;
                let low = format.value(root) - &below;
                let high = &low + &ulp;
                let square = format.value(b);
                assert!(&low * &low <= square && square < &high * &high, "{op:?} {b:x} gave {root:x}");
                assert_eq!(root & ((1 << (53 - format.0)) - 1), 0, "bits beyond the precision");
            }
        }
    }
}

#[test]
fn conversions() {
    let mut random = Random::new(13);
    for _ in 0..cases() {
        // The limits of F and D within G's range.
        let g = if random.below(2) == 0 {
            G.random(&mut random)
        } else {
            random.next() & !(0x7ff << 52) | (1025 - 160 + random.below(320)) << 52
        };
        check(Op::Cvtgf, F, [0, g], &G.value(g));
        check(Op::Cvtgd, D, [0, g], &G.value(g));
        let d = D.random(&mut random);
        check(Op::Cvtdg, G, [0, d], &D.value(d));

        let q = random.next() as i64 >> random.below(64);
        let exact = BigRational::from_integer(q.into());
        for chopped in [false, true] {
            let qualifiers = qualifiers(chopped, false);
            assert_eq!(run(Op::Cvtqf, qualifiers, [0, q as u64]), F.round(&exact, chopped));
            assert_eq!(run(Op::Cvtqg, qualifiers, [0, q as u64]), G.round(&exact, chopped));
        }
    }
}

#[test]
fn conversions_to_integers() {
    let mut random = Random::new(14);
    for _ in 0..cases() {
        let g = random.next() & !(0x7ff << 52) | (1025 - 4 + random.below(72)) << 52;
        for chopped in [false, true] {
            let exact = G.value(g);
            let size = magnitude(&exact) + if chopped { integer(0) } else { half() };
            let rounded = size.floor().to_integer();
            let signed = if g >> 63 != 0 { -rounded } else { rounded };
            let low = signed.iter_u64_digits().next().unwrap_or(0);
            let low = if g >> 63 != 0 { low.wrapping_neg() } else { low };
            let fits = i64::try_from(signed).is_ok();
            assert_eq!(run(Op::Cvtgq, qualifiers(chopped, false), [0, g]), Ok(low), "{g:x}");
            let expected = if fits { Ok(low) } else { Err(1 << 6) };
            assert_eq!(run(Op::Cvtgq, qualifiers(chopped, true), [0, g]), expected, "{g:x}");
        }
    }
}

#[test]
fn comparisons() {
    let mut random = Random::new(15);
    for _ in 0..cases() {
        let a = G.random(&mut random);
        let b = if random.below(4) == 0 { a } else { G.random(&mut random) };
        let (x, y) = (G.value(a), G.value(b));
        for (op, holds) in [(Op::Cmpgeq, x == y), (Op::Cmpglt, x < y), (Op::Cmpgle, x <= y)] {
            let expected = if holds { G.round(&half(), false) } else { Ok(0) };
            assert_eq!(run(op, Qualifiers::NONE, [a, b]), expected, "{op:?} {a:x} {b:x}");
        }
    }
}

#[test]
fn dirty_zeros_and_reserved_operands() {
    let one = G.round(&integer(1), false).unwrap();
    let software = Qualifiers { software: true, ..Qualifiers::NONE };
    let (dirty, reserved) = (1 << 51, 1 << 63 | 1 << 51);
    assert_eq!(run(Op::Addg, Qualifiers::NONE, [one, dirty]), Err(INV));
    assert_eq!(run(Op::Addg, software, [one, dirty]), Ok(one));
    assert_eq!(run(Op::Addg, Qualifiers::NONE, [reserved, one]), Err(INV));
    assert_eq!(run(Op::Addg, software, [reserved, one]), Err(INV | 1));
}

#[test]
fn memory_formats() {
    // 1.0 is 0x4080 in the first two bytes of F, 0x4010 in those of G.
    assert_eq!(load_f(0x4080), F.round(&integer(1), false).unwrap());
    assert_eq!(load_g(0x4010), G.round(&integer(1), false).unwrap());
    let mut random = Random::new(16);
    for _ in 0..cases() {
        let single = random.next() as u32;
        assert_eq!(store_f(load_f(single)), single);
        let double = random.next();
        assert_eq!(store_g(load_g(double)), double);
    }
}
