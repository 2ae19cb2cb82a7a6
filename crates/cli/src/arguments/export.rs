//! Options of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use session::export::ExportFormat;

use super::{InputFile, SelectionOptions};

/// Other tools' formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The Firefox Profiler's: calls and functions over time, units of work.
    Firefox,
    /// Callgrind's, for KCachegrind: instructions, loads and stores of each line, function and call.
    Callgrind,
    /// pprof's: instructions, loads and stores of each line in each chain of calls.
    Pprof,
    /// Dinero's: every address in order.
    Din,
    /// ChampSim's: every instruction of a thread, with its registers, addresses and branches.
    Champsim,
    /// Tables of instructions, blocks and functions, in a directory.
    Parquet,
}

impl From<Form> for ExportFormat {
    fn from(form: Form) -> ExportFormat {
        match form {
            Form::Firefox => ExportFormat::Firefox,
            Form::Callgrind => ExportFormat::Callgrind,
            Form::Pprof => ExportFormat::Pprof,
            Form::Din => ExportFormat::Din,
            Form::Champsim => ExportFormat::Champsim,
            Form::Parquet => ExportFormat::Parquet,
        }
    }
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: InputFile,
    /// The format.
    #[arg(long = "to", value_name = "FORM")]
    pub form: Form,
    /// The file, instead of standard output; it is compressed if its name ends with .gz. For parquet, the
    /// directory.
    #[arg(short, long, value_name = "PATH", required_if_eq("form", "parquet"))]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionOptions,
}
