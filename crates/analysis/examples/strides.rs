//! How fast strides are counted, in memory references a second, of programs that access memory in different ways;
//! and how much memory that takes, for many instructions and threads. With a trace: how fast its strides are counted.
//!
//!     cargo run --release -p pathlength-analysis --example strides [-- FILE]

use std::error::Error;
use std::path::Path;

use events::Block;
use events::record::Event;
use pathlength_analysis::strides::{StrideSettings, Strides};
use trace::Trace;

/// Blocks of the program.
const BLOCKS: u64 = 200;
/// References in a buffer of records, which is consumed repeatedly.
const REFERENCES: usize = 1 << 16;
const TIMES: usize = 1000;

/// ldq t0,0(a0); stq t0,0(a1); ldl t0,0(a2); ldt f1,0(a3); br
const WORDS: [u32; 5] = [0xa430_0000, 0xb431_0000, 0xa032_0000, 0x8c33_0000, 0xc3e0_0000];

fn block(number: u64) -> Block {
    Block::new(&isa::Alpha, 0x10000 + 0x100 * number, WORDS)
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(file) = std::env::args_os().nth(1) {
        return replay(&Trace::open(Path::new(&file))?);
    }
    for (name, stride) in [("elements one by one", 8), ("a row of a matrix", 4096), ("at random", 0)] {
        for (threshold, which) in [(128, "those that are near one time"), (0, "all references")] {
            let records = records(stride);
            let mut strides = Strides::new(StrideSettings { threshold, ..StrideSettings::default() });
            (0..BLOCKS).for_each(|number| strides.define(&block(number)));
            let start = processor_time();
            (0..TIMES).for_each(|_| strides.executed(0, &records));
            let rate = (TIMES * REFERENCES) as f64 / (processor_time() - start) / 1e6;
            println!("{name:20}  {which:30}  {rate:6.0} million references a second");
        }
    }
    memory(20_000, 100);
    memory(1_000_000, 1);
    Ok(())
}

/// Counts the strides of all instructions of a trace, which is read before.
fn replay(trace: &Trace) -> Result<(), Box<dyn Error>> {
    let mut pieces = Vec::new();
    let mut ordered = trace.ordered();
    while let Some(piece) = ordered.next_run()? {
        pieces.push((piece.stream, piece.words.to_vec()));
    }
    for (threshold, which) in [(128, "those that are near one time"), (0, "all references")] {
        let mut strides = Strides::new(StrideSettings { threshold, ..StrideSettings::default() });
        trace.blocks().iter().for_each(|block| strides.define(block));
        let start = processor_time();
        pieces.iter().for_each(|(stream, words)| strides.executed(*stream, words));
        let time = processor_time() - start;
        let series: Vec<_> = strides.series().map(|series| series.references).collect();
        let references = series.iter().sum::<u64>() as f64 / 1e6;
        let (count, rate) = (series.len(), references / time);
        println!(
            "{which:30}  {references:6.1} million references of {count} series, {rate:6.0} million a second"
        );
    }
    Ok(())
}

/// Executes this number of instructions in each of this number of threads, a few times each, at random addresses.
/// Prints the memory used by the whole program.
fn memory(instructions: u64, threads: u32) {
    let mut strides = Strides::new(StrideSettings::default());
    (0..instructions / 4).for_each(|number| strides.define(&block(number)));
    let mut seed = 1u64;
    for thread in 0..threads {
        for block in (0..instructions as u32 / 4).flat_map(|block| [block; 10]) {
            let addresses = [(); 4].map(|()| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                seed >> 40
            });
            let [a, b, c, d] = addresses;
            strides.executed(thread, &[Event::Block(block).word(), a, b, c, d]);
        }
    }
    let used = resident() >> 20;
    println!("{instructions} instructions in {threads} threads: {used} MB");
}

/// Seconds that this thread has had on a processor.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).expect("a number") / 1e9
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

/// Executions of all blocks in turn, their addresses so far apart; 0 for random ones.
fn records(stride: u64) -> Vec<u64> {
    let mut records = Vec::new();
    let mut seed = 1u64;
    for number in 0..REFERENCES as u64 / 4 {
        let block = number % BLOCKS;
        records.push(Event::Block(block as u32).word());
        for access in 0..4u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let within = if stride == 0 { seed >> 40 } else { stride * (number / BLOCKS) };
            records.push(0x1_0000_0000 + (access << 28) + within);
        }
    }
    records
}
