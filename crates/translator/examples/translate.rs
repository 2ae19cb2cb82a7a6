//! Runs a program on the translator, and prints how it ended and how many instructions it executed, on the standard error.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use pathlength_translator::{TranslatedProgram, count, run_if_translator};

fn main() -> ExitCode {
    run_if_translator();
    let mut words = std::env::args_os().skip(1);
    let Some(path) = words.next() else {
        eprintln!("usage: translate PROGRAM [ARG]...");
        return ExitCode::FAILURE;
    };
    let environment = std::env::vars_os().map(|(name, value)| {
        let mut text = name;
        text.push("=");
        text.push(value);
        text
    });
    let program = TranslatedProgram {
        path: path.into(),
        arguments: words.collect(),
        environment: environment.filter(|text: &OsString| !text.as_bytes().is_empty()).collect(),
    };
    match count(&program) {
        Ok(run) => {
            eprintln!("{:?} {}", run.end, run.counts.instructions());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
