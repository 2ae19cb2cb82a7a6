//! Options of `export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use session::export::ExportFormat;

use super::{InputFile, SelectionOptions};

/// Reads a format by its name.
fn format() -> impl TypedValueParser<Value = ExportFormat> {
    let names = ExportFormat::ALL.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(names)
        .map(|name| ExportFormat::named(&name).expect("these are the names of formats"))
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub trace: InputFile,
    /// The format.
    #[arg(long = "to", value_name = "FORM", value_parser = format())]
    pub form: ExportFormat,
    /// The file, instead of standard output; it is compressed if its name ends with .gz. For parquet, the
    /// directory.
    #[arg(short, long, value_name = "PATH", required_if_eq("form", "parquet"))]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionOptions,
}
