//! `pathlength run`: the program, and nothing else.

use std::process::ExitCode;

use engine::{End, Process};

use super::configuration;
use crate::arguments::RunOptions;

/// Runs the program; the exit status is its own, and a signal that ended it ends us.
pub fn run(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let configuration = configuration(&options.engine, &options.program, &options.arguments, false);
    let mut process = Process::new(&configuration)?;
    match process.run(&mut ())? {
        End::Exited(status) => Ok(ExitCode::from(status as u8)),
        End::Killed(crash) => {
            if crash.synchronous {
                eprintln!("pathlength: {}", lab::crash::report(&crash, &process.images));
            }
            engine::linux::die(crash.signal)
        }
    }
}
