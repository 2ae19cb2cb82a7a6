//! The command `vlm`.

mod arguments;
mod commands;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::execute(arguments::VlmArguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            // The library's own errors are whole sentences.
            match error.downcast_ref::<vlm::Error>() {
                Some(own) => eprintln!("vlm: {own}"),
                None => eprintln!("vlm: {error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}
