//! `pathlength trace`: records every instruction and every address of a run, or of a part of it.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use indicatif::HumanCount;
use session::program::{check_ending, check_names, names_in, protect_images};
use session::{record, startup};

use crate::arguments::{ObservedProgram, TraceOptions};
use crate::progress::LiveProgress;

/// Runs the program, or attaches to it, and records it.
pub fn run(options: &TraceOptions) -> anyhow::Result<ExitCode> {
    let plan = options.recorded.plan(&options.plan.part())?;
    match options.program.resolve("to record")? {
        ObservedProgram::Started { path, arguments } => record(options, &path, &arguments, &plan),
        ObservedProgram::Running(attached) => {
            let attached = record::attach(&attached, &plan, &options.output)?;
            report_size(&options.output, attached.instructions, attached.units);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs a program and records it.
fn record(
    options: &TraceOptions,
    program: &Path,
    arguments: &[OsString],
    plan: &engine::Plan,
) -> anyhow::Result<ExitCode> {
    let mut configuration = options.execution.engine.program().configuration(program, arguments, true);
    if options.output.is_file() {
        let images = startup::images(&configuration).unwrap_or_default();
        protect_images(images.iter().map(|image| image.path.as_path()));
    }
    check_names(&configuration, &names_in(plan))?;
    let progress = LiveProgress::new(false);
    configuration.settings.executed = progress.instructions();
    let recording = record::record(&configuration, plan, &options.output);
    drop(progress);
    let recording = recording?;
    let status = check_ending(&recording.ending, program, &options.execution.ending.expected())?;
    report_size(&options.output, recording.recorded.instructions, recording.recorded.units);
    Ok(status)
}

/// Reports the size of a recording, on a terminal.
pub fn report_size(path: &Path, instructions: u64, units: u64) {
    if std::io::stderr().is_terminal() {
        let count = |n: u64, what: &str| format!("{} {what}{}", HumanCount(n), if n == 1 { "" } else { "s" });
        let units = if units > 0 { format!(", {} seen", count(units, "unit")) } else { String::new() };
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        let (instructions, bytes) = (count(instructions, "instruction"), count(bytes, "byte"));
        text::message!("{}: {instructions} in {bytes}{units}", path.display());
    }
}
