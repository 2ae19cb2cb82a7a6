//! Damaged files are read as far as possible, or rejected; there is no other effect.

use std::path::Path;

use pathlength_trace::{Error, Trace};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::made::{Made, made, path};

/// Reads everything that is readable.
fn read_all(path: &Path) -> Result<Vec<Vec<u64>>, Error> {
    let trace = Trace::open(path)?;
    let mut all = Vec::new();
    for chunk in 0..trace.chunks().len() {
        let mut words = Vec::new();
        if trace.read(chunk, &mut words).is_ok() {
            all.push(words);
        }
    }
    for block in 0..trace.blocks().len() {
        let function = trace.function_of(block as u32);
        assert!(function.is_none_or(|index| (index as usize) < trace.functions().len()));
    }
    Ok(all)
}

/// A file with some records, the same in each run.
fn example() -> Made {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    loop {
        let made = made().new_tree(&mut runner).unwrap().current();
        if made.threads.len() == 2 && made.threads.iter().all(|pieces| pieces.len() > 1) {
            return made;
        }
    }
}

#[test]
fn a_cut_file_is_read_to_its_last_whole_chunk() {
    let (whole, cut) = (path("whole"), path("cut"));
    example().write(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let chunks = read_all(&whole).unwrap();
    let mut most = 0;
    for length in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        match read_all(&cut) {
            Ok(read) => {
                assert_eq!(read, chunks[..read.len()]);
                assert!(read.len() >= most, "cut at {length}");
                most = read.len();
            }
            Err(error) => assert_eq!(most, 0, "{error}"),
        }
    }
    assert_eq!(most, chunks.len() - 1);
}

#[test]
fn a_flipped_bit_costs_a_chunk_at_most_and_is_told() {
    let (whole, flipped) = (path("right"), path("flipped"));
    example().write(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let chunks = read_all(&whole).unwrap();
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&flipped, &bytes).unwrap();
        match read_all(&flipped) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(read) => {
                assert!(read.len() < chunks.len() || !Trace::open(&flipped).unwrap().problems().is_empty());
                assert!(read.iter().all(|words| chunks.contains(words)), "bit {bit}");
            }
        }
    }
}

#[test]
fn what_was_not_written_whole_hides_nothing() {
    let (whole, mixed) = (path("unmixed"), path("mixed"));
    example().write(&whole);
    let bytes = std::fs::read(&whole).unwrap();
    let chunks = read_all(&whole).unwrap();
    // The second half of the file again, after a truncated chunk.
    for cut in (bytes.len() / 2..bytes.len()).step_by(7) {
        let mut twice = bytes[..cut].to_vec();
        twice.extend_from_slice(&bytes[12..]);
        std::fs::write(&mixed, &twice).unwrap();
        let read = read_all(&mixed).unwrap();
        assert!(chunks.iter().all(|words| read.contains(words)), "cut at {cut}");
    }
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let path = path("no-trace");
    for bytes in [&b""[..], b"\x7fELF", b"PLTRACE\n", b"PLTRACE\n\x09\0\0\0", b"PLTRACE\n\x01\0\0\0"] {
        std::fs::write(&path, bytes).unwrap();
        let error = read_all(&path).unwrap_err().to_string();
        assert!(error.contains("trace"), "{error}");
    }
    assert!(matches!(Trace::open(Path::new("/does/not/exist")), Err(Error::Io { .. })));
}

/// The offsets of a file's chunks, and the sizes of their payloads.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut chunks, mut at) = (Vec::new(), BEGINNING);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 24..at + 28].try_into().unwrap()) as usize;
        chunks.push((at, length));
        at += HEAD + length;
    }
    chunks
}

/// A file's magic number and version; a chunk's head.
const BEGINNING: usize = 12;
const HEAD: usize = 72;

/// Corrects the checksums of a chunk.
fn seal(bytes: &mut [u8], (at, length): (usize, usize)) {
    let payload = crc32fast::hash(&bytes[at + HEAD..at + HEAD + length]);
    bytes[at + 64..at + 68].copy_from_slice(&payload.to_le_bytes());
    let head = crc32fast::hash(&bytes[at..at + HEAD - 4]);
    bytes[at + HEAD - 4..at + HEAD].copy_from_slice(&head.to_le_bytes());
}

proptest! {
    /// Changed parts get correct checksums, so that they are decoded.
    #[test]
    fn arbitrary_bytes_are_read_or_told(
        made in made(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let path = path("changed");
        made.write(&path);
        let mut bytes = std::fs::read(&path).unwrap();
        let (chunks, expected) = (chunks(&bytes), read_all(&path).unwrap());
        for (index, byte) in changes {
            let (start, length) = chunks[index.index(chunks.len())];
            // The fields of identity and contents, and the payload.
            let fields = (12..24).chain(28..64).chain(HEAD..HEAD + length);
            bytes[start + fields.clone().nth(index.index(fields.count())).unwrap()] = byte;
        }
        chunks.iter().for_each(|chunk| seal(&mut bytes, *chunk));
        std::fs::write(&path, &bytes).unwrap();
        match read_all(&path) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(found) if found.len() < expected.len() => {
                let trace = Trace::open(&path).unwrap();
                let unread = (0..trace.chunks().len()).filter(|&chunk| trace.read(chunk, &mut vec![]).is_err());
                prop_assert!(!trace.problems().is_empty() || unread.count() > 0, "chunks are lost, and nobody says so");
            }
            Ok(_) => {}
        }
    }
}
