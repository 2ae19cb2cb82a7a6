//! Runs unmodified Alpha/Linux programs.

mod access;
pub mod alpha;
pub mod memory;
