//! Counts blocks and edges of a program and of the processes that it forks.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use analysis::replay::{Replay, ReplayOrder, Selection};
use engine::{Configuration, ConsumerOfFork, ForkedConsumer, ForkedProcess, Plan};
use events::{Block, Consumer, MappedImage, Thread};
use spike::profile::{EdgeCounter, EdgeCounts};
use trace::Trace;

use crate::live;
use crate::measure::{Ending, Error};
use crate::scratch::temporary_folder;

/// What was counted in a run.
#[derive(Debug)]
pub struct CountedEdges {
    /// The counts of all processes.
    pub counts: EdgeCounts,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that the program and its children forked.
    pub forked: u64,
    /// Those of them that did not end before the program, or were killed, so that their counts are missing.
    pub lost: u64,
}

/// Runs a program to its end; in a thread of its own the executions are counted if `is_parallel`.
pub fn count(configuration: &Configuration, is_parallel: bool) -> Result<CountedEdges, Error> {
    // Each forked process leaves its counts in a file.
    let folder = temporary_folder("edges").map_err(Error::Simulation)?;
    let forked = Arc::new(ForkedCounters { folder: folder.path().to_path_buf() });
    let (plan, model) = (Plan::default(), EdgeCounter::default());
    let live = live::run_tree(configuration, &plan, model, is_parallel, Some(forked))?;
    let mut counts = live.model.into_counts();
    let added = add(folder.path(), &mut counts).map_err(Error::Simulation)?;
    Ok(CountedEdges {
        counts,
        ending: live.ending,
        forked: live.forked,
        lost: live.forked.saturating_sub(added),
    })
}

/// Counts the executions in a trace, which must be whole. `progress` gets numbers of instructions.
pub fn of_trace(trace: &Trace, progress: &mut dyn FnMut(u64)) -> anyhow::Result<EdgeCounts> {
    let mut counter = EdgeCounter::default();
    let problems = Replay::of_part(trace, &Selection::default(), ReplayOrder::Time, |replay| {
        replay.run_consumer(&mut counter, &mut |instructions| {
            progress(instructions);
            Ok::<(), Infallible>(())
        })
    });
    let Ok(problems) = problems?;
    match problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(counter.into_counts()),
    }
}

/// Adds what forked processes counted. Returns how many.
fn add(folder: &Path, counts: &mut EdgeCounts) -> io::Result<u64> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let mut added = 0;
    for file in files {
        // A file that is not whole is of a process that was killed while it wrote.
        if let Ok(more) = serde_json::from_reader(BufReader::new(File::open(file)?)) {
            counts.add(more);
            added += 1;
        }
    }
    Ok(added)
}

/// Counters of forked processes.
#[derive(Clone)]
struct ForkedCounters {
    folder: PathBuf,
}

impl ForkedConsumer for ForkedCounters {
    fn forked(&self, _: ForkedProcess) -> Option<ConsumerOfFork> {
        let counter = ForkedCounter::new(&self.folder);
        Some((Arc::new(Mutex::new(counter)), Arc::new(self.clone())))
    }
}

/// Counts the executions of a forked process; writes them to a file at its end.
struct ForkedCounter {
    counter: EdgeCounter,
    path: PathBuf,
}

impl ForkedCounter {
    fn new(folder: &Path) -> ForkedCounter {
        ForkedCounter { counter: EdgeCounter::default(), path: folder.join(std::process::id().to_string()) }
    }

    fn write(&mut self) -> io::Result<()> {
        let counts = std::mem::take(&mut self.counter).into_counts().executed();
        let mut out = BufWriter::new(File::create(&self.path)?);
        serde_json::to_writer(&mut out, &counts)?;
        out.into_inner()?;
        Ok(())
    }
}

impl Consumer for ForkedCounter {
    fn map(&mut self, image: &MappedImage) {
        self.counter.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.counter.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.counter.executed(thread, records);
    }
}

impl Drop for ForkedCounter {
    fn drop(&mut self) {
        // The program that reads the files notices that one is missing.
        let _ = self.write();
    }
}
