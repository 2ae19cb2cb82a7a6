//! Workloads, their builds, runs and measurements, and studies.

pub mod build;
mod build_options;
pub mod crash;
pub mod debian;
pub mod edges;
pub mod family;
pub mod feedback;
pub mod interrupt;
pub mod isolated;
pub mod live;
pub mod measure;
pub mod objects;
pub mod plugin_words;
pub mod record;
pub mod sampling;
pub mod scratch;
mod source;
pub mod startup;
pub mod steps;
pub mod study;
pub mod surroundings;
pub mod toolchain;
pub mod workload;
