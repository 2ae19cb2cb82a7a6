//! Out-of-order cores: the model that simulates instructions one after the other, compared with one that considers all of
//! them in every cycle, on random programs and machines; sequences computed by hand; the machines that come with the crate.

#[path = "../pipeline/assembler.rs"]
mod assembler;
mod memory;
mod paths;
mod random;
mod sequences;
mod ticks;
