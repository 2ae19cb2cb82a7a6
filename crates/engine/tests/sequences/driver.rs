//! The program around the sequences: for each record it sets the registers, calls the sequence, and saves the
//! registers after its return or its signal.

use isa::Op;

use super::Sequence;
use super::assembler::register::*;
use super::assembler::*;
use super::{elf, record};

/// The data: a block for the program itself, the signals' stack, the records.
const OWN: u64 = elf::DATA;
const SIGNAL_STACK: u64 = OWN + 0x100;
const SIGNAL_STACK_BYTES: u64 = 0x3f00;
pub const RECORDS: u64 = SIGNAL_STACK + SIGNAL_STACK_BYTES;

// Quadwords in the program's own block.
const ARGUMENTS: usize = 0;
const ACTION: usize = 1;
const STACK_RECORD: usize = 4;
const IEEE_CONTROL: usize = 7;

/// Signals by which a sequence may end: SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV.
const SIGNALS: [u64; 5] = [4, 5, 8, 10, 11];
/// SA_SIGINFO, SA_NODEFER, SA_ONSTACK.
const FLAGS: u64 = 0x40 | 8 | 1;

// Quadwords of a sigcontext (arch/alpha/include/uapi/asm/sigcontext.h) and where it is in a ucontext.
const CONTEXT: i16 = 48;
const CONTEXT_PC: usize = 2;
const CONTEXT_INTEGERS: usize = 4;
const CONTEXT_FLOATS: usize = 37;
const CONTEXT_FPCR: usize = 69;
const CONTEXT_TRAP: usize = 75;

/// A program and the offsets of its parts.
pub struct Text {
    pub words: Vec<u32>,
    /// The first instruction of each sequence.
    pub entries: Vec<u64>,
}

/// The instructions of a program with this number of records. If it has an argument, it writes them to standard
/// output at the end.
pub fn text(sequences: &[Sequence], records: usize) -> Text {
    let (mut words, [handler, load, save, start]) = parts();
    // Execution starts at the first instruction.
    words[0] = branch_to(Op::Br, ZERO, 0, start);
    set_up(&mut words, handler);
    words.extend(constant(RECORD, RECORDS));
    let next = words.len();
    words.extend(constant(1, RECORDS + (records * record::BYTES) as u64));
    words.push(registers(Op::Cmpult, RECORD, 1, 1));
    let leave = words.len();
    words.push(0);
    words.push(branch_to(Op::Bsr, BACK, words.len(), load));
    words.push(memory(Op::Ldq, TARGET, offset(record::ENTRY), RECORD));
    words.push(jump(Op::Jsr, BACK, TARGET));
    words.push(branch_to(Op::Bsr, BACK, words.len(), save));
    let advance = words.len();
    words.push(memory(Op::Lda, RECORD, record::BYTES as i16, RECORD));
    words.push(branch_to(Op::Br, ZERO, words.len(), next));
    words[leave] = branch_to(Op::Beq, 1, leave, words.len());
    finish(&mut words, records);
    // The handler continues with the next record.
    words[load - 1] = branch_to(Op::Br, ZERO, load - 1, advance);
    let mut entries = Vec::new();
    for sequence in sequences {
        entries.push(elf::TEXT + 4 * (words.len() + sequence.entry) as u64);
        words.extend(&sequence.words);
    }
    Text { words, entries }
}

/// The program's data in front of the records.
pub fn data(ieee_control: u64) -> Vec<u8> {
    let mut own = [0; 8];
    own[ACTION + 1] = FLAGS;
    own[STACK_RECORD] = SIGNAL_STACK;
    own[STACK_RECORD + 2] = SIGNAL_STACK_BYTES;
    own[IEEE_CONTROL] = ieee_control;
    let mut bytes: Vec<u8> = own.iter().flat_map(|quad: &u64| quad.to_le_bytes()).collect();
    bytes.resize((RECORDS - OWN) as usize, 0);
    bytes
}

fn offset(quad: usize) -> i16 {
    8 * quad as i16
}

/// Assembles the start jump, handler, load and save. Returns their offsets.
fn parts() -> (Vec<u32>, [usize; 4]) {
    let mut words = vec![0];
    let offsets = [handler(), load(), save()].map(|part| {
        let offset = words.len();
        words.extend(part);
        offset
    });
    let end = words.len();
    (words, [offsets[0], offsets[1], offsets[2], end])
}

/// Copies the sigcontext to the record; the last word returns from the handler.
fn handler() -> Vec<u32> {
    let (context, value) = (1, 2);
    let mut words = vec![memory(Op::Lda, context, CONTEXT, A2)];
    let mut copy = |load: Op, from: u8, index: usize, to: usize| {
        words.push(memory(load, value, 8 * index as i16, from));
        words.push(memory(Op::Stq, value, offset(to), RECORD));
    };
    (0..record::INTEGER_COUNT).for_each(|r| copy(Op::Ldq, context, CONTEXT_INTEGERS + r, r));
    (0..31).for_each(|r| copy(Op::Ldq, context, CONTEXT_FLOATS + r, record::FLOATS + r));
    copy(Op::Ldq, context, CONTEXT_FPCR, record::FPCR);
    // Of siginfo: signal, code, address.
    (0..3).for_each(|part| {
        copy(if part < 2 { Op::Ldl } else { Op::Ldq }, A1, part, record::SIGNAL + part);
    });
    copy(Op::Ldq, context, CONTEXT_PC, record::SIGNAL + 3);
    (0..3).for_each(|part| copy(Op::Ldq, context, CONTEXT_TRAP + part, record::SIGNAL + 4 + part));
    words.push(0);
    words
}

