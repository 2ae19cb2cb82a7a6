//! Traces for other tools.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use analysis::export::pprof::Pprof;
use analysis::export::{self, Callgrind, Firefox, InstructionSink, Instructions};
use analysis::replay::{Replay, ReplayOrder, Selection};
use anyhow::bail;
use flate2::Compression;
use flate2::write::GzEncoder;
use report::{Error, Format, InstructionTable, StandardStream, TableFolder};
use trace::Trace;
use trace::export::{ChampSim, Din};

use crate::console::Console;
use crate::program::protect_images;
use crate::views::{replay_into, report_damage};

/// The name of the table that is written in parts.
const INSTRUCTIONS: &str = "instructions";

/// Other tools' formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The Firefox Profiler's.
    Firefox,
    /// Callgrind's.
    Callgrind,
    /// pprof's.
    Pprof,
    /// Dinero's.
    Din,
    /// ChampSim's.
    Champsim,
    /// Tables, in a directory.
    Parquet,
}

impl ExportFormat {
    /// All, with their names and what they hold.
    pub const ALL: [(ExportFormat, &str, &str); 6] = [
        (
            ExportFormat::Firefox,
            "firefox",
            "The Firefox Profiler's: calls and functions over time, units of work",
        ),
        (
            ExportFormat::Callgrind,
            "callgrind",
            "Callgrind's, for KCachegrind: instructions, loads and stores of each line, function and call",
        ),
        (
            ExportFormat::Pprof,
            "pprof",
            "pprof's: instructions, loads and stores of each line in each chain of calls",
        ),
        (ExportFormat::Din, "din", "Dinero's: every address in order"),
        (
            ExportFormat::Champsim,
            "champsim",
            "ChampSim's: every instruction of a thread, with its registers, addresses and branches",
        ),
        (ExportFormat::Parquet, "parquet", "Tables of instructions, blocks and functions, in a directory"),
    ];

    /// The format with this name.
    pub fn named(name: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.iter().find(|(_, own, _)| *own == name).map(|(format, ..)| *format)
    }
}

/// A trace for another tool.
pub struct Export<'a> {
    /// The trace.
    pub trace: &'a Path,
    /// The part of it.
    pub selection: &'a Selection,
    /// The format.
    pub form: ExportFormat,
    /// Where progress goes, and the file or the folder of the output.
    pub console: &'a dyn Console,
}

impl Export<'_> {
    /// Exports the trace. Parts that cannot be read are reported. Returns whether there are none.
    pub fn write(&self) -> anyhow::Result<bool> {
        let console = self.console;
        let trace = Trace::open(self.trace)?;
        protect_images(trace.images().iter().map(|image| image.path.as_path()));
        let written =
            Replay::of_part(&trace, self.selection, ReplayOrder::Time, |replay| self.write_replay(replay));
        let is_whole = written??;
        report_damage(console, &trace, self.trace);
        Ok(is_whole && trace.problems().is_empty())
    }

    /// Writes what a replay passes on. Returns whether all of it could be read.
    fn write_replay(&self, replay: &Replay) -> anyhow::Result<bool> {
        let (console, trace) = (self.console, replay.dictionary.trace);
        let output = console.path();
        let is_quiet = output.is_some();
        Ok(match self.form {
            ExportFormat::Firefox => {
                let mut profile = Firefox::new(replay.dictionary);
                let is_whole = replay_into(console, replay, &mut profile, true)?;
                write(output, |out| not_empty(profile.write(out)?))?;
                is_whole
            }
            ExportFormat::Callgrind => {
                let mut profile = Callgrind::new(replay.dictionary, replay.accesses);
                let is_whole = replay_into(console, replay, &mut profile, true)?;
                write(output, |out| not_empty(profile.write(out)?))?;
                is_whole
            }
            ExportFormat::Pprof => {
                if output.is_none() && io::stdout().is_terminal() {
                    return Err(Error::BinaryToTerminal("pprof's form").into());
                }
                let mut profile = Pprof::new(replay.dictionary, replay.accesses);
                let is_whole = replay_into(console, replay, &mut profile, true)?;
                write(output, |out| not_empty(profile.write(out)?))?;
                is_whole
            }
            ExportFormat::Din => {
                let has_fetches = !replay.filter.is_by_data();
                let mut is_whole = true;
                write(output, |out| {
                    let din = Din::new(out, has_fetches);
                    Ok(each(console, replay, din, is_quiet, &mut is_whole)?.finish()?)
                })?;
                is_whole
            }
            ExportFormat::Champsim => {
                check_champsim(replay, output)?;
                let mut is_whole = true;
                let (set, blocks) = (trace.instruction_set(), trace.blocks());
                write(output, |out| {
                    let champsim = ChampSim::new(set, blocks, out);
                    Ok(each(console, replay, champsim, is_quiet, &mut is_whole)?.finish()?)
                })?;
                is_whole
            }
            ExportFormat::Parquet => tables(console, replay, output)?,
        })
    }
}

