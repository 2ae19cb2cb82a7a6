//! Runs x86-64 programs on x86-64 hosts by translating their code to the same instruction set, and counts exactly what they execute, from
//! the first instruction of the dynamic linker to the end. docs/design/translator.md is the design.
//!
//! The program runs in a process of its own, which this library starts as another instance of the present executable:
//! [`run_if_translator`] must be the first call of its `main`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod area;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod glue;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod launch;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod other_host;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod process;
mod program;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod results;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod shared;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use launch::{count, is_translatable, processor_level, run_if_translator};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub use other_host::{count, is_translatable, processor_level, run_if_translator};
pub use program::{Error, TranslatedProgram, TranslatedRun};
