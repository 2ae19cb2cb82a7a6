//! Options of the commands of `spike` that use its database.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use spike_environment::{ApplicationPhase, Environment};

use super::{EngineOptions, OutputOptions, ProgramOptions};

/// Where the database is.
#[derive(Clone, Debug, Args)]
pub struct DatabaseOptions {
    /// The folder of the database; otherwise pathlength/spike in $XDG_DATA_HOME or ~/.local/share.
    #[arg(long, value_name = "DIR")]
    database: Option<PathBuf>,
}

impl DatabaseOptions {
    /// The folder.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        let in_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
        let data = || std::env::var_os("XDG_DATA_HOME").filter(|data| Path::new(data).is_absolute());
        let standard = || Some(data().map(PathBuf::from).or_else(in_home)?.join("pathlength/spike"));
        let folder = self.database.clone().or_else(standard);
        Ok(std::path::absolute(folder.context("there is no home folder; name one with --database DIR")?)?)
    }

    /// The database.
    pub fn open(&self) -> anyhow::Result<Environment> {
        Ok(Environment::open(&self.folder()?)?)
    }
}

/// Versions of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// The images themselves.
    Original,
    /// Those that count.
    Instrumented,
    /// Those that were optimized.
    Optimized,
}

impl From<Version> for ApplicationPhase {
    fn from(version: Version) -> ApplicationPhase {
        match version {
            Version::Original => ApplicationPhase::Original,
            Version::Instrumented => ApplicationPhase::Instrumented,
            Version::Optimized => ApplicationPhase::Optimized,
        }
    }
}

/// Options of `spike register`.
#[derive(Debug, Args)]
pub struct RegisterOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    #[command(flatten)]
    pub engine: EngineOptions,
    /// The application's name; otherwise that of the file.
    #[arg(long)]
    pub name: Option<String>,
    /// The program.
    pub program: PathBuf,
}

/// Options of `spike collect`.
#[derive(Debug, Args)]
pub struct CollectOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    #[command(flatten)]
    pub engine: EngineOptions,
    /// The registered program, or its application's name, and its arguments: all that follows is the program's own. Without it,
    /// only what earlier runs have counted is collected.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

/// Options of `spike run`.
#[derive(Debug, Args)]
pub struct SpikeRunOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    #[command(flatten)]
    pub engine: EngineOptions,
    /// Execute this version of every registered application, not what was chosen for each: original, instrumented, optimized.
    #[arg(long, hide_possible_values = true)]
    pub version: Option<Version>,
    /// The program's own name (argv[0]), instead of PROGRAM.
    #[arg(long, allow_hyphen_values = true)]
    pub name: Option<OsString>,
    /// Another command collects at its end.
    #[arg(long, hide = true)]
    pub nested: bool,
    #[command(flatten)]
    pub program: ProgramOptions,
}

/// Options of `spike use`.
#[derive(Debug, Args)]
pub struct UseOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The application: its name, or its program.
    pub application: String,
    /// What is executed from now on: original, instrumented or optimized.
    #[arg(hide_possible_values = true)]
    pub version: Version,
}

/// Options of `spike export`.
#[derive(Debug, Args)]
pub struct SpikeExportOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The application: its name, or its program.
    pub application: String,
    /// The folder for the optimized images, which get the names of the originals.
    #[arg(short, long, value_name = "DIR", required_unless_present = "profile")]
    pub output: Option<PathBuf>,
    /// Write the profile to this file, for pathlength spike optimize --profile.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
}

/// Options of `spike list`.
#[derive(Debug, Args)]
pub struct ListOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    /// An application, of which the images are listed: its name, or its program. Otherwise all applications.
    pub application: Option<String>,
}

/// Options of `spike remove`.
#[derive(Debug, Args)]
pub struct RemoveOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The application: its name, or its program.
    pub application: String,
}

/// Options of `spike manager`.
#[derive(Debug, Args)]
pub struct ManagerOptions {
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// The port; otherwise any that is free.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// The processor on which programs run: ev4, ev5, ev56, pca56, ev6 or ev67.
    #[arg(long, default_value_t = isa::CpuModel::Ev67)]
    pub cpu: isa::CpuModel,
    /// Where the programs' libraries are searched first.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
}
