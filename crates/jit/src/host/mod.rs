//! The host's part of the compiler: an assembler for x86-64, and the arena of compiled code.

pub(crate) mod arena;
pub(crate) mod assembler;
#[cfg(test)]
mod assembler_tests;
pub(crate) mod code;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod oracle;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod random_program;
pub(crate) mod vector;
