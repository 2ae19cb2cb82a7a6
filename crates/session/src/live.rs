//! Runs a program that a model of a machine observes, without a trace on disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Configuration, ForkedConsumer, Plan, Process, Recorder};
use events::Consumer;
use rustix::fs::MemfdFlags;
use trace::{Trace, Writer};

use crate::measure::{Ending, Error};
use crate::record;

/// A finished run.
#[derive(Debug)]
pub struct Live<M> {
    /// The model.
    pub model: M,
    /// The blocks that it observed, their functions and images; without records.
    pub trace: Trace,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that the program and its children forked; the model did not observe them.
    pub forked: u64,
}

/// Runs the program to its end; the model observes it as planned, in the program's threads, or in a thread of its own if
/// `is_parallel`.
pub fn run<M: Consumer + 'static>(
    configuration: &Configuration,
    plan: &Plan,
    model: M,
    is_parallel: bool,
) -> Result<Live<M>, Error> {
    run_tree(configuration, plan, model, is_parallel, None)
}

/// As [`run`]; processes that the program forks are observed by consumers of their own, if any.
pub fn run_tree<M: Consumer + 'static>(
    configuration: &Configuration,
    plan: &Plan,
    model: M,
    is_parallel: bool,
    forked: Option<Arc<dyn ForkedConsumer>>,
) -> Result<Live<M>, Error> {
    let has_forked = forked.is_some();
    // The program cannot access files that were opened before its process was created.
    let file = crate::descriptors::out_of_reach(in_memory().map_err(Error::Simulation)?);
    let dictionary = linux_user::high_copy(file.as_raw_fd());
    let dictionary =
        dictionary.map(File::from).ok_or_else(|| Error::Simulation(io::Error::last_os_error()))?;
    let mut process = Process::new(configuration)?;
    let consumer = Arc::new(Mutex::new(model));
    let writer = Writer::new(file, &record::header(configuration, plan));
    let recorder =
        writer.and_then(|writer| Recorder::live(plan.clone(), writer, consumer.clone(), is_parallel, forked));
    let recorder = recorder.map_err(Error::Simulation)?;
    let (recorded, ending) = record::run(&mut process, recorder, configuration, Error::Simulation)?;
    // Of several processes, others may come to the location where recording begins.
    if !(has_forked && plan.from.is_some()) {
        record::check_reached(&recorded, plan)?;
    }
    let model =
        Arc::into_inner(consumer).map(|model| model.into_inner().unwrap_or_else(PoisonError::into_inner));
    let model = model.ok_or_else(|| Error::Simulation(io::Error::other("the model is still in use")))?;
    let trace = Trace::from_file(dictionary, &configuration.program);
    let trace = trace.map_err(|error| Error::Simulation(io::Error::other(error)))?;
    Ok(Live { model, trace, ending, forked: process.forked })
}

/// A file that is in memory only.
fn in_memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("dictionary", MemfdFlags::CLOEXEC)?.into())
}
