//! The exceptions that operations record, and the conditions under which they trap: a 21264 with Linux's completion
//! handler.

mod float_support;

use alpha::cpu::{Cpu, Exception};
use alpha::float::control::*;
use alpha::float::{load_s, store_s};
use float_support::*;
use isa::{Op, Qualifiers, Rounding};

const NONE: Qualifiers = Qualifiers::NONE;
const U: Qualifiers = Qualifiers { underflow: true, ..NONE };
const SU: Qualifiers = Qualifiers { software: true, ..U };
const SUI: Qualifiers = Qualifiers { inexact: true, ..SU };

const ONE: u64 = 0x3ff0 << 48;
const TWO: u64 = 0x4000 << 48;
const INFINITY: u64 = 0x7ff0 << 48;
const LEAST: u64 = 1 << 52;
const DENORMAL: u64 = 1;
const GREATEST: u64 = INFINITY - 1;
const SNAN: u64 = INFINITY | 5;
const CANONICAL: u64 = 0xfff8 << 48;

const FPE_FLTDIV: i32 = 3;
const FPE_FLTOVF: i32 = 4;
const FPE_FLTUND: i32 = 5;
const FPE_FLTRES: i32 = 6;
const FPE_FLTINV: i32 = 7;

/// Executes an operation in a process with the IEEE control word `control`. Returns the result, the FPCR's status,
/// and the code of the SIGFPE or 0.
fn run(op: Op, qualifiers: Qualifiers, control: u64, operands: [u64; 2]) -> (u64, u8, i32) {
    let mut cpu = Cpu { fpcr: INITIAL_FPCR, ..Cpu::default() };
    set_ieee_control(&mut cpu, control);
    let outcome = execute(word(op, qualifiers), cpu.fpcr, control, operands);
    let code = match outcome.exception {
        None => 0,
        Some(Exception::Arithmetic { summary, registers }) => {
            assert_eq!(registers, 1 << (32 + 3));
            assert_eq!(summary & 1 != 0, qualifiers.software);
            signal_code(summary)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(outcome.fpcr >> 63 != 0, outcome.fpcr >> 52 & 0x3f != 0, "the summary bit");
    (outcome.value, (outcome.fpcr >> 52 & 0x3f) as u8, code)
}

/// The control word that enables a trap.
fn enable(flag: u8) -> u64 {
    u64::from(if flag == DNO { DNO } else { flag << 1 })
}

#[test]
fn without_software_completion() {
    for (op, qualifiers, operands, expected) in [
        (Op::Addt, NONE, [ONE, INFINITY], (UNWRITTEN, INV, FPE_FLTINV)),
        (Op::Addt, NONE, [SNAN, ONE], (UNWRITTEN, INV, FPE_FLTINV)),
        (Op::Addt, NONE, [ONE, DENORMAL], (UNWRITTEN, INV, FPE_FLTINV)),
        (Op::Cmptlt, NONE, [ONE, INFINITY], (TWO, 0, 0)),
        (Op::Cmptlt, NONE, [ONE, DENORMAL], (UNWRITTEN, INV, FPE_FLTINV)),
        (Op::Divt, NONE, [ONE, 0], (INFINITY, DZE, FPE_FLTINV)),
        (Op::Divt, NONE, [0, 0], (CANONICAL, INV, FPE_FLTINV)),
        (Op::Sqrtt, NONE, [0, 0xbff0 << 48], (CANONICAL, INV, FPE_FLTINV)),
        (Op::Addt, NONE, [GREATEST, GREATEST], (INFINITY, OVF | INE, FPE_FLTINV)),
        // A true zero, with or without a trap; an exact denormal is an underflow, too.
        (Op::Divt, NONE, [LEAST | 1 << 63, TWO], (0, UNF | INE, 0)),
        (Op::Divt, U, [LEAST | 1 << 63, TWO], (0, UNF | INE, FPE_FLTINV)),
        (Op::Cvttq, NONE, [0, 0x4340 << 48 | 1 << 60], (0, IOV | INE, 0)),
        (Op::Cvttq, U, [0, 0x4340 << 48 | 1 << 60], (0, IOV | INE, FPE_FLTINV)),
        (Op::Cvtql, NONE, [0, 1 << 31], (1 << 63, IOV | INE, 0)),
        (Op::Cvtql, U, [0, 1 << 31], (1 << 63, IOV | INE, FPE_FLTINV)),
    ] {
        // The control word has no effect.
        for control in [0, 0x7e] {
            assert_eq!(run(op, qualifiers, control, operands), expected, "{op:?} {operands:x?}");
        }
    }
}

#[test]
fn software_completion() {
    let third = 0x3fd5_5555_5555_5555;
    let three = 0x4008 << 48;
    let huge = 0x43f0 << 48;
    for (op, operands, value, status, raised, code) in [
        (Op::Addt, [ONE, INFINITY], INFINITY, 0, 0, 0),
        (Op::Addt, [ONE, SNAN], SNAN | 1 << 51, INV, INV, FPE_FLTINV),
        (Op::Subt, [INFINITY, INFINITY], CANONICAL, INV, INV, FPE_FLTINV),
        (Op::Divt, [ONE, 0], INFINITY, DZE, DZE, FPE_FLTDIV),
        (Op::Addt, [GREATEST, GREATEST], INFINITY, OVF | INE, OVF, FPE_FLTOVF),
        (Op::Mult, [LEAST, LEAST], 0, UNF | INE, UNF, FPE_FLTUND),
        (Op::Divt, [LEAST, TWO], LEAST >> 1, 0, 0, 0),
        (Op::Divt, [ONE, three], third, INE, INE, FPE_FLTRES),
        // A denormal operand sets IOV's status bit, and its trap is that of an underflow.
        (Op::Addt, [0, DENORMAL], DENORMAL, IOV, DNO, FPE_FLTUND),
        (Op::Cvttq, [0, huge], 0, IOV | INE | INV, INV, FPE_FLTINV),
    ] {
        let qualifiers =
            if op == Op::Cvttq { Qualifiers { rounding: Rounding::Chopped, ..SUI } } else { SUI };
        assert_eq!(run(op, qualifiers, 0, operands), (value, status, 0), "{op:?} {operands:x?}");
        for flag in [INV, DZE, OVF, UNF, INE, DNO] {
            let (found, _, signal) = run(op, qualifiers, enable(flag), operands);
            assert_eq!(found, value, "the result is written whether it traps or not");
            let inexact = flag == INE && status & INE != 0;
            let expected = if flag == raised {
                code
            } else if inexact {
                FPE_FLTRES
            } else {
                0
            };
            assert_eq!(signal, expected, "{op:?} {operands:x?} with {flag:#x} enabled");
        }
    }
    // Without /i an inexact result is recorded but never traps.
    assert_eq!(run(Op::Divt, SU, enable(INE), [ONE, three]), (third, INE, 0));
}

#[test]
fn a_trap_that_the_fpcr_disables_is_not_taken() {
    let inexact = execute(word(Op::Divt, SUI), NORMAL | 1 << 62, enable(INE), [ONE, 0x4008 << 48]);
    assert_eq!(inexact.exception, None);
}

#[test]
fn denormals_mapped_to_zero() {
    const MAP_DMZ: u64 = 1 << 12;
    const MAP_UMZ: u64 = 1 << 13;
    assert_eq!(run(Op::Addt, SU, MAP_DMZ, [1 << 63, 1 << 63 | DENORMAL]), (1 << 63, 0, 0));
    assert_eq!(run(Op::Divt, SU, MAP_DMZ, [ONE, DENORMAL]), (INFINITY, DZE, 0));
    assert_eq!(run(Op::Addt, NONE, MAP_DMZ, [ONE, DENORMAL]), (UNWRITTEN, INV, FPE_FLTINV));
    assert_eq!(run(Op::Divt, SU, MAP_UMZ, [1 << 63 | LEAST, TWO]), (0, UNF | INE, 0));
}

#[test]
fn results_for_register_31_are_discarded() {
    let word = word(Op::Divt, NONE) | 31;
    let outcome = execute(word, INITIAL_FPCR, 0, [ONE, 0]);
    assert_eq!(outcome.value, UNWRITTEN);
    assert!(
        matches!(outcome.exception, Some(Exception::Arithmetic { registers, .. }) if registers == 1 << 63)
    );
}

#[test]
fn control_word_and_fpcr() {
    assert_eq!(INITIAL_FPCR, 0x680e_8000_0000_0000);
    let mut cpu = Cpu { fpcr: INITIAL_FPCR, ..Cpu::default() };
    assert_eq!(ieee_control(&cpu), 0);
    // All traps enabled: no disable bit is set. Status bits and the summary are copied; the rounding mode is
    // unchanged.
    cpu.fpcr |= 1 << 58;
    set_ieee_control(&mut cpu, 0x7e | 1 << 17 | 1 << 21);
    assert_eq!(cpu.fpcr, 3 << 58 | 1 << 52 | 1 << 56 | 1 << 63);
    assert_eq!(ieee_control(&cpu), 0x7e | 1 << 17 | 1 << 21);
    // Denormal mapping sets DNZ, and UNFD with UNDZ.
    set_ieee_control(&mut cpu, 0x7e | 3 << 12);
    assert_eq!(cpu.fpcr, 3 << 58 | 1 << 48 | 3 << 60);
    assert_eq!(raise_exceptions(&mut cpu, 1 << 18 | 1 << 21), Some(FPE_FLTDIV));
    assert_eq!(ieee_control(&cpu), 0x7e | 3 << 12 | 1 << 18 | 1 << 21);
    set_ieee_control(&mut cpu, 0);
    assert_eq!(raise_exceptions(&mut cpu, 1 << 17), None);
    assert_eq!(cpu.fpcr, INITIAL_FPCR | 1 << 58 | 1 << 52 | 1 << 63);
}

#[test]
fn every_legal_instruction_executes() {
    let mut random = Random::new(32);
    let mut executed = 0;
    for fields in 0..4 << 11 {
        let word = (0x14 << 26) + (fields >> 11 << 26) + (1 << 21 | 2 << 16 | (fields & 0x7ff) << 5 | 3);
        // Operations of one operand have Fa 31; those on one register name it three times.
        for word in
            [word, word | 31 << 21, word & !0x3ff_001f | 3 << 21 | 3 << 16 | (fields & 0x7ff) << 5 | 3]
        {
            let Some(instruction) = isa::decode(word) else { continue };
            if matches!(instruction.op, Op::Itofs | Op::Itoff | Op::Itoft) {
                continue;
            }
            for _ in 0..20 {
                let control = random.next() & 0x7e_307e;
                execute(word, random.next(), control, [random.t(), random.t()]);
                executed += 1;
            }
        }
    }
    assert!(executed > 20 * 300, "only {executed}");
}

#[test]
fn fpcr_moves() {
    let mt =
        |value| execute(isa::encode::float_operate(Op::MtFpcr, NONE, 1, 1, 1).unwrap(), 0, 0, [value, 0]);
    assert_eq!(mt(!0).fpcr, !0 << 47, "bits 46 to 0 read as zero");
    assert_eq!(mt(1 << 63).fpcr, 0, "the summary bit follows from the status");
    assert_eq!(mt(1 << 56).fpcr, 1 << 56 | 1 << 63);
    let mf = isa::encode::float_operate(Op::MfFpcr, NONE, 3, 3, 3).unwrap();
    assert_eq!(execute(mf, INITIAL_FPCR, 0, [0, 0]).value, INITIAL_FPCR);
}

#[test]
fn singles_in_registers() {
    let mut random = Random::new(31);
    for _ in 0..100_000 {
        let single = random.next() as u32;
        let value = f32::from_bits(single);
        assert_eq!(store_s(load_s(single)), single);
        // Denormals are unchanged; the payload of a NaN would not survive in an f64.
        if value.is_normal() || value == 0.0 || value.is_infinite() {
            assert_eq!(load_s(single), f64::from(value).to_bits());
        }
    }
}
