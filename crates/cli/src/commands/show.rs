//! `pathlength show`: the contents of a trace.

use std::io;
use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::summary::{self, Summary};
use analysis::replay::{
    Accesses, Addresses, Dictionary, Filter, FunctionTrace, Listing, Replay, ReplayOrder, Selection,
};
use report::{PagedStream, StandardStream, TableWriter};
use session::console::Console;
use session::program::protect_images;
use session::views::{replay_selected, report_damage, selected_tables};
use table::Table;
use trace::Trace;

use crate::arguments::{ModeName, SelectionOptions, ShowOptions, SummaryOptions, View};
use crate::console::CommandConsole;

/// Rows of each table in the summary.
const ROWS: usize = 20;

/// Shows the trace. Parts that cannot be read are reported, and make the exit status 1.
pub fn run(options: &ShowOptions) -> anyhow::Result<ExitCode> {
    let console = CommandConsole::of_tables(&options.show);
    let selects_units = options.selection.unit_number.is_some();
    let trace = Trace::open(&options.trace)?;
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&selection(&options.selection), &dictionary)?;
    let time_slice = options.time_slice;
    let order = options
        .processors
        .map_or(ReplayOrder::Time, |processors| ReplayOrder::Processors { processors, quantum: time_slice });
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order };
    let system_call = |number| engine::system_call_name(trace.instruction_set(), number);
    let is_whole = match options.view {
        View::Instructions => {
            let mut listing = Listing::new(&dictionary, &accesses, &system_call, stdout(options)?);
            let is_whole = replay_selected(&console, &replay, selects_units, &mut listing, false)?;
            listing.finish()?;
            is_whole
        }
        View::Functions => {
            let mut functions = FunctionTrace::new(&dictionary, &system_call, stdout(options)?);
            let is_whole = replay_selected(&console, &replay, selects_units, &mut functions, false)?;
            functions.finish()?;
            is_whole
        }
        View::Summary => {
            options.show.output.check(options.summary.tables.len() != 1)?;
            let mut summary = Summary::new(&dictionary, &accesses, summary_options(&options.summary, &trace));
            let is_whole = replay_selected(&console, &replay, selects_units, &mut summary, true)?;
            let mut tables = selected_tables(summary.tables(&system_call), &options.summary.tables)?;
            let sorted = options.show.rows.sort(&mut tables);
            let is_summary = options.summary.tables.is_empty();
            for table in &mut tables {
                let all = format!("--table {} shows all", table.name);
                let usual = console.summary_rows(ROWS).filter(|_| is_summary);
                options.show.rows.shorten(table, usual, &all);
            }
            crate::console::write(&tables, &options.show.output)?;
            sorted?;
            is_whole
        }
        View::Addresses => addresses(&console, &replay, options)?,
    };
    report_damage(&console, &trace, &options.trace);
    Ok(if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Standard output, with a pager on a terminal.
fn stdout(options: &ShowOptions) -> io::Result<PagedStream> {
    report::open_stream(StandardStream::Output, options.show.output.destination().is_paged)
}

/// Writes all addresses, part by part. Returns whether the trace could be read as a whole.
fn addresses(console: &CommandConsole, replay: &Replay, options: &ShowOptions) -> anyhow::Result<bool> {
    let (format, destination) = (options.show.output.format(), options.show.output.destination());
    let selects_units = options.selection.unit_number.is_some();
    let is_quiet = destination.path.is_some();
    let mut is_whole = true;
    report::write_long("addresses", format, destination, |out| {
        let mut table_writer: Option<TableWriter<_>> = None;
        let mut out = Some(out);
        let sink = |part: &Table| -> io::Result<()> {
            let written = match (&mut table_writer, out.take()) {
                (Some(table_writer), _) => table_writer.write(part),
                (none, out) => {
                    let out = out.expect("begun once");
                    TableWriter::begin(part, format, out).map(|begun| *none = Some(begun))
                }
            };
            written.map_err(report::Error::into_io)
        };
        let mut addresses = Addresses::new(replay, "addresses", sink);
        is_whole = replay_selected(console, replay, selects_units, &mut addresses, is_quiet)?;
        addresses.finish()?;
        table_writer.map_or(Ok(()), TableWriter::finish)
    })?;
    Ok(is_whole)
}

fn summary_options(options: &SummaryOptions, trace: &Trace) -> summary::SummarySettings {
    let SummaryOptions { line_sizes, page_sizes, window, .. } = options.clone();
    summary::SummarySettings {
        line_sizes,
        page_sizes,
        window: window.unwrap_or_else(|| summary::window(trace)),
    }
}

/// The selection, as the library has it.
pub(super) fn selection(options: &SelectionOptions) -> Selection {
    let options = options.clone();
    let processes = options.processes.into_iter().map(|process| (process, None));
    Selection {
        functions: options.functions,
        with_callees: options.with_callees,
        images: options.images,
        range: options.range,
        modes: options.modes.into_iter().map(ModeName::mode).collect(),
        data_range: options.data_range,
        threads: options.threads.into_iter().chain(processes).collect(),
        instructions: options.instructions,
        units: options.unit_number,
    }
}
