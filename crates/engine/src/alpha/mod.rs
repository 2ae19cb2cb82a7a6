//! Everything Alpha in the engine: the processor's state, the meaning of its instructions, the
//! interpreter.

pub mod cpu;
