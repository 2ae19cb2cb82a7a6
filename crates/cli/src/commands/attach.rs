//! `pathlength attach`: records a program that runs already.

use std::process::ExitCode;

use engine::Plan;
use lab::record;

use super::trace::{plan, tell};
use crate::arguments::AttachOptions;

/// Records it until Ctrl-C, the end of the program, or the end of what was asked for.
pub fn run(options: &AttachOptions) -> anyhow::Result<ExitCode> {
    let plan = Plan { values: options.recorded.values, heap: options.recorded.heap, ..plan(&options.plan)? };
    let attached = record::attach(options.process, options.children, &plan, &options.output)?;
    tell(&options.output, attached.instructions, attached.units);
    Ok(ExitCode::SUCCESS)
}
