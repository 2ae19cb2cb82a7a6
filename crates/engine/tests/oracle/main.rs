//! The interpreter compared with qemu-alpha on the same programs: every instruction must be the same, and in some
//! tests every register before it.
//!
//! Both run with the same arguments, environment, process ID, random numbers and date (`guests/preload.c`), in the
//! same address-space layout. Remaining differences are listed with their reasons in [`edge`]; no others are
//! accepted.

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
