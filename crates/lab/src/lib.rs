//! Workloads, their builds, runs and measurements, and studies.

pub mod crash;
pub mod edges;
pub mod family;
pub mod isolated;
pub mod live;
pub mod measure;
pub mod objects;
pub mod record;
pub mod sampling;
pub mod startup;
pub mod surroundings;
