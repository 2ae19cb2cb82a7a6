//! What the compiler knows of the host: an assembler for x86-64, and the arena that code lies in.

pub(crate) mod arena;
pub(crate) mod assembler;
#[cfg(test)]
mod assembler_tests;
pub(crate) mod code;
pub(crate) mod vector;
