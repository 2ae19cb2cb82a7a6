//! IEEE operates, moves and VAX comparisons against qemu-alpha: every operation with every legal
//! combination of qualifiers, rounding modes and enabled traps.
mod float_support;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alpha::cpu::{Cpu, Exception};
use alpha::float::control::set_ieee_control;
use float_support::*;
use isa::{Op, Qualifiers, Rounding};

const CASES: u32 = 2_000;

const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
struct request { unsigned long operation, control, fpcr, a, b, unwritten; } q;
struct answer { unsigned long value, fpcr, trapped; } r;
extern void (*const operations[])(struct request *, struct answer *);
static void trap(int signal, siginfo_t *info, void *context) { r.trapped = 1; }
int main(void)
{
    struct sigaction action = { .sa_sigaction = trap, .sa_flags = SA_SIGINFO };
    sigaction(SIGFPE, &action, 0);
    sigaction(SIGILL, &action, 0);
    while (fread(&q, sizeof q, 1, stdin) == 1) {
        unsigned long control[2] = { q.control };
        syscall(SYS_osf_setsysinfo, 14, control, 0, 0, 0);
        r.trapped = 0;
        operations[q.operation](&q, &r);
        fwrite(&r, sizeof r, 1, stdout);
    }
    return 0;
}
"#;

/// Every rounding and trap qualification of every operation that qemu-alpha implements.
fn words() -> Vec<u32> {
    let mut words = Vec::new();
    for op in Op::ALL {
        let row = op.row();
        let vax = op.is(isa::Flags::VAX) && !matches!(op, Op::Cmpgeq | Op::Cmpglt | Op::Cmpgle);
        if !matches!(row.opcode, 0x14..=0x17) || row.operands == isa::Operands::RaFc || vax {
            continue;
        }
        if matches!(op, Op::MtFpcr | Op::MfFpcr) {
            continue;
        }
        for rounding in [Rounding::Normal, Rounding::Chopped, Rounding::MinusInfinity, Rounding::Dynamic] {
            for traps in 0..8 {
                let [underflow, inexact, software] = [1, 2, 4].map(|bit| traps & bit != 0);
                let fa = if row.operands == isa::Operands::FbFc { 31 } else { 1 };
                let qualifiers = Qualifiers { rounding, underflow, software, inexact };
                words.extend(isa::encode::float_operate(op, qualifiers, fa, 2, 3));
            }
        }
    }
    words
}

/// Functions, one for each instruction, that execute it for a request.
fn assembly(words: &[u32]) -> String {
    let mut text = String::from("\t.arch ev67\n\t.set noat\n\t.text\n");
    for (number, word) in words.iter().enumerate() {
        write!(
            text,
            "operation{number}:\n\
             \tldt $f10,16($16)\n\tldt $f1,24($16)\n\tldt $f2,32($16)\n\tldt $f3,40($16)\n\
             \texcb\n\tmt_fpcr $f10\n\texcb\n\t.long {word:#x}\n\ttrapb\n\texcb\n\
             \tmf_fpcr $f10\n\texcb\n\tstt $f3,0($17)\n\tstt $f10,8($17)\n\tret $31,($26),1\n"
        )
        .unwrap();
    }
    text.push_str("\t.section .data.rel.ro,\"aw\"\n\t.align 3\n\t.globl operations\noperations:\n");
    for number in 0..words.len() {
        writeln!(text, "\t.quad operation{number}").unwrap();
    }
    text
}

