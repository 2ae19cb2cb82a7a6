//! What several fuzz targets share: see `targets/`, one file a target.

pub mod container;
pub mod guest;
