//! The host's part of the compiler: an assembler for x86-64, and the arena of compiled code.

pub(crate) mod arena;
pub(crate) mod assembler;
#[cfg(test)]
mod assembler_tests;
pub(crate) mod code;
pub(crate) mod vector;
