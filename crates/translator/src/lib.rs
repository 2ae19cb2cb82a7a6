//! Runs x86-64 programs on x86-64 hosts by translating their code to the same instruction set, and counts exactly what they execute, from
//! the first instruction of the dynamic linker to the end. docs/design/translator.md is the design.
//!
//! The program runs in a process of its own, which this library starts as another instance of the present executable:
//! [`run_if_translator`] must be the first call of its `main`.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod area;
mod code;
mod glue;
mod launch;
mod memory;
mod process;
mod results;
mod shared;

pub use launch::{Error, TranslatedProgram, TranslatedRun, count, run_if_translator};
