//! How long a machine takes for a trace without values, and how long that took.
//!
//!     cargo run --release -p pathlength-machine --example time -- FILE [MACHINE] [TIMES] [perfect]

use std::path::Path;
use std::time::Instant;

use pathlength_machine::pipeline::{MemorySystem, Perfect};
use pathlength_machine::{Machine, Time};
use trace::{Consumer, Thread, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, default| arguments.get(place).map_or(default, String::as_str);
    let machine = Machine::find(argument(1, "alphastation500"))?;
    let trace = Trace::open(Path::new(argument(0, "program.trace")))?;
    let times: usize = argument(2, "1").parse()?;
    if argument(3, "") == "perfect" {
        show(Time::with_memory(&machine, Perfect)?, &trace, times)
    } else {
        show(Time::new(&machine)?, &trace, times)
    }
}

fn show<M: MemorySystem>(
    mut time: Time<M>,
    trace: &Trace,
    times: usize,
) -> Result<(), Box<dyn std::error::Error>> {
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
    let seconds = start.elapsed().as_secs_f64();
    let cycles = time.cycles();
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
