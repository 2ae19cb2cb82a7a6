//! Analyses of counts and traces: instruction mixes, groups, functions, images, units of work, and
//! the differences between two builds. Every result is a [`table::Table`].
//!
//! The 1997 paper's own figures go through the same code as today's:
//!
//! ```
//! use pathlength_analysis::{mix, paper};
//! let [original, byte_word] = paper::cached();
//! let table = mix::difference("cached", "A cached transaction", ["original", "byte/word"], &original, &byte_word);
//! assert_eq!(table.rows.len(), 83 + 1);
//! ```

pub mod alignment;
pub mod annotate;
pub mod call_tree;
pub mod classes;
pub mod code_counts;
pub mod components;
pub mod distribution;
pub mod environment;
pub mod export;
pub mod kernel_entries;
mod memory_layout;
pub mod mix;
pub mod models;
pub mod multiprocessor;
pub mod names;
pub mod pairing;
pub mod paper;
pub mod profile;
pub mod replay;
pub mod run_counts;
pub mod samples;
pub mod sharing;
pub mod similar;
mod source;
pub mod statics;
pub mod strides;
pub mod unit_blocks;
mod unit_class;
pub mod units;
