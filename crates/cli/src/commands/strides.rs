//! `pathlength strides`: memory access patterns.

use std::process::ExitCode;

use analysis::strides::{Bins, StrideRows, StrideSettings};
use session::machines::SelectedMachines;
use session::strides::StridesRequest;

use super::show::selection;
use crate::arguments::{PatternsOf, StridesOptions};
use crate::console::CommandConsole;

/// Counts the strides of a trace or of a program.
pub fn run(options: &StridesOptions) -> anyhow::Result<ExitCode> {
    let machines = options.advice.then(|| SelectedMachines::find([&options.machine], &[])).transpose()?;
    let settings = StrideSettings {
        depth: options.depth,
        threshold: options.minimum_stride,
        bins: Bins { is_signed: options.signed, in_elements: options.in_elements },
    };
    let request = StridesRequest {
        input: options.input.resolve()?,
        program: options.execution.engine.program(),
        expected: options.execution.ending.expected(),
        all_processes: options.input.has_all_processes(),
        selection: selection(&options.selection),
        units: &options.unit,
        class_rules: &options.classes.classes,
        by_class: options.by == PatternsOf::Class,
        by: by(options.by),
        arrays: &options.arrays,
        settings,
        are_histograms: options.histograms,
        advice: machines.and_then(|selected| selected.machines.into_iter().next()),
        console: &CommandConsole::of_tables(&options.show),
    };
    request.write()
}

fn by(patterns: PatternsOf) -> StrideRows {
    match patterns {
        PatternsOf::Instruction => StrideRows::Instruction,
        PatternsOf::Line => StrideRows::Line,
        PatternsOf::Function => StrideRows::Function,
        PatternsOf::Array => StrideRows::Array,
        PatternsOf::Process => StrideRows::Process,
        PatternsOf::Class | PatternsOf::All => StrideRows::All,
    }
}
