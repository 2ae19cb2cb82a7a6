//! Options of `qemu`.

use std::path::PathBuf;

use clap::Args;

use super::ProgramOptions;

/// Options of `qemu`.
#[derive(Debug, Args)]
pub struct QemuOptions {
    /// The trace file.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Where the program's dynamic linker and libraries are searched first; otherwise in the folder of Debian's cross compiler for
    /// the program's instruction set, if there is one.
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    #[command(flatten)]
    pub program: ProgramOptions,
}
