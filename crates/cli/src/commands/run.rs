//! `pathlength run`: the program, and nothing else.

use std::process::ExitCode;

use engine::{End, Process, Recorder};
use lab::{crash, measure};

use super::configuration;
use crate::arguments::RunOptions;

/// Runs the program; the exit status is its own, and a signal that ended it ends us.
pub fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let mut configuration = configuration(&options.engine, &options.program, &options.arguments, false);
    configuration.name.clone_from(&options.name);
    let mut process = Process::new(&configuration)?;
    let arguments = options.arguments.iter().map(|argument| argument.to_string_lossy().into()).collect();
    // Somebody may attach.
    let mut recorder = Recorder::idle(arguments);
    let end = measure::run(&mut process, &mut recorder, &configuration);
    // Whoever attached is told himself.
    let _ = recorder.finish();
    match end? {
        End::Exited(status) => Ok(ExitCode::from(status as u8)),
        End::Killed(crash) => {
            if crash::is_crash(crash.signal) {
                eprintln!("pathlength: {}", crash::report(&crash, &process.images));
            }
            engine::linux::die(crash.signal)
        }
    }
}
