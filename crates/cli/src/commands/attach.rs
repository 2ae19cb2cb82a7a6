//! `pathlength attach`: records a running program.

use std::process::ExitCode;

use engine::Plan;
use session::record;

use super::trace::{plan, report_size};
use crate::arguments::AttachOptions;

/// Records it until Ctrl-C, the end of the program, or the end of the plan.
pub fn run(options: &AttachOptions) -> anyhow::Result<ExitCode> {
    let plan = Plan { values: options.recorded.values, heap: options.recorded.heap, ..plan(&options.plan)? };
    let attached = record::attach(options.process, options.children, &plan, None, &options.output)?;
    report_size(&options.output, attached.instructions, attached.units);
    Ok(ExitCode::SUCCESS)
}
