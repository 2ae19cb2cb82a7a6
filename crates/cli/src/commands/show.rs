//! `pathlength show`: the contents of a trace.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::summary::{
    self, CondensedSummary, EXACT_TABLES, RecordTimes, Summary, SummarySettings,
};
use analysis::replay::{
    Accesses, Addresses, Dictionary, Executed, Filter, FunctionTrace, Listing, Replay, ReplayOrder,
    SelectedInstructions, Selection, Visitor,
};
use anyhow::Context;
use events::record::Mark;
use report::{Destination, Format, PagedStream, StandardStream, TableWriter};
use session::program::protect_images;
use session::simulation::report_damage;
use table::Table;
use trace::Trace;

use crate::arguments::{ModeName, SelectionOptions, ShowOptions, SummaryOptions, View};
use crate::messages;
use crate::progress::Replaying;

/// Rows of each table in the summary.
const ROWS: usize = 20;

/// Shows the trace. Parts that cannot be read are reported, and make the exit status 1.
pub fn run(options: &ShowOptions) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&selection(&options.selection), &dictionary)?;
    let quantum = options.quantum;
    let order = options
        .processors
        .map_or(ReplayOrder::Time, |processors| ReplayOrder::Processors { processors, quantum });
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order };
    let system_call = engine::system_call_name;
    let is_whole = match options.view {
        View::Instructions => {
            let mut listing = Listing::new(&dictionary, &accesses, &system_call, stdout(options)?);
            let is_whole = replay_selected(&replay, &options.selection, &mut listing, false)?;
            listing.finish()?;
            is_whole
        }
        View::Functions => {
            let mut functions = FunctionTrace::new(&dictionary, &system_call, stdout(options)?);
            let is_whole = replay_selected(&replay, &options.selection, &mut functions, false)?;
            functions.finish()?;
            is_whole
        }
        View::Summary => {
            options.output.check(options.summary.tables.len() != 1)?;
            let mut summary = Summary::new(&dictionary, &accesses, summary_options(&options.summary, &trace));
            let is_whole = replay_selected(&replay, &options.selection, &mut summary, true)?;
            let mut tables = selected(summary.tables(&system_call), &options.summary.tables)?;
            let sorted = options.rows.sort(&mut tables);
            let is_summary = options.summary.tables.is_empty();
            for table in &mut tables {
                let all = format!("--table {} shows all", table.name);
                let usual = options.output.summary_rows(ROWS).filter(|_| is_summary);
                options.rows.shorten(table, usual, &all);
            }
            crate::console::write(&tables, &options.output)?;
            sorted?;
            is_whole
        }
        View::Addresses => addresses(&replay, options)?,
    };
    report_problems(&trace, &options.trace);
    Ok(if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Standard output, with a pager on a terminal.
fn stdout(options: &ShowOptions) -> io::Result<PagedStream> {
    report::open_stream(StandardStream::Output, options.output.destination().is_paged)
}

/// Reports parts of a trace's file that could not be read when it was opened.
pub fn report_problems(trace: &Trace, path: &Path) {
    report_damage(&messages::report_problem, trace, path);
}

/// Writes all addresses, or those of each process in a table of its own.
fn addresses(replay: &Replay, options: &ShowOptions) -> anyhow::Result<bool> {
    let (format, destination) = (options.output.format(), options.output.destination());
    if !options.separate {
        return table_of_addresses(replay, &options.selection, "addresses", format, destination);
    }
    if let Some(folder) = destination.path {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    report::check(true, format, destination.path)?;
    let trace = replay.dictionary.trace;
    let processes: BTreeSet<u32> = trace.streams().iter().map(|stream| stream.process).collect();
    let mut is_whole = true;
    for process in processes {
        let filter = replay.filter.of_process(trace, process);
        let name = format!("addresses-process-{process}");
        is_whole &= table_of_addresses(
            &Replay { filter: &filter, ..*replay },
            &options.selection,
            &name,
            format,
            destination,
        )?;
    }
    Ok(is_whole)
}

fn table_of_addresses(
    replay: &Replay,
    selection: &SelectionOptions,
    name: &str,
    format: Format,
    destination: Destination,
) -> anyhow::Result<bool> {
    let mut is_whole = true;
    report::write_long(name, format, destination, |out| {
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
        let mut addresses = Addresses::new(replay, name, sink);
        is_whole = replay_selected(replay, selection, &mut addresses, destination.path.is_some())?;
        addresses.finish()?;
        table_writer.map_or(Ok(()), TableWriter::finish)
    })?;
    Ok(is_whole)
}

/// As [`replay_into`], with a note if nothing is selected and tables would be empty.
pub(super) fn replay_selected(
    replay: &Replay,
    selection: &SelectionOptions,
    visitor: &mut impl Visitor,
    is_quiet: bool,
) -> io::Result<bool> {
    let mut watched = Watched { visitor, has_selected: false };
    let is_whole = replay_into(replay, &mut watched, is_quiet)?;
    if !watched.has_selected {
        let trace = replay.dictionary.trace;
        let why = if selection.units.is_some() && trace.header().unit.is_none() {
            "the trace has no units of work: record it with --unit FUNCTION"
        } else if trace.chunks().iter().all(|chunk| chunk.instructions == 0) {
            "the trace has no instructions"
        } else {
            "no instruction of the trace is selected by all options"
        };
        text::message!("note: nothing to show: {why}");
    }
    Ok(is_whole)
}

/// A visitor, and whether it was shown selected instructions.
struct Watched<'a, V> {
    visitor: &'a mut V,
    has_selected: bool,
}

impl<V: Visitor> Visitor for Watched<'_, V> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        self.visitor.mark(stream, before, mark, is_selected)
    }

    fn follows_heap(&self) -> bool {
        self.visitor.follows_heap()
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        self.has_selected |= executed.selected != SelectedInstructions::None;
        self.visitor.executed(executed)
    }
}

