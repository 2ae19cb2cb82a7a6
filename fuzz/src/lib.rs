//! Code shared by the fuzz targets; `targets/` has one file for each.

pub mod container;
pub mod guest;
