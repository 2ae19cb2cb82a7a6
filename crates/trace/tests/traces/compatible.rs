//! A file that an earlier version of the codec wrote is read as it was, and written the same.
//!
//! `data/version2.trace` has random executions of random blocks, with values, of nearly all instructions of Alpha. Its
//! header names no instruction set.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pathlength_trace::{ProcessDictionary, StreamWriter, Trace};

use crate::made::{begin, path, read_stream};

/// Checksum of the records' words, by the version that wrote them.
const WORDS: u32 = 0x9549_bda1;

/// Number of instructions that occur in no block: `implver`, `unpkbl`, `ecb`, `wh64`.
const MISSING: usize = 4;

fn old() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/data/version2.trace"].iter().collect()
}

/// The file's bytes after the header, from the second chunk's magic number on.
fn chunks(bytes: &[u8]) -> &[u8] {
    let magic = &bytes[12..20];
    let second = (20..bytes.len()).find(|&at| bytes[at..].starts_with(magic));
    &bytes[second.expect("a second chunk")..]
}

#[test]
fn an_old_trace_is_read_and_written_the_same() {
    let old_bytes = std::fs::read(old()).unwrap();
    assert!(!old_bytes.windows(15).any(|window| window == b"instruction_set"));
    let trace = Trace::open(&old()).unwrap();
    assert_eq!((trace.problems(), trace.header().instruction_set.as_str()), (&[][..], "alpha"));
    let words = trace.blocks().iter().flat_map(|block| &block.words);
    let ops: BTreeSet<isa::Op> = words.filter_map(|&word| isa::decode_op(word)).collect();
    assert_eq!(ops.len(), isa::Op::COUNT - MISSING);
    let words = read_stream(&trace, 0);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!((words.len(), crc32fast::hash(&bytes)), (5012, WORDS));

    let path = path("version2");
    let process = ProcessDictionary::new(&begin(&path, trace.header()), 0, 1);
    for block in trace.blocks() {
        process.block(block.clone(), || None).unwrap();
    }
    let mut stream = StreamWriter::new(&process);
    stream.write(&words).unwrap();
    stream.finish().unwrap();
    let new_bytes = std::fs::read(&path).unwrap();
    assert!(new_bytes.windows(25).any(|window| window == br#""instruction_set":"alpha""#));
    assert!(chunks(&new_bytes) == chunks(&old_bytes));
}
