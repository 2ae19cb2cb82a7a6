//! Runs an Alpha program on the engine: `cargo run --example run -- [--name NAME --] PROGRAM [ARG...]`.
//! Its exit status is the program's, or 128 and the number of the signal that killed it.
//!
//! The variable `PATHLENGTH_HOT` says how: a number compiles what was executed so often, 0 never; with
//! `count` before it executions are counted. Without it the engine decides.

use pathlength_engine::{Clock, Configuration, Counter, End, Process, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let mut name = None;
    if arguments.next_if(|first| first == "--name").is_some() {
        name = arguments.next();
        arguments.next_if(|next| next == "--");
    }
    let program = arguments.next().ok_or("name a program to run")?;
    let how = std::env::var("PATHLENGTH_HOT").ok();
    let counted = how.as_deref().is_some_and(|how| how.starts_with("count"));
    let clock = if counted { Clock::Virtual } else { Clock::Host };
    // How a program of the host's that the program starts comes back here.
    let ourselves = [std::env::current_exe()?.into_os_string(), "--name".into()];
    let host_environment = interpose::environment(&ourselves)?.into();
    let mut process = Process::new(&Configuration {
        program: program.into(),
        name,
        arguments: arguments.collect(),
        environment: interpose::inherited().collect(),
        model: isa::Cpu::Ev67,
        settings: Settings { clock, host_environment, ..Settings::default() },
    })?;
    let hot = how.as_deref().map(|how| how.trim_start_matches("count"));
    if let Some(executions) = hot.and_then(|hot| hot.parse().ok()) {
        process.hot = executions;
    }
    let end = if counted { process.run(&mut Counter::default())? } else { process.run(&mut ())? };
    let status = match end {
        End::Exited(status) => status,
        End::Killed(crash) => 128 + crash.signal,
    };
    std::process::exit(status)
}
