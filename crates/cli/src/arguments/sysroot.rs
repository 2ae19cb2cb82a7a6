//! Options of `sysroot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `sysroot`.
#[derive(Debug, Args)]
pub struct SysrootOptions {
    /// The architecture, by Debian's name.
    pub architecture: PackageArchitecture,
    /// The packages. What they depend on is fetched, too.
    #[arg(required = true, value_name = "PACKAGE")]
    pub packages: Vec<String>,
    /// The folder, to which packages may be added later; sysroot-riscv64 for riscv64.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Debian's release.
    #[arg(long, value_name = "SUITE", default_value = "stable")]
    pub suite: String,
    /// Debian's archive.
    #[arg(long, value_name = "URL", default_value = "http://deb.debian.org/debian")]
    pub archive: String,
}

/// The guests' architectures that Debian releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PackageArchitecture {
    /// RISC-V.
    Riscv64,
}

impl PackageArchitecture {
    /// Debian's name.
    pub fn name(self) -> &'static str {
        match self {
            PackageArchitecture::Riscv64 => "riscv64",
        }
    }
}
