//! Alpha's ABI: numbers, flags and structures.

pub(crate) mod errno;
pub(crate) mod flags;
pub(crate) mod layout;
pub(crate) mod unimplemented;
