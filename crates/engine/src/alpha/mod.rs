//! Everything Alpha in the engine: the processor's state, the meaning of its instructions, the
//! interpreter.

pub mod block;
pub mod bytes;
pub mod compiler;
pub mod cpu;
pub mod float;
pub mod interpreter;
pub mod meaning;
