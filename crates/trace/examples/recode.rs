//! Reads a trace into memory and writes it again: how large it is, and how fast it is packed and unpacked.
//!
//! ```text
//! cargo run --release -p pathlength-trace --example recode -- FILE OUTPUT
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

use pathlength_trace::{ProcessDictionary, StreamWriter, Trace, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, output] = &arguments[..] else { return Err("usage: recode FILE OUTPUT".into()) };
    let trace = Trace::open(Path::new(input))?;
    let mut chunks = Vec::new();
    let start = Instant::now();
    for index in 0..trace.chunks().len() {
        let mut words = Vec::new();
        trace.read(index, &mut words)?;
        chunks.push(words);
    }
    let unpacking = start.elapsed();
    let instructions: u64 = trace.chunks().iter().map(|chunk| chunk.instructions).sum();

    let _ = std::fs::remove_file(output);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(output)?;
    let writer = Writer::new(file, trace.header())?;
    // One process holds all blocks, numbered as in the trace.
    let process = ProcessDictionary::new(&writer, 0, 0);
    for image in trace.images() {
        process.add_image(image.clone());
    }
    for (id, block) in trace.blocks().iter().enumerate() {
        let function = trace.function_of(id as u32).map(|index| trace.functions()[index as usize].clone());
        let number = process.block(block.clone(), || function)?;
        assert_eq!(number as usize, id, "blocks of several processes are the same");
    }
    let mut streams: HashMap<u32, StreamWriter> = HashMap::new();
    let start = Instant::now();
    for (chunk, words) in trace.chunks().iter().zip(&chunks) {
        let stream = streams.entry(chunk.stream).or_insert_with(|| StreamWriter::new(&process));
        stream.write(words)?;
    }
    for stream in streams.values_mut() {
        stream.finish()?;
    }
    let packing = start.elapsed();
    let bytes = std::fs::metadata(output)?.len();

    let again = Trace::open(Path::new(output))?;
    let [mut before, mut after] = [Vec::new(), Vec::new()];
    for index in 0..again.chunks().len() {
        let mut words = Vec::new();
        again.read(index, &mut words)?;
        after.extend(words);
    }
    chunks.iter().for_each(|words| before.extend_from_slice(words));
    assert!(trace.streams().len() > 1 || before == after, "what is read again differs");
    let per_instruction = |nanoseconds: u128| nanoseconds as f64 / instructions as f64;
    println!(
        "{instructions} instructions, {bytes} bytes, {:.4} an instruction",
        bytes as f64 / instructions as f64
    );
    println!("packed in {:.2} ns an instruction", per_instruction(packing.as_nanos()));
    println!("unpacked in {:.2} ns an instruction", per_instruction(unpacking.as_nanos()));
    Ok(())
}
