//! Runs programs, attaches to processes and replays traces; counts, records or simulates what they execute.
//!
//! Everything here is below the command line, and knows neither workloads nor studies.

pub mod attached_program;
pub mod comparison;
pub mod console;
pub mod counting;
pub mod crash;
pub mod descriptors;
pub mod edges;
pub mod export;
pub mod forked_run;
pub mod input;
pub mod live;
pub mod machines;
pub mod measure;
pub mod objects;
pub mod process_tree;
pub mod program;
pub mod record;
pub mod sampled_tables;
pub mod sampling;
pub mod scratch;
pub mod sharing;
pub mod simulation;
pub mod startup;
pub mod strides;
pub mod surroundings;
pub mod tables;
mod translated;
pub mod views;
