//! `pathlength trace`: every instruction and every address of a run, in a file.

use std::fs::OpenOptions;
use std::process::ExitCode;

use anyhow::Context;
use engine::{Process, Recorder};
use lab::measure;
use trace::{Header, Writer};

use super::configuration;
use crate::arguments::TraceOptions;

/// Runs the program and records it.
pub fn run(options: &TraceOptions) -> anyhow::Result<ExitCode> {
    let configuration = configuration(&options.engine, &options.program, &options.arguments, true);
    let mut process = Process::new(&configuration)?;
    let path = &options.output;
    let _ = std::fs::remove_file(path);
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let header = Header {
        program: options.program.clone(),
        arguments: options.arguments.iter().map(|one| one.to_string_lossy().into()).collect(),
        cpu: options.engine.cpu.to_string(),
        has_values: false,
        unit: None,
        time: 0,
        process: std::process::id(),
    };
    let writer = Writer::new(file, &header)?;
    let mut recorder = Recorder::new(&writer, std::process::id());
    measure::run(&mut process, &mut recorder, &configuration)?;
    match recorder.error() {
        Some(error) => anyhow::bail!("{}: {error}", path.display()),
        None => Ok(ExitCode::SUCCESS),
    }
}