/// Replays the trace, and reports parts that cannot be read. Returns whether there were none. `is_quiet` says that the
/// visitor writes nothing meanwhile.
pub(super) fn replay_into(replay: &Replay, visitor: &mut impl Visitor, is_quiet: bool) -> io::Result<bool> {
    let chunks = replay.dictionary.trace.chunks().iter().filter(|chunk| replay.filter.chunk(chunk));
    let instructions = chunks.map(|chunk| chunk.instructions).fold(0, u64::saturating_add);
    let bar = Replaying::new(instructions, is_quiet || !io::stdout().is_terminal());
    let problems = replay.run(visitor, &mut |instructions| bar.show(instructions));
    bar.clear();
    let problems = problems?;
    let is_whole = problems.is_empty();
    for problem in problems {
        messages::report_problem(&format!("{:#}", anyhow::Error::from(problem)));
    }
    Ok(is_whole)
}

/// The tables of the summary of a whole trace.
pub(super) fn summary_tables(path: &Path, times: Option<RecordTimes>) -> anyhow::Result<Vec<Table>> {
    let trace = Trace::open(path)?;
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&Selection::default(), &dictionary)?;
    let (dictionary, accesses, filter) = (&dictionary, &accesses, &filter);
    let replay = Replay { dictionary, accesses, filter, order: ReplayOrder::Time };
    let settings =
        SummarySettings { line_sizes: Vec::new(), page_sizes: Vec::new(), window: summary::window(&trace) };
    let mut summary = Summary::new(dictionary, accesses, settings);
    if let Some(times) = times {
        let mut condensed = CondensedSummary::new(summary, times);
        replay_into(&replay, &mut condensed, true)?;
        let mut tables = condensed.into_summary().tables(&engine::system_call_name);
        tables.retain(|table| EXACT_TABLES.contains(&table.name.as_str()));
        return Ok(tables);
    }
    replay_into(&replay, &mut summary, true)?;
    Ok(summary.tables(&engine::system_call_name))
}

/// The tables with these names; without names all tables that have rows.
pub(super) fn selected(tables: Vec<Table>, names: &[String]) -> anyhow::Result<Vec<Table>> {
    if names.is_empty() {
        let has_rows = |table: &Table| table.rows.len() > usize::from(table.total);
        return Ok(tables.into_iter().filter(has_rows).collect());
    }
    let known = tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let found = tables.iter().find(|table| table.name == *name).cloned();
        found.with_context(|| format!("there is no table '{name}'; the tables are {known}"))
    };
    names.iter().map(find).collect()
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
        units: options.units,
    }
}
