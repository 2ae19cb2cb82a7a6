//! What the study is made of.

use std::path::PathBuf;

use workloads::build::BuildFolders;

/// What to study.
#[derive(Clone, Debug)]
pub struct SmpStudySettings {
    /// Transactions of all clients.
    pub transactions: u32,
    /// Where builds and traces are kept.
    pub build: BuildFolders,
    /// Where Alpha's C library is.
    pub sysroot: PathBuf,
}
