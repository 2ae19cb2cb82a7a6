//! Random sequences of instructions with random registers and memory, put into programs: what the
//! comparisons of the interpreter with qemu-alpha, and of compiled code with both, have in common.
#![allow(dead_code, reason = "each test uses some")]

pub mod assembler;
pub mod batch;
pub mod driver;
pub mod elf;
pub mod explain;
pub mod generator;
pub mod instructions;
pub mod record;
pub mod run;
pub mod values;

/// Instructions of a sequence, the functions that it calls among them.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The first instruction to execute: before it are the functions.
    pub entry: usize,
    /// The instructions; none refers to an address of its own.
    pub words: Vec<u32>,
}

/// What a sequence may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What qemu-alpha 7.2 does exactly as the architecture says: neither arithmetic on floating-point
    /// numbers nor exceptions.
    Plain,
    /// Everything but reading the cycle counter.
    Full,
}
