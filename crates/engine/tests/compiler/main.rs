//! Compiled code against the interpreter, and both against qemu-alpha: the same program leaves the same
//! registers and memory, and the same signals interrupt it at the same places.

mod random;
#[path = "../sequences/mod.rs"]
mod sequences;
