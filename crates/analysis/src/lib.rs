//! What is computed from counts: instruction mixes, groups, functions, images, units of work, and
//! the differences between two builds. Every result is a [`table::Table`].

pub mod table;
