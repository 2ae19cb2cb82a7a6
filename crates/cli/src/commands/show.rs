//! `pathlength show`: what is in a trace.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use analysis::names::Names;
use analysis::replay::{Accesses, Dictionary, Filter, FunctionTrace, Listing, Replay, Visitor, Wanted};
use trace::Trace;

use crate::arguments::{ShowOptions, View, WantedOptions};
use crate::progress::Replaying;

/// Shows the trace; what of it could not be read is told, and makes the exit status 1.
pub fn run(options: &ShowOptions) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let names = Names::of_trace(&trace);
    let dictionary = Dictionary::new(&trace, &names);
    let accesses = Accesses::new(&trace);
    let filter = Filter::new(&wanted(&options.wanted), &dictionary)?;
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter };
    let system_call = engine::linux::system_call_name;
    let is_whole = match options.view {
        View::Instructions => {
            let mut listing = Listing::new(&dictionary, &accesses, &system_call, stdout()?);
            let is_whole = go_through(&replay, &mut listing)?;
            listing.finish()?;
            is_whole
        }
        View::Functions => {
            let mut functions = FunctionTrace::new(&dictionary, &system_call, stdout()?);
            let is_whole = go_through(&replay, &mut functions)?;
            functions.finish()?;
            is_whole
        }
        View::Summary | View::Addresses => todo!(),
    };
    for problem in trace.problems() {
        eprintln!("pathlength: {}: at byte {}: {}", options.trace.display(), problem.offset, problem.what);
    }
    Ok(if is_whole && trace.problems().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replays the trace; tells what could not be read, and returns whether all was.
fn go_through(replay: &Replay, visitor: &mut impl Visitor) -> io::Result<bool> {
    let bar = Replaying::new(replay.dictionary.trace);
    let problems = replay.run(visitor, &mut |instructions| bar.show(instructions));
    bar.clear();
    let problems = problems?;
    for problem in &problems {
        eprintln!("pathlength: {problem}");
    }
    Ok(problems.is_empty())
}

fn stdout() -> io::Result<File> {
    // Not through `Stdout`, which takes a closed descriptor for success.
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn wanted(options: &WantedOptions) -> Wanted {
    let options = options.clone();
    let processes = options.processes.into_iter().map(|process| (process, None));
    Wanted {
        functions: options.functions,
        with_callees: options.with_callees,
        images: options.images,
        range: options.range,
        data_range: options.data_range,
        threads: options.threads.into_iter().chain(processes).collect(),
        instructions: options.instructions,
        units: options.units,
    }
}