/// Loads the registers from the record, so that the previous sequence has no effect.
fn load() -> Vec<u32> {
    let integer = |r: u8| memory(Op::Ldq, r, offset(record::INTEGERS + usize::from(r)), RECORD);
    let float = |r: u8| memory(Op::Ldt, r, offset(record::FLOATS + usize::from(r)), RECORD);
    let mut words = vec![
        // Ends an open load-locked pair, and clears the interrupt flag.
        memory(Op::StqC, A0, offset(record::SIGNAL), RECORD),
        isa::encode::memory_function(Op::Rc, A0, ZERO).expect("encodable"),
        memory(Op::Ldq, A0, offset(record::UNIQUE), RECORD),
        call_pal(WRUNIQ),
        memory(Op::Ldt, 0, offset(record::FPCR), RECORD),
        fpcr(Op::MtFpcr),
    ];
    words.extend((0..record::INTEGER_COUNT as u8).map(integer));
    words.extend((0..31).map(float));
    words.push(memory(Op::Lda, STACK, offset(record::STACK_END), RECORD));
    let middle = offset(record::MEMORY) + record::MEMORY_BYTES as i16 / 2;
    words.extend([memory(Op::Lda, SCRATCH, middle, RECORD), jump(Op::Ret, ZERO, BACK)]);
    words
}

/// Saves the registers to the record.
fn save() -> Vec<u32> {
    let integer = |r: u8| memory(Op::Stq, r, offset(record::INTEGERS + usize::from(r)), RECORD);
    let float = |r: u8| memory(Op::Stt, r, offset(record::FLOATS + usize::from(r)), RECORD);
    let mut words: Vec<u32> = (0..record::INTEGER_COUNT as u8).map(integer).collect();
    words.extend((0..31).map(float));
    words.extend([fpcr(Op::MfFpcr), memory(Op::Stt, 0, offset(record::FPCR), RECORD)]);
    words.extend([call_pal(RDUNIQ), memory(Op::Stq, 0, offset(record::UNIQUE), RECORD)]);
    words.push(jump(Op::Ret, ZERO, BACK));
    words
}

const RDUNIQ: u32 = 0x9e;
const WRUNIQ: u32 = 0x9f;

fn fpcr(op: Op) -> u32 {
    isa::encode::float_operate(op, isa::Qualifiers::NONE, 0, 0, 0).expect("encodable")
}

/// Signal handlers on a stack of their own, IEEE traps, a page at the end of the address space.
fn set_up(words: &mut Vec<u32>, handler: usize) {
    let own = |quad: usize| OWN + 8 * quad as u64;
    let base = 1;
    words.push(memory(Op::Ldq, 2, 0, SCRATCH));
    words.extend(constant(base, OWN));
    words.push(memory(Op::Stq, 2, offset(ARGUMENTS), base));
    words.extend(constant(2, elf::TEXT + 4 * handler as u64));
    words.push(memory(Op::Stq, 2, offset(ACTION), base));
    for signal in SIGNALS {
        const RT_SIGACTION: u64 = 352;
        call(words, RT_SIGACTION, &[signal, own(ACTION), 0, 8, 0]);
    }
    const SIGALTSTACK: u64 = 235;
    call(words, SIGALTSTACK, &[own(STACK_RECORD), 0]);
    const OSF_SETSYSINFO: u64 = 257;
    const IEEE_FP_CONTROL: u64 = 14;
    call(words, OSF_SETSYSINFO, &[IEEE_FP_CONTROL, own(IEEE_CONTROL), 0, 0, 0]);
    const MMAP: u64 = 71;
    // PROT_READ; MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED.
    let (page, protection, flags) = (8192, 1, 0x112);
    call(words, MMAP, &[(1 << 42) - page, page, protection, flags, u64::MAX, 0]);
}

fn call(words: &mut Vec<u32>, number: u64, arguments: &[u64]) {
    words.extend((A0..).zip(arguments).flat_map(|(register, value)| constant(register, *value)));
    words.extend(constant(V0, number));
    words.push(CALLSYS);
}

fn finish(words: &mut Vec<u32>, records: usize) {
    const WRITE: u64 = 4;
    const EXIT: u64 = 1;
    const STANDARD_OUTPUT: u64 = 1;
    words.extend(constant(1, OWN));
    words.push(memory(Op::Ldq, 1, offset(ARGUMENTS), 1));
    words.push(literal(Op::Subq, 1, 1, 1));
    let skip = words.len();
    words.push(0);
    call(words, WRITE, &[STANDARD_OUTPUT, RECORDS, (records * record::BYTES) as u64]);
    words[skip] = branch_to(Op::Beq, 1, skip, words.len());
    call(words, EXIT, &[0]);
}
