//! `pathlength check`: whether a trace is consistent.

use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::{Dictionary, check};
use anyhow::bail;
use session::program::protect_images;
use session::views::report_damage;
use trace::Trace;

use crate::arguments::CheckOptions;
use crate::console::CommandConsole;

/// Checks the trace, and writes the result; the exit status is 1 if anything is inconsistent.
pub fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let output = &options.output;
    output.check(true)?;
    let trace = Trace::open(&options.trace)?;
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    if trace.chunks().is_empty() && trace.problems().is_empty() {
        bail!("{}: nothing was recorded in this trace: there is nothing to check", options.trace.display());
    }
    let names = Names::of_trace(&trace);
    let found = trace::check::check(&trace);
    let tables = check::tables(&Dictionary::new(&trace, &names), &found);
    crate::console::write(&tables, output)?;
    report_damage(&CommandConsole::new(output), &trace, &options.trace);
    let is_right = found.violations == 0 && trace.problems().is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
