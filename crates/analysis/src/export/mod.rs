//! Traces for other tools: profiles with their calls ([`Callgrind`], [`Firefox`]), and every instruction for
//! those who want them one by one ([`Instructions`]).

mod callgrind;
mod firefox;
mod instructions;
mod tables;

pub use callgrind::Callgrind;
pub use firefox::Firefox;
pub use instructions::{InstructionSink, Instructions, Step};
pub use tables::{blocks, functions};
