//! `pathlength compare`: what two builds of a program execute.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use session::comparison::Comparison;
use session::input::Input;

use crate::arguments::{CompareOptions, words_of};
use crate::console::CommandConsole;

/// Runs the programs with the same arguments, or reads saved counts and traces, and writes the tables of their
/// differences.
pub fn run(options: &CompareOptions) -> anyhow::Result<ExitCode> {
    let sides = [input(options, &options.program_a)?, input(options, &options.program_b)?];
    if !options.unit.unit.is_empty() && !sides.iter().any(|side| matches!(side, Input::Program { .. })) {
        bail!("both sides were recorded or counted before: --unit is for a program that is run");
    }
    let comparison = Comparison {
        sides,
        program: options.execution.engine.program(),
        unit: options.unit.work(&[]),
        expected: options.execution.ending.expected(),
        gate: options.gate.gate(),
        console: &CommandConsole::of_tables(&options.show),
    };
    comparison.write()
}

/// A side's input. Only programs have arguments.
fn input(options: &CompareOptions, path: &Path) -> anyhow::Result<Input> {
    match Input::of_file(path, &[])? {
        Input::Program { path, .. } => Ok(Input::Program { path, arguments: words_of(&options.arguments) }),
        input => Ok(input),
    }
}
