//! `pathlength count`: the instructions of a run, or of a unit of work, by image, group and function.

use std::process::ExitCode;

use analysis::components::Components;
use anyhow::bail;
use session::counting::Counting;

use crate::arguments::CountOptions;
use crate::console::CommandConsole;

/// Runs the program, or takes the counts of a trace or saved ones, and writes the tables.
pub fn run(options: &CountOptions) -> anyhow::Result<ExitCode> {
    let has_all_units = options.unit.unit.len() > 1 || !options.classes.is_empty();
    if options.unit.has_rules() && (has_all_units || options.input.has_all_processes()) {
        bail!("--units and --batch are of the steady state of a single unit in one process: leave them out");
    }
    let counting = Counting {
        input: options.input.resolve()?,
        program: options.execution.engine.program(),
        dilation: options.time_dilation,
        unit: options.unit.work(&options.classes),
        all_processes: options.input.children,
        rows: options.by.map(Into::into),
        // Errors of the rules are reported before the program runs.
        components: options.components.as_deref().map(Components::find).transpose()?,
        expected: options.execution.ending.expected(),
        console: &CommandConsole::of_tables(&options.show),
    };
    counting.write()
}
