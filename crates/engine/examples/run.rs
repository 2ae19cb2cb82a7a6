//! Runs an Alpha program on the engine: `cargo run --example run -- PROGRAM [ARG...]`. Its exit status
//! is the program's, or 128 and the number of the signal that killed it.

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
    // What is watched is interpreted: with a compiler built in, it is the compiler that is tried.
    let compiled = cfg!(feature = "compiler");
    let end = if compiled { process.run(&mut ())? } else { process.run(&mut Counter::default())? };
    let status = match end {
        End::Exited(status) => status,
        End::Killed(crash) => 128 + crash.signal,
    };
    std::process::exit(status)
}
