//! Runs a program and lets a model of a machine hear of it, with no trace on disk.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use engine::{Configuration, Consumer, Plan, Process, Recorder};
use machine::Model;
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
}

/// Lets a model hear of the first process.
struct First<M>(M);

impl<M: Model> Consumer for First<M> {
    fn define(&mut self, address: u64, words: &[u32]) {
        self.0.define(address, words);
    }

    fn executed(&mut self, records: &[u64]) {
        self.0.executed(0, records);
    }
}

/// Runs the program to its end; the model hears what is planned: in the program's threads, or in one of its own
/// if that `is_parallel`.
pub fn run<M: Model + 'static>(
    configuration: &Configuration,
    plan: &Plan,
    model: M,
    is_parallel: bool,
) -> Result<Live<M>, Error> {
    // Files that are open when the process is made are out of the program's reach.
    let file = record::out_of_reach(in_memory().map_err(Error::NotHeard)?);
    let dictionary = record::out_of_reach(file.try_clone().map_err(Error::NotHeard)?);
    let mut process = Process::new(configuration)?;
    let consumer = Arc::new(Mutex::new(First(model)));
    let writer = Writer::new(file, &record::header(configuration, plan));
    let recorder =
        writer.and_then(|writer| Recorder::live(plan.clone(), writer, consumer.clone(), is_parallel));
    let recorder = recorder.map_err(Error::NotHeard)?;
    let (_, ending) = record::run(&mut process, recorder, configuration, plan, Error::NotHeard)?;
    let model =
        Arc::into_inner(consumer).map(|model| model.into_inner().unwrap_or_else(PoisonError::into_inner));
    let model = model.ok_or_else(|| Error::NotHeard(io::Error::other("the model is still in use")))?.0;
    let trace = Trace::from_file(dictionary, &configuration.program);
    let trace = trace.map_err(|error| Error::NotHeard(io::Error::other(error)))?;
    Ok(Live { model, trace, ending })
}

/// A file that is in memory only.
fn in_memory() -> io::Result<File> {
    // SAFETY: the name is a string, and the new descriptor nobody else's.
    unsafe {
        let number = libc::memfd_create(c"dictionary".as_ptr(), libc::MFD_CLOEXEC);
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(number)) }
    }
}
