//! A small program, and records of its execution for tests.

use events::record::{Event, Mark};
use events::{Block, BlockId};
use isa::encode::{branch, call_pal, jump, memory};
use isa::{Op, encode};
use pathlength_trace::check::{Rule, TraceReport, check};
use pathlength_trace::{Header, ProcessDictionary, StreamWriter, Trace};

use crate::made::{begin, path};

pub const MAIN: u64 = 0x1_2000_0000;
pub const CALLED: u64 = 0x1_2000_4000;
pub const OUTSIDE: u64 = 0x1_2000_8000;
/// Initial values of the stack pointer and of the first argument.
pub const STACK: u64 = 0x1_1fff_0000;
pub const DATA: u64 = 0x1_4000_0000;

const V0: u8 = 0;
const T0: u8 = 1;
const A0: u8 = 16;
const RA: u8 = 26;
const PV: u8 = 27;
const SP: u8 = 30;
const ZERO: u8 = 31;

/// The blocks, by the names that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Allocates a stack frame, saves `ra` (an access), and calls [`Name::Called`].
    Enter,
    /// Loads from the first argument (an access), and returns.
    Called,
    /// Loads `ra` (an access), and makes a system call.
    System,
    /// Loads from the stack (an access), and continues with [`Name::System`] or [`Name::Leave`].
    Loop,
    /// Returns.
    Leave,
    /// At another address: loads from the first argument (an access), and continues with [`Name::Behind`].
    Outside,
    /// Loads `ra` from the stack (an access), and returns.
    Behind,
    /// Calls the function in a register.
    Indirect,
    /// The block after that: loads from the first argument (an access).
    After,
    /// Calls the function in a register, at another address.
    Again,
}

const NAMES: [Name; 10] = [
    Name::Enter,
    Name::Called,
    Name::System,
    Name::Loop,
    Name::Leave,
    Name::Outside,
    Name::Behind,
    Name::Indirect,
    Name::After,
    Name::Again,
];

/// A block's address and words.
pub fn block(name: Name) -> Block {
    let op = |op, ra, rb, displacement| memory(op, ra, rb, displacement).unwrap();
    let ret = jump(Op::Ret, ZERO, RA, 1).unwrap();
    let (address, words) = match name {
        Name::Enter => {
            let call = branch(Op::Bsr, RA, (CALLED - MAIN) as i64 - 12).unwrap();
            (MAIN, vec![op(Op::Lda, SP, SP, -16), op(Op::Stq, RA, SP, 0), call])
        }
        Name::Called => (CALLED, vec![op(Op::Ldq, T0, A0, 8), ret]),
        Name::System => (MAIN + 12, vec![op(Op::Ldq, RA, SP, 0), call_pal(0x83).unwrap()]),
        Name::Loop => (MAIN + 20, vec![op(Op::Ldq, V0, SP, 0), branch(Op::Bne, V0, -16).unwrap()]),
        Name::Leave => (MAIN + 28, vec![op(Op::Lda, SP, SP, 16), ret]),
        Name::Outside => (OUTSIDE, vec![op(Op::Ldq, T0, A0, 0)]),
        Name::Behind => (OUTSIDE + 4, vec![op(Op::Ldq, RA, SP, 8), ret]),
        Name::Indirect => (OUTSIDE + 16, vec![jump(Op::Jsr, RA, PV, 0).unwrap()]),
        Name::After => (OUTSIDE + 20, vec![op(Op::Ldq, T0, A0, 0)]),
        Name::Again => (OUTSIDE + 24, vec![jump(Op::Jsr, RA, PV, 0).unwrap()]),
    };
    Block::new(&isa::Alpha, address, words)
}

#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// A block with at most one access, at this address.
    Run(Name, u64),
    Mark(Mark),
}

use Item::Run;

/// A consistent execution: a call from elsewhere, twice through the loop.
pub fn right() -> Vec<Item> {
    let low = STACK - 16;
    vec![
        Item::Mark(Mark::Gap),
        Run(Name::Enter, low),
        Run(Name::Called, DATA + 8),
        Run(Name::System, low),
        Item::Mark(Mark::SystemCall(4)),
        Run(Name::Loop, low),
        Run(Name::System, low),
        Item::Mark(Mark::SystemCall(4)),
        Run(Name::Loop, low),
        Run(Name::Leave, 0),
        Run(Name::Outside, DATA),
        Run(Name::Behind, STACK + 8),
    ]
}

/// The records' words.
pub fn words(items: &[Item]) -> Vec<u64> {
    let mut words = Vec::new();
    for &item in items {
        match item {
            Item::Mark(mark) => words.push(Event::Mark(mark).word()),
            Run(name, address) => {
                words.push(Event::Block(name as BlockId).word());
                let is_access = !matches!(name, Name::Leave | Name::Indirect | Name::Again);
                words.extend(is_access.then_some(address));
            }
        }
    }
    words
}

/// Defines the blocks.
pub fn define(process: &ProcessDictionary) {
    for name in NAMES {
        assert_eq!(process.block(block(name), || None).unwrap(), name as BlockId);
    }
}

/// Writes a trace of these records to a file of this name.
pub fn trace(name: &str, items: &[Item]) -> Trace {
    let path = path(name);
    let process = ProcessDictionary::new(&begin(&path, &Header::default()), 0, 1);
    define(&process);
    let mut stream = StreamWriter::new(&process);
    stream.write(&words(items)).unwrap();
    stream.finish().unwrap();
    Trace::open(&path).unwrap()
}

/// Checks these records.
pub fn checked(name: &str, items: &[Item]) -> TraceReport {
    check(&trace(name, items))
}

/// The rules that a report lists as violated.
pub fn rules(report: &TraceReport) -> Vec<Rule> {
    report.listed.iter().map(|violation| violation.rule).collect()
}

#[test]
fn blocks_are_what_their_names_say() {
    let listing = |name| -> Vec<String> {
        let block = block(name);
        let addresses = (block.address..).step_by(4).zip(&block.words);
        addresses.map(|(pc, &word)| isa::decode(word).unwrap().disassemble(pc).to_string()).collect()
    };
    assert_eq!(listing(Name::Enter), ["lda sp,-16(sp)", "stq ra,0(sp)", "bsr ra,0x120004000"]);
    assert_eq!(listing(Name::Loop), ["ldq v0,0(sp)", "bne v0,0x12000000c"]);
    assert_eq!(encode::memory(Op::Lda, SP, SP, 16).unwrap(), block(Name::Leave).words[0]);
}
