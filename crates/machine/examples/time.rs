//! Times the timing model on a trace without values.
//!
//!     cargo run --release -p pathlength-machine --example time -- FILE [MACHINE] [TIMES] [perfect] [thread]

use std::path::Path;
use std::time::Instant;

use events::{Consumer, Thread};
use pathlength_machine::pipeline::{MemorySystem, PerfectMemory};
use pathlength_machine::{Machine, Model, TimingModel};
use trace::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default| arguments.get(index).map_or(default, String::as_str);
    let machine = Machine::find(argument(1, "alphastation500"))?;
    let trace = Trace::open(Path::new(argument(0, "program.trace")))?;
    let times: usize = argument(2, "1").parse()?;
    let is_given = |word| arguments.iter().skip(3).any(|argument| argument == word);
    if is_given("perfect") {
        show(TimingModel::with_memory(&machine, PerfectMemory)?, &trace, times, is_given("thread"))
    } else {
        show(TimingModel::new(&machine)?, &trace, times, is_given("thread"))
    }
}

fn show<M: MemorySystem + 'static>(
    mut time: TimingModel<M>,
    trace: &Trace,
    times: usize,
    has_thread: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    if has_thread {
        time.use_worker_thread()?;
    }
    for block in trace.blocks() {
        time.define(block);
    }
    let mut words = Vec::new();
    let mut chunks = Vec::new();
    for chunk in 0..trace.chunks().len() {
        words.clear();
        trace.read(chunk, &mut words)?;
        chunks.push(words.clone());
    }
    let start = Instant::now();
    for _ in 0..times {
        for chunk in &chunks {
            time.executed(Thread::default(), chunk);
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
