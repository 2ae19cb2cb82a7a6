//! Views of traces: replays with progress, and reports of parts that cannot be read.

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::path::Path;

use analysis::names::Names;
use analysis::replay::summary::{self, CondensedSummary, EXACT_TABLES, Summary, SummarySettings};
use analysis::replay::{
    Accesses, Dictionary, Executed, Filter, Replay, ReplayOrder, SelectedInstructions, Selection, Visitor,
};
use anyhow::Context;
use events::Consumer;
use events::record::Mark;
use table::Table;
use trace::{RecordTimes, Trace};

use crate::console::Console;

/// As [`replay_into`], with a note if nothing is selected and tables would be empty. `selects_units` says whether units of work are
/// selected.
pub fn replay_selected(
    console: &dyn Console,
    replay: &Replay,
    selects_units: bool,
    visitor: &mut impl Visitor,
    is_quiet: bool,
) -> io::Result<bool> {
    let mut watched = Watched { visitor, has_selected: false };
    let is_whole = replay_into(console, replay, &mut watched, is_quiet)?;
    if !watched.has_selected {
        let trace = replay.dictionary.trace;
        let why = if selects_units && trace.header().unit.is_none() {
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
pub fn replay_into(
    console: &dyn Console,
    replay: &Replay,
    visitor: &mut impl Visitor,
    is_quiet: bool,
) -> io::Result<bool> {
    let is_shown = is_quiet || !io::stdout().is_terminal();
    let progress = console.begin_replay(selected_instructions(replay), is_shown);
    let problems = replay.run(visitor, &mut |instructions| progress.advance(instructions));
    drop(progress);
    Ok(report_unread(console, problems?))
}

/// Replays the trace to a consumer, and reports parts that cannot be read. Returns whether there were none.
pub fn replay_to(console: &dyn Console, replay: &Replay, consumer: &mut dyn Consumer) -> bool {
    let progress = console.begin_replay(selected_instructions(replay), true);
    let Ok(problems) = replay.run_consumer(consumer, &mut |instructions| {
        progress.advance(instructions);
        Ok::<(), Infallible>(())
    });
    drop(progress);
    report_unread(console, problems)
}

/// The instructions of the selected chunks.
pub(crate) fn selected_instructions(replay: &Replay) -> u64 {
    let chunks = replay.dictionary.trace.chunks().iter().filter(|chunk| replay.filter.chunk(chunk));
    chunks.map(|chunk| chunk.instructions).fold(0, u64::saturating_add)
}

/// Reports parts of a trace that could not be read. Returns whether there were none.
pub(crate) fn report_unread(console: &dyn Console, problems: Vec<trace::Error>) -> bool {
    let is_whole = problems.is_empty();
    for problem in problems {
        console.report_problem(&format!("{:#}", anyhow::Error::from(problem)));
    }
    is_whole
}

/// Reports parts of a trace's file that could not be read when it was opened.
pub fn report_damage(console: &dyn Console, trace: &Trace, path: &Path) {
    for problem in trace.problems() {
        console.report_problem(&format!("{}: at byte {}: {}", path.display(), problem.offset, problem.what));
    }
}

/// The tables of the summary of a whole trace.
pub fn summary_tables(
    console: &dyn Console,
    path: &Path,
    times: Option<RecordTimes>,
) -> anyhow::Result<Vec<Table>> {
    let trace = Trace::open(path)?;
    let system_call = |number| engine::system_call_name(trace.instruction_set(), number);
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
        replay_into(console, &replay, &mut condensed, true)?;
        let mut tables = condensed.into_summary().tables(&system_call);
        tables.retain(|table| EXACT_TABLES.contains(&table.name.as_str()));
        return Ok(tables);
    }
    replay_into(console, &replay, &mut summary, true)?;
    Ok(summary.tables(&system_call))
}

/// The tables with these names; without names all tables that have rows.
pub fn selected_tables(tables: Vec<Table>, names: &[String]) -> anyhow::Result<Vec<Table>> {
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
