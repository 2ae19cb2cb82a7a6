//! `pathlength export`: a trace for other tools.

use std::process::ExitCode;

use report::Format;
use session::export::Export;

use super::show::selection;
use crate::arguments::{ExportOptions, OutputOptions};
use crate::console::CommandConsole;

/// Exports the trace. Parts that cannot be read are reported, and make the exit status 1.
pub fn run(options: &ExportOptions) -> anyhow::Result<ExitCode> {
    let output = OutputOptions::standard(Format::Table).with_path(options.output.clone());
    let export = Export {
        trace: &options.trace,
        selection: &selection(&options.selection),
        form: options.form,
        console: &CommandConsole::new(&output),
    };
    Ok(if export.write()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
