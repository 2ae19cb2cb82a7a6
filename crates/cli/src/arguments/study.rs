//! Options of `build` and `study`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OutputOptions;

/// Options of `build`.
#[derive(Debug, Args)]
pub struct BuildOptions {
    /// The workload.
    #[arg(value_parser = lab::workload::names())]
    pub workload: String,
    /// The folder of builds.
    #[arg(long, value_name = "DIR", default_value = "build")]
    pub folder: PathBuf,
    /// A folder with sources, which are downloaded otherwise.
    #[arg(long, value_name = "DIR")]
    pub sources: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// The studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyName {
    /// The effect of the byte and word instructions.
    Byteword,
    /// How a sparse matrix-vector product accesses memory.
    Strides,
    /// What each transaction of TPC-C costs, and in which part of the database.
    Tpcc,
}

/// Options of `study`.
#[derive(Debug, Args)]
pub struct StudyOptions {
    /// The study.
    pub name: StudyName,
    /// The database.
    #[arg(long, default_value = "sqlite", value_parser = ["sqlite"])]
    pub database: String,
    /// One mode only: cached or scaled.
    #[arg(long, value_parser = ["cached", "scaled"])]
    pub mode: Option<String>,
    /// Transactions of the study tpcc, of all kinds, in each build.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub transactions: u32,
    /// The folder of the report and its tables, instead of study/NAME.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The sysroot with the C library for Alpha.
    #[arg(long, value_name = "DIR", default_value = "/usr/alpha-linux-gnu")]
    pub sysroot: PathBuf,
}
