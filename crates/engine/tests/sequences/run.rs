//! Runs a batch's program on each side.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use pathlength_engine::{Clock, Configuration, Process, ProgramEnd, RunCounter, SystemSettings};

use super::driver;

/// How the engine runs a program, in the notation of `examples/run.rs`: `3`, `count3`.
#[derive(Clone, Copy)]
pub struct Way {
    /// Executions of a block after which it is compiled; 0 for never.
    pub compile_threshold: u32,
    /// Whether executions are counted.
    pub counts: bool,
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let number = text.strip_prefix("count");
        let compile_threshold =
            number.unwrap_or(text).parse().map_err(|_| format!("{text}: give 3, or count3"))?;
        Ok(Way { compile_threshold, counts: number.is_some() })
    }
}

/// Runs the program in this process, which must not run another guest meanwhile. Returns the records; with counting,
/// also the number of unaligned accesses, and pairs of an address and its number of executions.
pub fn engine(program: &Path, way: Way, bytes: usize) -> Result<Vec<u8>, String> {
    // With the virtual clock a run without counting would be interpreted.
    let clock = if way.counts { Clock::Virtual } else { Clock::Host };
    let mut process = Process::new(&Configuration {
        program: program.into(),
        name: None,
        arguments: vec![],
        environment: vec![],
        model: isa::Processors::default(),
        settings: SystemSettings { clock, ..SystemSettings::default() },
    })
    .map_err(|error| error.to_string())?;
    assert!(
        process.memory.is_identity(),
        "another guest has the addresses without which nothing is compiled"
    );
    process.compile_threshold = way.compile_threshold;
    let mut counter = RunCounter::default();
    let end = if way.counts { process.run(&mut counter) } else { process.run(&mut ()) };
    match end.map_err(|error| error.to_string())? {
        ProgramEnd::Exited(0) => {}
        end => return Err(format!("{end:?}")),
    }
    let mut left = vec![0; bytes];
    process.memory.read(driver::RECORDS, &mut left).map_err(|fault| format!("{fault:?}"))?;
    if way.counts {
        let pairs = executions(&counter).into_iter().flat_map(|(address, times)| [address, times]);
        left.extend([process.unaligned].into_iter().chain(pairs).flat_map(u64::to_le_bytes));
    }
    Ok(left)
}

/// Executions of each instruction. Those of blocks may differ, since a fault may truncate a block anywhere.
fn executions(counter: &RunCounter) -> BTreeMap<u64, u64> {
    let counts = counter.counts();
    let mut executions = BTreeMap::new();
    for (block, times) in counts.blocks.iter().zip(&counts.executions).filter(|(_, times)| **times > 0) {
        let addresses = (block.address..).step_by(4).take(block.words.len());
        addresses.for_each(|address| *executions.entry(address).or_default() += times);
    }
    executions
}

/// The command that runs the program under qemu-alpha, which writes the records.
pub fn qemu_command(program: &Path) -> Command {
    let mut command = Command::new("qemu-alpha");
    command.args(["-cpu", "ev67"]).arg(program).arg("write").stdin(Stdio::null());
    command
}

/// Runs it under qemu-alpha, and returns the records.
pub fn qemu(program: &Path) -> Result<Vec<u8>, String> {
    let output = qemu_command(program)
        .output()
        .map_err(|error| format!("cannot run qemu-alpha: {error}; Debian: apt-get install qemu-user"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(output.status.to_string()) }
}
