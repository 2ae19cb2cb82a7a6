//! Traces for other tools: profiles with their calls ([`Callgrind`], [`Firefox`]), and single
//! instructions ([`Instructions`]).

mod callgrind;
pub mod collapsed;
mod firefox;
mod instructions;
mod tables;

pub use callgrind::Callgrind;
pub use firefox::Firefox;
pub use instructions::{ExecutedInstruction, InstructionSink, Instructions};
pub use tables::{blocks, functions};
