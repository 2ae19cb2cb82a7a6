//! The interpreter against an oracle: qemu-alpha executes the same program, and every instruction,
//! and where asked for every register before it, is the same.
//!
//! Both run with the same arguments, environment, process id, random numbers and date
//! (`guests/preload.c`), in the same address-space layout. What still differs is listed with its
//! reason in [`edge`]; nothing else may.

mod determinism;
mod edge;
mod engine;
mod faults;
mod guest;
mod lockstep;
mod processors;
mod programs;
mod qemu;
mod random;
#[path = "../sequences/mod.rs"]
mod sequences;
mod units;
