//! Runs an Alpha program on the engine: `cargo run --example run -- PROGRAM [ARG...]`. Its exit status
//! is the program's, or 128 and the number of the signal that killed it.
//!
//! The variable `PATHLENGTH_HOT` says how: `count` interprets all and counts it; a number compiles what was
//! executed so often, 0 never. Without it the engine decides.

use pathlength_engine::{Configuration, Counter, End, Process, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("name a program to run")?;
    let environment = std::env::vars_os().map(|(name, value)| {
        let mut variable = name;
        variable.push("=");
        variable.push(value);
        variable
    });
    let mut process = Process::new(&Configuration {
        program: program.into(),
        arguments: arguments.collect(),
        environment: environment.collect(),
        model: isa::Cpu::Ev67,
        settings: Settings::default(),
    })?;
    let how = std::env::var("PATHLENGTH_HOT").ok();
    if let Some(executions) = how.as_ref().and_then(|how| how.parse().ok()) {
        process.hot = executions;
    }
    let counted = how.as_deref() == Some("count");
    let end = if counted { process.run(&mut Counter::default())? } else { process.run(&mut ())? };
    let status = match end {
        End::Exited(status) => status,
        End::Killed(crash) => 128 + crash.signal,
    };
    std::process::exit(status)
}
