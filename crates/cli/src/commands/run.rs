//! `pathlength run`: runs the program.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use engine::{Configuration, Process, ProgramEnd, Recorder};
use gdb::{Listener, Server};
use session::process_tree::AttachedRings;
use session::{crash, measure};

use crate::arguments::RunOptions;
use crate::messages;

/// Runs the program; the exit status is its own, and a signal that ended it ends us.
pub fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let (program, arguments) = (options.program.path(), options.program.arguments());
    let mut configuration = options.engine.program().configuration(program, &arguments, false);
    configuration.name.clone_from(&options.name);
    // Errors of the listener are reported before the program starts.
    let listener = options.gdb.as_deref().map(listen).transpose()?;
    execute(&configuration, listener, || ())
}

/// Runs a program, under GDB if that is to connect. `ended` is called when the program has ended.
pub fn execute(
    configuration: &Configuration,
    listener: Option<Listener>,
    ended: impl FnOnce(),
) -> anyhow::Result<ExitCode> {
    let mut process = match Process::new(configuration) {
        Ok(process) => process,
        Err(error) => return Ok(not_started(&error, &configuration.program)),
    };
    let end = match listener {
        Some(listener) => debug(listener, &mut process, configuration)?,
        None => attachable(&mut process, configuration)?,
    };
    ended();
    match end {
        ProgramEnd::Exited(status) => Ok(ExitCode::from(status as u8)),
        ProgramEnd::Killed(crash) => {
            if crash::is_crash(&crash) {
                text::message!("{}", crash::report(&crash, &process.images));
            }
            engine::die(crash.host_signal)
        }
    }
}

/// The exit status of a program that cannot be run, as with shells and env: 127 if it does not exist, else
/// 126.
fn not_started(error: &engine::Error, program: &Path) -> ExitCode {
    messages::report_failure(&error.to_string());
    ExitCode::from(if program.exists() { 126 } else { 127 })
}

/// Runs the program so that `pathlength trace --attach` can record it.
fn attachable(process: &mut Process, configuration: &Configuration) -> anyhow::Result<ProgramEnd> {
    let arguments =
        configuration.arguments.iter().map(|argument| argument.to_string_lossy().into()).collect();
    let mut recorder = Recorder::idle(arguments, configuration.model, Arc::new(AttachedRings));
    let end = measure::run(process, &mut recorder, configuration);
    // The attached recorder has reported errors itself.
    let _ = recorder.finish();
    Ok(end?)
}

fn listen(place: &str) -> anyhow::Result<Listener> {
    Listener::bind(place).with_context(|| format!("cannot wait for GDB at {place}"))
}

/// Runs the program under GDB.
fn debug(
    listener: Listener,
    process: &mut Process,
    configuration: &Configuration,
) -> anyhow::Result<ProgramEnd> {
    text::message!("waiting for GDB: target remote {}", listener.address());
    let Some(connection) = listener.accept().context("cannot wait for GDB")? else {
        return Ok(measure::run(process, &mut (), configuration)?);
    };
    drop(listener);
    let server = Server::start(connection, process, &process.sysroot())?;
    let end = measure::run(process, &mut server.observer(), configuration)?;
    server.end(&end);
    Ok(end)
}