/// Gives the instructions to a sink, and gives it back.
fn each<S: InstructionSink>(
    console: &dyn Console,
    replay: &Replay,
    sink: S,
    is_quiet: bool,
    is_whole: &mut bool,
) -> Result<S, Error> {
    let mut instructions = Instructions::new(replay.dictionary, replay.accesses, sink);
    *is_whole = replay_into(console, replay, &mut instructions, is_quiet)?;
    let (count, sink) = instructions.finish();
    not_empty(count).map(|()| sink)
}

fn not_empty(count: u64) -> Result<(), Error> {
    if count == 0 { Err(Error::Empty) } else { Ok(()) }
}

/// ChampSim has a file for each thread, which is not text.
fn check_champsim(replay: &Replay, output: Option<&Path>) -> anyhow::Result<()> {
    let trace = replay.dictionary.trace;
    let chunks = trace.chunks().iter().filter(|chunk| replay.filter.chunk(chunk));
    let streams = chunks.map(|chunk| &trace.streams()[chunk.stream as usize]);
    let threads: BTreeSet<_> = streams.map(|stream| (stream.process, stream.thread)).collect();
    if let (Some((process, thread)), count @ 2..) = (threads.first(), threads.len()) {
        let example = format!("--thread {process}.{thread}");
        bail!(
            "{count} threads are chosen, and ChampSim reads a file for each: choose one, such as {example}"
        );
    }
    if output.is_none() && io::stdout().is_terminal() {
        return Err(Error::BinaryToTerminal("ChampSim's form").into());
    }
    Ok(())
}

fn tables(console: &dyn Console, replay: &Replay, output: Option<&Path>) -> anyhow::Result<bool> {
    let trace = replay.dictionary.trace;
    let small = [export::blocks(replay.dictionary), export::functions(replay.dictionary)];
    report::check(true, Format::Parquet, output)?;
    let mut is_whole = true;
    let Some(directory) = output else { bail!("several tables need a directory: name one with -o") };
    let mut folder = TableFolder::new(directory)?;
    folder.write_table(INSTRUCTIONS, Format::Parquet, |out| {
        each(console, replay, InstructionTable::new(trace, out)?, true, &mut is_whole)?.finish()
    })?;
    folder.write_tables(&small, Format::Parquet)?;
    folder.commit()?;
    Ok(is_whole)
}

/// Writes a file, compressed if its name says so, or standard output.
fn write(
    path: Option<&Path>,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(path) = path else {
        let mut out = report::open_stream(StandardStream::Output, false)?;
        write(&mut out)?;
        return Ok(out.flush()?);
    };
    if path.extension().is_none_or(|extension| extension != "gz") {
        return report::write_file(path, write);
    }
    report::write_file(path, |out| {
        // Traces are long, and the best compression takes longer than all else.
        let mut out = GzEncoder::new(out, Compression::fast());
        write(&mut out)?;
        Ok(out.finish().map(drop)?)
    })
}
