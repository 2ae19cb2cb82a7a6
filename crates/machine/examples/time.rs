//! How long a machine takes for a trace without values, and how long that took.
//!
//!     cargo run --release -p pathlength-machine --example time -- FILE [MACHINE] [TIMES] [perfect] [aside]

use std::path::Path;
use std::time::Instant;

use pathlength_machine::pipeline::{MemorySystem, PerfectMemory};
use pathlength_machine::{Machine, Model, Time};
use trace::{Consumer, Thread, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, default| arguments.get(place).map_or(default, String::as_str);
    let machine = Machine::find(argument(1, "alphastation500"))?;
    let trace = Trace::open(Path::new(argument(0, "program.trace")))?;
    let times: usize = argument(2, "1").parse()?;
    let is_given = |word| arguments.iter().skip(3).any(|argument| argument == word);
    if is_given("perfect") {
        show(Time::with_memory(&machine, PerfectMemory)?, &trace, times, is_given("aside"))
    } else {
        show(Time::new(&machine)?, &trace, times, is_given("aside"))
    }
}

fn show<M: MemorySystem>(
    mut time: Time<M>,
    trace: &Trace,
    times: usize,
    aside: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    if aside {
        time.work_aside()?;
    }
    for block in trace.blocks() {
        time.define(block);
    }
    let mut words = Vec::new();
    let mut pieces = Vec::new();
    for chunk in 0..trace.chunks().len() {
        words.clear();
        trace.read(chunk, &mut words)?;
        pieces.push(words.clone());
    }
    let start = Instant::now();
    for _ in 0..times {
        for piece in &pieces {
            time.executed(Thread::default(), piece);
        }
    }
    let cycles = time.cycles();
    let seconds = start.elapsed().as_secs_f64();
    let (total, instructions) = (cycles.total(), cycles.instructions());
    for (cause, number) in cycles.iter() {
        println!("{:>14} {:5.1} %  {cause:?}", number, 100.0 * number as f64 / total as f64);
    }
    println!("{total:>14} cycles, {:.3} an instruction", total as f64 / instructions as f64);
    println!("{:?}; {} replays; {} emulated", time.predictions(), time.replays(), time.emulated());
    println!(
        "{instructions} instructions in {seconds:.2} s: {:.2} ns each",
        seconds * 1e9 / instructions as f64
    );
    Ok(())
}
