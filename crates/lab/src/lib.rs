//! Workloads, their builds and measurements, and studies.

pub mod build;
mod build_options;
pub mod debian;
pub mod feedback;
pub mod plugin_words;
mod source;
pub mod steps;
pub mod study;
pub mod toolchain;
pub mod workload;
