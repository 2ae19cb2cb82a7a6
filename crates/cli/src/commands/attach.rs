//! `pathlength attach`: records a running program.

use std::process::ExitCode;

use session::attached_program::AttachedProgram;
use session::record;

use super::trace::report_size;
use crate::arguments::AttachOptions;

/// Records it until Ctrl-C, the end of the program, or the end of the plan.
pub fn run(options: &AttachOptions) -> anyhow::Result<ExitCode> {
    let plan = options.recorded.plan(&options.plan.part())?;
    let program = AttachedProgram { process: options.process.0, children: options.children, duration: None };
    let attached = record::attach(&program, &plan, &options.output)?;
    report_size(&options.output, attached.instructions, attached.units);
    Ok(ExitCode::SUCCESS)
}
