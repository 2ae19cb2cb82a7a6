//! `pathlength trace`: records every instruction and every address of a run, or of a part of it.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use engine::{Plan, UnitPlan};
use indicatif::HumanCount;
use session::{record, startup};

use super::{check_ending, check_names, configuration, named, protect_images};
use crate::arguments::{PlanOptions, TraceOptions};
use crate::progress::LiveProgress;

/// Runs the program and records it.
pub fn run(options: &TraceOptions) -> anyhow::Result<ExitCode> {
    let mut configuration =
        configuration(&options.engine, options.program.path(), options.program.arguments(), true);
    let plan = Plan { values: options.recorded.values, heap: options.recorded.heap, ..plan(&options.plan)? };
    if options.output.is_file() {
        let images = startup::images(&configuration).unwrap_or_default();
        protect_images(images.iter().map(|image| image.path.as_path()));
    }
    check_names(&configuration, &named(&plan))?;
    let progress = LiveProgress::new(false);
    configuration.settings.executed = progress.instructions();
    let recording = record::record(&configuration, &plan, &options.output);
    drop(progress);
    let recording = recording?;
    let status = check_ending(&recording.ending, options.program.path(), &options.ending)?;
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

/// The plan of a recording, without values.
pub fn plan(options: &PlanOptions) -> anyhow::Result<Plan> {
    let unit = match &options.unit[..] {
        [] if counts_units(options) => {
            bail!("--skip and --units count calls of a function: name it with --unit FUNCTION")
        }
        [] => None,
        [function] => Some(UnitPlan { function: function.clone(), skip: options.skip, units: options.units }),
        _ => {
            bail!(
                "several functions are classes of units, which are in tables of count, caches, time, calls, mrc, faults, strides, sharing and \
                 objects: here, name one"
            )
        }
    };
    Ok(Plan { from: options.from.clone(), until: options.until.clone(), unit, ..Plan::default() })
}

/// Whether units of work are selected by their number.
pub fn counts_units(options: &PlanOptions) -> bool {
    options.skip > 0 || options.units.is_some()
}
