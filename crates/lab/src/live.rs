//! Runs a program and lets a model of a machine hear of it, with no trace on disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Configuration, Plan, Process, Recorder};
use events::Consumer;
use rustix::fs::MemfdFlags;
use trace::{Trace, Writer};

use crate::measure::{Ending, Error};
use crate::record;

/// A finished run.
#[derive(Debug)]
pub struct Live<M> {
    /// What heard of it.
    pub model: M,
    /// The blocks that it heard of, their functions and images; no records.
    pub trace: Trace,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that the program forked, and these in turn: nothing was heard of them.
    pub forked: u64,
}

/// Runs the program to its end; the model hears what is planned: in the program's threads, or in one of its own
/// if that `is_parallel`.
pub fn run<M: Consumer + 'static>(
    configuration: &Configuration,
    plan: &Plan,
    model: M,
    is_parallel: bool,
) -> Result<Live<M>, Error> {
    // Files that are open when the process is made are out of the program's reach.
    let file = record::out_of_reach(in_memory().map_err(Error::NotHeard)?);
    let dictionary = linux::high_copy(file.as_raw_fd());
    let dictionary = dictionary.map(File::from).ok_or_else(|| Error::NotHeard(io::Error::last_os_error()))?;
    let mut process = Process::new(configuration)?;
    let consumer = Arc::new(Mutex::new(model));
    let writer = Writer::new(file, &record::header(configuration, plan));
    let recorder =
        writer.and_then(|writer| Recorder::live(plan.clone(), writer, consumer.clone(), is_parallel));
    let recorder = recorder.map_err(Error::NotHeard)?;
    let (_, ending) = record::run(&mut process, recorder, configuration, plan, Error::NotHeard)?;
    let model =
        Arc::into_inner(consumer).map(|model| model.into_inner().unwrap_or_else(PoisonError::into_inner));
    let model = model.ok_or_else(|| Error::NotHeard(io::Error::other("the model is still in use")))?;
    let trace = Trace::from_file(dictionary, &configuration.program);
    let trace = trace.map_err(|error| Error::NotHeard(io::Error::other(error)))?;
    Ok(Live { model, trace, ending, forked: process.forked })
}

/// A file that is in memory only.
fn in_memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("dictionary", MemfdFlags::CLOEXEC)?.into())
}
