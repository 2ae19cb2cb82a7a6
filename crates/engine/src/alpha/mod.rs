//! Everything Alpha in the engine: the processor's state, the meaning of its instructions, the
//! interpreter.

pub mod block;
pub mod bytes;
#[cfg(target_arch = "x86_64")]
pub mod compiler;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_compiler.rs"]
pub mod compiler;
mod counters;
pub mod cpu;
pub mod float;
mod flow;
pub mod interpreter;
pub mod meaning;
pub mod records;
