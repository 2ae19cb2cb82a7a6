//! Runs an Alpha program on the engine: `cargo run --example run -- [--name NAME --] PROGRAM [ARG...]`.
//! Its exit status is the program's, or 128 and the number of the signal that killed it.
//!
//! The variable `PATHLENGTH_HOT` says how: a number compiles what was executed so often, 0 never; with
//! `count` before it executions are counted, with `trace` all blocks and addresses are added up. `debug` and a
//! number stop the program at random, by that seed. Without it the engine decides.

#[path = "run/debugger.rs"]
mod debugger;

use guest::{BlockCache, Guest};
use pathlength_engine::{
    Clock, Configuration, Debugged, Instrumentation, InstrumentationLevel, Observer, Process, ProgramEnd,
    RunCounter, SystemSettings, compiled_regions,
};

/// Adds up the records of a thread: the least work with a full trace.
#[derive(Default)]
struct Sum {
    blocks: u64,
    accesses: u64,
    addresses: u64,
}

impl<G: Guest> Instrumentation<G> for Sum {
    const LEVEL: InstrumentationLevel = InstrumentationLevel::Accesses;
}

impl<G: Guest> Debugged<G> for Sum {}

impl<G: Guest> Observer<G> for Sum {
    fn thread(&self) -> Sum {
        Sum::default()
    }

    fn executed(&mut self, records: &[u64], _: &BlockCache<G>) {
        // The engine writes no marks: a word with the highest bit is a block's. Without branches, of which every other
        // one would be mispredicted.
        let (mut blocks, mut addresses) = (0, 0u64);
        for &word in records {
            let is_block = word >> 63;
            blocks += is_block;
            addresses = addresses.wrapping_add(word & is_block.wrapping_sub(1));
        }
        self.blocks += blocks;
        self.accesses += records.len() as u64 - blocks;
        self.addresses = self.addresses.wrapping_add(addresses);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let mut name = None;
    if arguments.next_if(|first| first == "--name").is_some() {
        name = arguments.next();
        arguments.next_if(|next| next == "--");
    }
    let program = arguments.next().ok_or("name a program to run")?;
    let how = std::env::var("PATHLENGTH_HOT").ok();
    let says = |what| how.as_deref().is_some_and(|how| how.starts_with(what));
    let (counted, traced) = (says("count"), says("trace"));
    let clock = if counted { Clock::Virtual } else { Clock::Host };
    // How a program of the host's that the program starts comes back here.
    let ourselves = [std::env::current_exe()?.into_os_string(), "--name".into()];
    let host_environment = interpose::environment(&ourselves)?.into();
    let mut process = Process::new(&Configuration {
        program: program.into(),
        name,
        arguments: arguments.collect(),
        environment: interpose::inherited().collect(),
        model: isa::Processors::default(),
        settings: SystemSettings { clock, host_environment, ..SystemSettings::default() },
    })?;
    let compile_threshold =
        how.as_deref().map(|how| how.trim_start_matches("count").trim_start_matches("trace"));
    if let Some(executions) = compile_threshold.and_then(|compile_threshold| compile_threshold.parse().ok()) {
        process.compile_threshold = executions;
    }
    let debugged = how.as_deref().and_then(|how| how.strip_prefix("debug")?.parse().ok());
    let end = if let Some(seed) = debugged {
        debugger::run(&mut process, seed)?
    } else if counted {
        process.run(&mut RunCounter::default())?
    } else if traced {
        let mut sum = Sum::default();
        let end = process.run(&mut sum)?;
        eprintln!("{} blocks, {} accesses, sum {:x}", sum.blocks, sum.accesses, sum.addresses);
        end
    } else {
        process.run(&mut ())?
    };
    // A test of compiled code must not pass because nothing is compiled.
    if cfg!(target_arch = "x86_64")
        && process.compile_threshold > 0
        && debugged.is_none()
        && compiled_regions() == 0
    {
        return Err("nothing was compiled".into());
    }
    let status = match end {
        ProgramEnd::Exited(status) => status,
        ProgramEnd::Killed(crash) => 128 + crash.signal,
    };
    std::process::exit(status)
}
