//! Runs the cache models on a trace, and times them. `NAME+classes` classifies misses;
//! `mrc:LINE` computes miss-ratio curves for lines of LINE bytes.
//!
//! ```text
//! cargo run --release -p pathlength-machine --example caches -- FILE MACHINE...
//! ```

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use events::{Consumer, Thread};
use pathlength_machine::{Caches, Holds, Machine, MissRatioCurves};
use trace::Trace;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, machines @ ..] = &arguments[..] else { return Err("usage: caches FILE MACHINE...".into()) };
    let trace = Trace::open(Path::new(file))?;
    let start = Instant::now();
    let mut batches = Vec::new();
    let mut ordered = trace.ordered();
    while let Some(part) = ordered.next_run()? {
        let process = trace.streams()[part.stream as usize].process;
        batches.push((Thread { process, number: part.stream }, part.words.to_vec()));
    }
    let words: usize = batches.iter().map(|(_, words)| words.len()).sum();
    println!("{words} words read in {:?}", start.elapsed());
    let run = |model: &mut dyn Consumer| {
        for block in trace.blocks() {
            model.define(block);
        }
        let start = processor_time();
        for (thread, words) in &batches {
            model.executed(*thread, words);
        }
        processor_time() - start
    };
    for name in machines {
        if let Some(line) = name.strip_prefix("mrc:") {
            let streams = [Holds::Instructions, Holds::Data];
            let mut curves = MissRatioCurves::new(line.parse()?, 16 << 20, &streams)?;
            println!("{name}: {:?}", run(&mut curves));
            for curve in curves.curves() {
                for point in curve.points {
                    println!("  {:?} {:8} {:?} {}", curve.holds, point.size, point.ways, point.misses);
                }
            }
            continue;
        }
        let machine = Machine::find(name.trim_end_matches("+classes"))?;
        let is_classified = name.ends_with("+classes");
        let mut caches = if is_classified { Caches::classified(&machine) } else { Caches::new(&machine) };
        let time = run(&mut caches);
        let executions: u64 = (0..trace.blocks().len() as u32).map(|block| caches.executions(block)).sum();
        println!("{name}: {time:?}, {:.2} ns a block", time.as_nanos() as f64 / executions as f64);
        for one in caches.structures() {
            println!("  {:8} {:12} {:12} {:?}", one.name, one.accesses, one.misses, one.classes);
        }
    }
    Ok(())
}

/// Time that this thread has had on a processor.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
