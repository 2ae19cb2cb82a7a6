//! Instructions by name and operands, which must be encodable.

use isa::Op;
use isa::encode::{self, SecondOperand};

/// Registers with fixed roles, in sequences and in the program around them.
pub mod register {
    /// System calls: number, and arguments from here on.
    pub const V0: u8 = 0;
    pub const A0: u8 = 16;
    pub const A1: u8 = 17;
    pub const A2: u8 = 18;
    pub const A3: u8 = 19;
    pub const A4: u8 = 20;
    pub const A5: u8 = 21;
    /// A sequence computes anything in the registers below.
    pub const FREE: u8 = 20;
    /// The counter of a function's loop, or its recursion depth.
    pub const DEPTH: u8 = 20;
    /// A temporary address or index.
    pub const PLACE: u8 = 21;
    /// The stack pointer of functions.
    pub const STACK: u8 = 22;
    /// Return addresses: of functions called by functions, and of all functions.
    pub const INNER_LINK: u8 = 23;
    pub const LINK: u8 = 26;
    /// Counters of the outer and the inner loop.
    pub const COUNTERS: [u8; 2] = [24, 25];
    /// The target of a jump.
    pub const TARGET: u8 = 27;
    /// The return address of the sequence.
    pub const BACK: u8 = 28;
    /// Points to the record of the sequence.
    pub const RECORD: u8 = 29;
    /// Points to the middle of its scratch memory.
    pub const SCRATCH: u8 = 30;
    pub const ZERO: u8 = 31;
}

/// `bis zero,zero,zero`
pub const NOP: u32 = 0x47ff_041f;
pub const CALLSYS: u32 = 0x83;

pub fn memory(op: Op, ra: u8, displacement: i16, rb: u8) -> u32 {
    encode::memory(op, ra, rb, displacement).expect("encodable")
}

pub fn operate(op: Op, ra: u8, rb: SecondOperand, rc: u8) -> u32 {
    encode::operate(op, ra, rb, rc).expect("encodable")
}

/// An operation on three registers.
pub fn registers(op: Op, ra: u8, rb: u8, rc: u8) -> u32 {
    operate(op, ra, SecondOperand::Register(rb), rc)
}

/// An operation on a register and a number.
pub fn literal(op: Op, ra: u8, number: u8, rc: u8) -> u32 {
    operate(op, ra, SecondOperand::Literal(number), rc)
}

/// A branch over this number of instructions.
pub fn branch(op: Op, ra: u8, instructions: i64) -> u32 {
    encode::branch(op, ra, 4 * instructions).expect("encodable")
}

/// A branch from one instruction of a program to another.
pub fn branch_to(op: Op, ra: u8, from: usize, to: usize) -> u32 {
    branch(op, ra, to as i64 - from as i64 - 1)
}

pub fn jump(op: Op, ra: u8, rb: u8) -> u32 {
    encode::jump(op, ra, rb, 0).expect("encodable")
}

pub fn call_pal(function: u32) -> u32 {
    encode::call_pal(function).expect("encodable")
}

/// Sets a register, byte by byte.
pub fn constant(register: u8, value: u64) -> Vec<u32> {
    let mut words = vec![memory(Op::Lda, register, 0, register::ZERO)];
    for byte in value.to_be_bytes() {
        words.push(literal(Op::Sll, register, 8, register));
        words.push(literal(Op::Bis, register, byte, register));
    }
    words
}
