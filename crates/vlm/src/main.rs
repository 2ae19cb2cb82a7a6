//! The command `vlm`.

mod arguments;
mod commands;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::execute(arguments::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("vlm: {error:#}");
            ExitCode::FAILURE
        }
    }
}
