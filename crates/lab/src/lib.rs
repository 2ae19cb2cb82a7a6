//! Workloads, builds, modes and studies: who is built how, run where, compared with what.

pub mod build;
mod source;
pub mod toolchain;
pub mod workload;
