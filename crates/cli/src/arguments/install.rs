//! Options of the commands for the installation: `completions`, `man` and `doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::OutputOptions;

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell.
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// The command, instead of pathlength itself.
    #[arg(conflicts_with = "output")]
    pub command: Option<String>,
    /// Write the pages of all commands into this directory.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The format of pages.
    #[arg(long, value_name = "FORMAT", default_value = "roff")]
    pub format: ManualFormat,
}

/// Formats of manual pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManualFormat {
    /// For man.
    Roff,
    /// For the documentation's site.
    Markdown,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Where the C library for Alpha is.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
    #[command(flatten)]
    pub output: OutputOptions,
}
