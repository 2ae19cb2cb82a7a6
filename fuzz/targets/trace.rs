//! Opens, checks and replays a trace. Mutations are applied to the contents of chunks and sections, whose checksums
//! are then corrected.
#![no_main]

use std::convert::Infallible;
use std::io::{Write, sink};
use std::path::Path;

use analysis::names::Names;
use analysis::replay::summary::{Summary, SummarySettings};
use analysis::replay::{
    Accesses, Dictionary, Filter, FunctionTrace, Listing, Replay, ReplayOrder, Selection, Visitor,
};
use fastrand::Rng;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use machine::{Caches, Machine};
use pathlength_fuzz::container::{File, payload, sections};
use rustix::fs::{MemfdFlags, memfd_create};
use trace::Trace;
use trace::check::check;

/// Maximum number of instructions to replay: longer traces would take the time of many inputs.
const MOST_INSTRUCTIONS: u64 = 200_000;

fuzz_target!(|bytes: &[u8]| {
    let Some(trace) = open(bytes) else { return };
    let mut words = Vec::new();
    for chunk in 0..trace.chunks().len() {
        // A chunk that cannot be read is reported, and the others are still read.
        if let Err(error) = trace.read(chunk, &mut words) {
            assert!(!error.to_string().is_empty());
        }
    }
    for block in 0..trace.blocks().len() {
        let function = trace.function_of(block as u32);
        assert!(function.is_none_or(|index| (index as usize) < trace.functions().len()));
    }
    let instructions = trace.chunks().iter().map(|chunk| chunk.instructions).fold(0, u64::saturating_add);
    let number = bytes.iter().fold(7u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    seek(&trace, number % instructions.max(1));
    if instructions <= MOST_INSTRUCTIONS {
        check(&trace);
        replay(&trace, number);
    }
});

fn open(bytes: &[u8]) -> Option<Trace> {
    let mut file = std::fs::File::from(memfd_create("trace", MemfdFlags::CLOEXEC).expect("memory"));
    file.write_all(bytes).expect("memory");
    Trace::from_file(file, Path::new("trace")).ok()
}

fn seek(trace: &Trace, instruction: u64) {
    for stream in 0..trace.streams().len() as u32 {
        if let Ok(Some(place)) = trace.seek(stream, instruction) {
            assert!(place.instruction <= instruction && place.chunk < trace.chunks().len());
        }
    }
    if let Some(first) = trace.first_unit() {
        std::hint::black_box(trace.unit(first).is_ok());
    }
}

/// Shows the trace in one of the views.
fn replay(trace: &Trace, number: u64) {
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let accesses = Accesses::new(trace);
    let filter = Filter::new(&Selection::default(), &dictionary).expect("nothing is named");
    let order = match number & 16 {
        0 => ReplayOrder::Time,
        _ => ReplayOrder::Processors { processors: 2, quantum: 100 },
    };
    let replay = Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order };
    let call = |number| format!("call{number}");
    match number % 4 {
        0 => {
            let options = SummarySettings { line_sizes: vec![32], page_sizes: vec![8192], window: 1000 };
            let mut summary = Summary::new(&dictionary, &accesses, options);
            show(&replay, &mut summary);
            assert!(!summary.tables(&call).is_empty());
        }
        1 => {
            let mut functions = FunctionTrace::new(&dictionary, &call, sink());
            show(&replay, &mut functions);
            functions.finish().expect("a sink takes all");
        }
        2 => {
            let mut listing = Listing::new(&dictionary, &accesses, &call, sink());
            show(&replay, &mut listing);
            listing.finish().expect("a sink takes all");
        }
        _ => {
            let mut caches = Caches::new(&Machine::find("dec3000").expect("a known one"));
            let Ok(_) = replay.run_consumer(&mut caches, &mut |_| Ok::<(), Infallible>(()));
        }
    }
}

fn show(replay: &Replay, visitor: &mut impl Visitor) {
    replay.run(visitor, &mut |_| {}).expect("no visitor fails");
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Rng::with_seed(seed.into());
    let mutated = (random.u8(..8) > 0).then(|| mutate(&mut random, &data[..size], max_size)).flatten();
    match mutated {
        Some(bytes) => {
            data[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

/// The file with a mutation in one of its chunks, if it has chunks and does not become too large.
fn mutate(random: &mut Rng, bytes: &[u8], max_size: usize) -> Option<Vec<u8>> {
    /// Size of the fields of a head between its magic number and its checksums.
    const FIELDS: std::ops::Range<usize> = 8..64;
    let mut file = File::split(bytes)?;
    let (index, other) = (random.usize(..file.chunks.len()), random.usize(..file.chunks.len()));
    let chunk = &mut file.chunks[index];
    match random.u8(..8) {
        0 => {
            fuzzer_mutate(&mut chunk.head[FIELDS], FIELDS.len(), FIELDS.len());
        }
        1 => mutate_bytes(&mut chunk.payload),
        2 => file.chunks.swap(index, other),
        _ => match sections(&chunk.payload).filter(|sections| !sections.is_empty()) {
            Some(mut sections) => {
                let index = random.usize(..sections.len());
                mutate_bytes(&mut sections[index]);
                chunk.payload = payload(&sections);
            }
            None => mutate_bytes(&mut chunk.payload),
        },
    }
    Some(file.bytes()).filter(|bytes| bytes.len() <= max_size)
}

fn mutate_bytes(bytes: &mut Vec<u8>) {
    /// Maximum number of bytes that a mutation adds.
    const MORE: usize = 64;
    let size = bytes.len();
    bytes.resize(size + MORE, 0);
    let size = fuzzer_mutate(bytes, size, size + MORE);
    bytes.truncate(size);
}
