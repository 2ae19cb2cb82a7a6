//! Executes Alpha instructions: the processor's state, blocks of decoded instructions, what each instruction does, the
//! interpreter, and the observers that watch it.

pub mod block;
pub mod bytes;
pub mod counters;
pub mod cpu;
pub mod debugger;
mod decoded_instruction;
pub mod float;
pub mod flow;
mod fpcr;
pub mod interpreter;
pub mod observer;
pub mod records;
pub mod semantics;
