//! Spike: optimizes linked images of Alpha programs by profiles of their execution.
//!
//! An image is taken apart into instructions, blocks and procedures ([`program`]), improved, and put together again.

pub mod assemble;
pub mod branch_log;
pub mod check;
pub mod counts;
pub mod dataflow;
pub mod elf;
mod error;
pub mod exceptions;
pub mod hot_cold;
pub mod instrument;
pub mod layout;
pub mod lift;
pub mod linkage;
pub mod optimize;
pub mod output;
pub mod profile;
pub mod program;
mod section_bytes;
pub mod statistics;
mod stubs;
pub mod tables;
pub mod unwind;

pub use error::{Error, Problem};
