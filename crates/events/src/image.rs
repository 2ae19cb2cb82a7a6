//! Images that are mapped into running programs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An image as it was mapped into the running program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedImage {
    /// The file on the host.
    #[serde(with = "crate::any_path")]
    pub path: PathBuf,
    /// Lowest run-time address.
    pub start: u64,
    /// First run-time address after it.
    pub end: u64,
    /// Run-time address minus link-time address (wrapping).
    pub bias: u64,
}

/// An image as it was mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedImage {
    /// The file on the host.
    #[serde(with = "crate::any_path")]
    pub path: PathBuf,
    /// Lowest run-time address.
    pub start: u64,
    /// First run-time address after it.
    pub end: u64,
    /// Run-time address minus link-time address (wrapping).
    pub bias: u64,
    /// The linker's build ID; empty if there is none.
    pub build_id: Vec<u8>,
    /// The functions that a trace names, for consumers of its records: run-time address, bytes, symbol. Empty for a program that runs,
    /// whose images are files.
    pub functions: Vec<(u64, u64, String)>,
}
