//! C programs that run in the test's own process.
#![allow(dead_code, reason = "no test needs all of it")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use events::{Consumer, Thread};
use pathlength_engine::{Configuration, Plan, Process, ProgramEnd, Recorder, SystemSettings};
use tempfile::TempDir;
use trace::{Header, Trace, Writer};

/// A program.
pub struct Guest {
    directory: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// Only one test runs at a time: guests in one process share descriptors, and a file opened for one guest while
/// another starts would have a number that the other cannot use.
static TURN: Mutex<()> = Mutex::new(());

/// Calls `body(i)` for each i below the first argument: sequentially, or, if there is a second argument, each in its
/// own thread.
const MAIN: &str = r#"
#include <pthread.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    pthread_t threads[64];
    int wanted = atoi(arguments[1]), separate = count > 2;
    for (long i = 0; i < wanted; i++)
        if (separate) pthread_create(&threads[i], NULL, body, (void *)i);
        else body((void *)i);
    for (int i = 0; separate && i < wanted; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

impl Guest {
    /// Compiles a program with a function `body`, which `main` calls in one thread or several: see [`MAIN`].
    pub fn with_threads(body: &str, switches: &[&str]) -> Guest {
        Guest::new(&[body, MAIN].concat(), switches)
    }

    /// Compiles it.
    pub fn new(source: &str, switches: &[&str]) -> Guest {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let guest = Guest { directory: tempfile::tempdir().unwrap(), _turn: turn };
        let file = guest.path("guest.c");
        std::fs::write(&file, source).unwrap();
        let compiler = "alpha-linux-gnu-gcc";
        let mut command = Command::new(compiler);
        let status =
            command.args(switches).arg("-pthread").arg("-o").arg(guest.program()).arg(&file).status();
        assert!(status.unwrap_or_else(|error| panic!("{compiler} is needed: {error}")).success());
        guest
    }

    /// The path of a file in the program's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Its file.
    pub fn program(&self) -> PathBuf {
        self.path("guest")
    }

    /// The program, loaded.
    pub fn process<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Process {
        self.process_with(arguments, SystemSettings::default())
    }

    /// The program, loaded with settings.
    pub fn process_with<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        settings: SystemSettings,
    ) -> Process {
        let configuration = Configuration {
            program: self.program(),
            name: None,
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: vec![],
            model: isa::Processors::default(),
            settings,
        };
        Process::new(&configuration).unwrap()
    }

    /// Runs it under a recorder, and returns the trace.
    pub fn run<A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        make: impl FnOnce(Arc<Writer>) -> Recorder,
    ) -> Trace {
        let path = self.path("file");
        let _ = std::fs::remove_file(&path);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let writer = Writer::new(file, &Header::default()).unwrap();
        let mut process = self.process(arguments);
        let mut recorder = make(writer);
        let end = process.run(&mut recorder);
        assert!(matches!(end, Ok(ProgramEnd::Exited(0))), "{end:?}");
        recorder.finish().unwrap();
        Trace::open(&path).unwrap()
    }

    /// The events that a consumer receives from it, and the trace with the definitions.
    pub fn observe<C: Consumer + Default + 'static, A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        plan: &Plan,
        is_parallel: bool,
    ) -> (C, Trace) {
        let consumer = Arc::new(Mutex::new(C::default()));
        let observed = consumer.clone();
        let trace = self.run(arguments, |writer| {
            Recorder::live(plan.clone(), writer, observed, is_parallel, None).unwrap()
        });
        (Arc::into_inner(consumer).expect("nobody else has it").into_inner().unwrap(), trace)
    }

    /// The events that a consumer receives from a trace of it, in the order of execution.
    pub fn record<C: Consumer + Default, A: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        plan: &Plan,
    ) -> (C, Trace) {
        let trace = self.run(arguments, |writer| Recorder::new(plan.clone(), writer).unwrap());
        let mut consumer = C::default();
        trace.images().iter().for_each(|image| consumer.map(image));
        trace.blocks().iter().for_each(|block| consumer.define(block));
        let mut pieces = trace.ordered();
        while let Some(piece) = pieces.next_run().unwrap() {
            let process = trace.streams()[piece.stream as usize].process;
            consumer.executed(Thread { process, number: piece.stream }, piece.words);
        }
        (consumer, trace)
    }
}
