//! Random sequences of instructions with random registers and memory, in programs. Used by the comparisons of the
//! interpreter with qemu-alpha, and of compiled code with both.
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

/// The instructions of a sequence, including its functions.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Index of the first instruction to execute; functions precede it.
    pub entry: usize,
    /// The instructions, which are position-independent.
    pub words: Vec<u32>,
}

/// The instructions that a sequence may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Those that qemu-alpha 7.2 executes exactly: neither floating-point arithmetic nor exceptions.
    Plain,
    /// All, except for reading the cycle counter.
    Full,
}