/// Builds the program that answers requests.
fn build(words: &[u32]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [source, operations, program] =
        ["float_qemu.c", "float_qemu_operations.s", "float_qemu"].map(|name| directory.join(name));
    std::fs::write(&source, PROGRAM).unwrap();
    std::fs::write(&operations, assembly(words)).unwrap();
    let output = Command::new("alpha-linux-gnu-gcc")
        .args(["-O1", "-mcpu=ev67", "-o"])
        .args([&program, &source, &operations])
        .output()
        .expect("alpha-linux-gnu-gcc must be installed (Debian: gcc-alpha-linux-gnu)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[derive(Debug)]
struct Request {
    word: u32,
    control: u64,
    fpcr: u64,
    operands: [u64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    value: u64,
    fpcr: u64,
    trapped: bool,
}

fn ask_qemu(words: &[u32], requests: &[Request]) -> Vec<Answer> {
    let mut qemu = Command::new("qemu-alpha")
        .args(["-L", "/usr/alpha-linux-gnu"])
        .arg(build(words))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-alpha must be installed (Debian: qemu-user)");
    let number = |word| words.iter().position(|other| *other == word).unwrap() as u64;
    let bytes: Vec<u8> = requests
        .iter()
        .flat_map(|q| [number(q.word), q.control, q.fpcr, q.operands[0], q.operands[1], UNWRITTEN])
        .flat_map(u64::to_le_bytes)
        .collect();
    let mut input = qemu.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = qemu.wait_with_output().unwrap();
    let answered = output.stdout.len() / 24;
    assert!(
        output.status.success(),
        "{}: {answered} answers from {:?}",
        output.status,
        requests.get(answered)
    );
    writer.join().unwrap().expect("qemu-alpha reads every request");
    let quads: Vec<u64> =
        output.stdout.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    quads.chunks(3).map(|x| Answer { value: x[0], fpcr: x[1], trapped: x[2] != 0 }).collect()
}

fn ask_us(request: &Request) -> Answer {
    let outcome = execute(request.word, request.fpcr, request.control, request.operands);
    let trapped = matches!(outcome.exception, Some(Exception::Arithmetic { .. }));
    Answer { value: outcome.value, fpcr: outcome.fpcr, trapped }
}

fn requests(words: &[u32]) -> Vec<Request> {
    let mut random = Random::new(21);
    let mut requests = Vec::new();
    for _ in 0..CASES {
        for word in words {
            let op = isa::decode(*word).unwrap().op;
            let operands = operands(op, &mut random);
            // Mostly no trap is enabled, as in a new process.
            let control = if random.below(4) == 0 { random.next() & 0x303e } else { 0 };
            let mut cpu = Cpu { fpcr: random.below(4) << 58, ..Cpu::default() };
            set_ieee_control(&mut cpu, control);
            requests.push(Request { word: *word, control, fpcr: cpu.fpcr, operands });
        }
    }
    requests
}

fn operands(op: Op, random: &mut Random) -> [u64; 2] {
    match op {
        Op::Adds | Op::Subs | Op::Muls | Op::Divs | Op::Sqrts | Op::Cvtst => [random.s(), random.s()],
        Op::Cvtqs | Op::Cvtqt | Op::Cvtql => {
            let shift = random.below(64);
            [0, (random.next() as i64 >> shift) as u64]
        }
        Op::Cvttq => [0, random.number(11, 52, 1023 + 40)],
        // qemu-alpha takes VAX numbers for IEEE ones; that agrees within the range of both.
        Op::Cmpgeq | Op::Cmpglt | Op::Cmpgle => {
            let a = random.t() & !(3 << 61) | 1 << 61;
            [a, if random.below(3) == 0 { a } else { random.t() & !(3 << 61) | 1 << 61 }]
        }
        _ => {
            let a = random.t();
            [a, if random.below(3) == 0 { random.like(a) } else { random.t() }]
        }
    }
}

const INV: u64 = 1 << 52;
const UNF: u64 = 1 << 55;
const INE: u64 = 1 << 56;
const IOV: u64 = 1 << 57;
const SUM: u64 = 1 << 63;
const QUIET: u64 = 1 << 51;
const MAGNITUDE: u64 = !(1 << 63);

fn is_denormal(bits: u64) -> bool {
    bits & MAGNITUDE != 0 && bits & MAGNITUDE < 1 << 52
}

fn is_nan(bits: u64) -> bool {
    bits & MAGNITUDE > 0x7ff << 52
}

/// Converts our result to qemu-alpha 7.2's, with all its known differences.
fn as_qemu(request: &Request, ours: Answer, theirs: Answer) -> Answer {
    let instruction = isa::decode(request.word).unwrap();
    let (op, q) = (instruction.op, instruction.qualifiers());
    let unary = instruction.op.row().operands == isa::Operands::FbFc;
    let used = &request.operands[usize::from(unary)..];
    let mut answer = ours;

    // qemu-alpha does not set the summary bit.
    answer.fpcr &= !SUM;
    // It has no status for denormal operands, for which Linux uses IOV's bit.
    let integer = matches!(op, Op::Cvtqs | Op::Cvtqt | Op::Cvtql);
    if !integer && used.iter().any(|x| is_denormal(*x)) {
        answer.fpcr &= !IOV;
    }
    // Its completion of an integer overflow does not record an invalid operation.
    if answer.fpcr & IOV != 0 && q.software {
        answer.fpcr &= !INV;
    }
    // With /s it records only exceptions that the qualifiers let trap; a 21264 records all.
    if q.software {
        answer.fpcr &= !(if q.underflow { 0 } else { UNF | IOV } | if q.inexact { 0 } else { INE });
    }
    if matches!(op, Op::Cvtqs | Op::Cvtqt) && !q.inexact {
        answer.fpcr &= !INE;
    }
    // It treats a quiet NaN that is converted to an integer as invalid; table B-2 of the architecture does not.
    if op == Op::Cvttq && q.software && is_nan(request.operands[1]) {
        answer.fpcr |= INV;
        answer.trapped |= request.control & 2 != 0;
    }
    // Without /s it traps on the first operand that is not finite, and does not record a denormal. An infinity may be
    // compared.
    let comparison = matches!(op, Op::Cmptun | Op::Cmpteq | Op::Cmptlt | Op::Cmptle);
    let greatest = if comparison { 0x7ff << 52 } else { (0x7ff << 52) - 1 };
    let first = used.iter().find(|x| is_denormal(**x) || **x & MAGNITUDE > greatest);
    if !q.software && !integer && first.is_some_and(|x| is_denormal(*x)) {
        answer.fpcr &= !INV;
    }
    // Underflow to zero: qemu-alpha keeps the sign, where the architecture requires a true zero (4.7.7.7), and
    // records nothing; with /u and without /s it returns the denormal. It checks before rounding.
    let single = matches!(op, Op::Adds | Op::Subs | Op::Muls | Op::Divs | Op::Sqrts | Op::Cvtts);
    let least = if single { 0x381 << 52 } else { 1 << 52 };
    let underflow = ours.fpcr & UNF != 0 && ours.value == 0 && theirs.value & MAGNITUDE <= least;
    let flushes = if q.software { request.control & 1 << 13 != 0 } else { !q.underflow };
    let rounded_up = ours.fpcr & INE != 0 && ours.value & MAGNITUDE == least;
    if underflow || flushes && rounded_up && theirs.value & MAGNITUDE == 0 {
        let status = UNF | INE;
        answer = Answer { fpcr: answer.fpcr & !status | theirs.fpcr & status, ..theirs };
    }
    // Of two NaNs it propagates the one with the greater significand; its own NaN is positive.
    if is_nan(ours.value) {
        let candidates = [request.operands[0] | QUIET, request.operands[1] | QUIET, 0x7ff8 << 48];
        if candidates.contains(&theirs.value) {
            answer.value = theirs.value;
        }
    }
    answer
}

#[test]
fn agrees_with_qemu() {
    let words = words();
    let requests = requests(&words);
    let answers = ask_qemu(&words, &requests);
    assert_eq!(requests.len(), answers.len());
    let mut differences = 0;
    for (request, theirs) in requests.iter().zip(answers) {
        let ours = as_qemu(request, ask_us(request), theirs);
        if ours != theirs {
            differences += 1;
            if differences <= 20 {
                let text = isa::decode(request.word).unwrap();
                println!("{} {request:x?}\n   ours {ours:x?}\n   qemu {theirs:x?}", text.disassemble(0));
            }
        }
    }
    assert_eq!(differences, 0, "of {} operations", requests.len());
}
