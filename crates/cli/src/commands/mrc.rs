//! `pathlength mrc`: miss-ratio curves, the misses of caches of all sizes.

use std::process::ExitCode;

use clap::ValueEnum;
use session::machines::SelectedMachines;
use session::tables::CurvesRequest;

use crate::arguments::{MrcOptions, ReferenceStream, SizesOptions};
use crate::console::CommandConsole;

/// Simulates caches of all sizes on the trace or the program, and writes the tables, or a page of charts.
pub fn run(options: &MrcOptions) -> anyhow::Result<ExitCode> {
    let SizesOptions { streams, line_size, largest, granularity_hints } = &options.sizes;
    let streams = ReferenceStream::value_variants().iter().filter(|stream| streams.contains(stream));
    let request = CurvesRequest {
        holds: streams.map(|&stream| stream.into()).collect(),
        line_size: *line_size,
        largest: *largest,
        hinted: granularity_hints.clone(),
    };
    let console = CommandConsole::new(&options.output);
    let simulation = options.input.simulation(&options.classes, SelectedMachines::default(), &console)?;
    request.write(&simulation)
}
