//! The workloads, as a table, and their builds: sources, toolchains, and what is kept until something changes.

pub mod build;
pub mod build_options;
pub mod debian;
pub mod feedback;
mod graphics;
mod network;
mod source;
pub mod steps;
pub mod toolchain;
pub mod workload;
