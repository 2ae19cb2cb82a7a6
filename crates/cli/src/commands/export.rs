//! `pathlength export`: a trace for other tools.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use analysis::export::pprof::Pprof;
use analysis::export::{self, Callgrind, Firefox, InstructionSink, Instructions};
use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder};
use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use report::{Error, Format, InstructionTable, StandardStream};
use session::program::protect_images;
use trace::Trace;
use trace::export::{ChampSim, Din};

use super::show::{replay_into, report_problems, selection};
use crate::arguments::{ExportOptions, Form};

/// The name of the table that is written in parts.
const INSTRUCTIONS: &str = "instructions";

/// Exports the trace. Parts that cannot be read are reported, and make the exit status 1.
pub fn run(options: &ExportOptions) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&selection(&options.selection), &dictionary)?;
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let output = options.output.as_deref();
    let is_quiet = output.is_some();
    let is_whole = match options.form {
        Form::Firefox => {
            let mut profile = Firefox::new(&dictionary);
            let is_whole = replay_into(&replay, &mut profile, true)?;
            write(output, |out| not_empty(profile.write(out)?))?;
            is_whole
        }
        Form::Callgrind => {
            let mut profile = Callgrind::new(&dictionary, &accesses);
            let is_whole = replay_into(&replay, &mut profile, true)?;
            write(output, |out| not_empty(profile.write(out)?))?;
            is_whole
        }
        Form::Pprof => {
            if output.is_none() && io::stdout().is_terminal() {
                return Err(Error::BinaryToTerminal("pprof's form").into());
            }
            let mut profile = Pprof::new(&dictionary, &accesses);
            let is_whole = replay_into(&replay, &mut profile, true)?;
            write(output, |out| not_empty(profile.write(out)?))?;
            is_whole
        }
        Form::Din => {
            let has_fetches = !filter.is_by_data();
            let mut is_whole = true;
            write(output, |out| {
                let din = Din::new(out, has_fetches);
                Ok(each(&replay, din, is_quiet, &mut is_whole)?.finish()?)
            })?;
            is_whole
        }
        Form::Champsim => {
            check_champsim(&replay, output)?;
            let mut is_whole = true;
            let (set, blocks) = (trace.instruction_set(), trace.blocks());
            write(output, |out| {
                let champsim = ChampSim::new(set, blocks, out);
                Ok(each(&replay, champsim, is_quiet, &mut is_whole)?.finish()?)
            })?;
            is_whole
        }
        Form::Parquet => tables(&replay, output)?,
    };
    report_problems(&trace, &options.trace);
    Ok(if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Gives the instructions to a sink, and gives it back.
fn each<S: InstructionSink>(
    replay: &Replay,
    sink: S,
    is_quiet: bool,
    is_whole: &mut bool,
) -> Result<S, Error> {
    let mut instructions = Instructions::new(replay.dictionary, replay.accesses, sink);
    *is_whole = replay_into(replay, &mut instructions, is_quiet)?;
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

fn tables(replay: &Replay, output: Option<&Path>) -> anyhow::Result<bool> {
    let trace = replay.dictionary.trace;
    let small = [export::blocks(replay.dictionary), export::functions(replay.dictionary)];
    report::check(true, Format::Parquet, output)?;
    let mut is_whole = true;
    let Some(directory) = output else { bail!("several tables need a directory: name one with -o") };
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    report::write_long(INSTRUCTIONS, Format::Parquet, output.into(), |out| {
        each(replay, InstructionTable::new(trace, out)?, true, &mut is_whole)?.finish()
    })?;
    report::write_all(&small, Format::Parquet, output)?;
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
