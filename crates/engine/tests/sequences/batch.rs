//! Many sequences in one program, each run several times from different records: first interpreted,
//! then compiled.

use std::path::Path;

use fastrand::Rng;

use super::record::{self, BYTES, ENTRY, QUADS};
use super::{Kind, Sequence, driver, elf, generator};

/// How often each sequence runs.
pub const PASSES: usize = 6;

/// Sequences, and what they start from.
#[derive(Clone)]
pub struct Batch {
    pub sequences: Vec<Sequence>,
    /// Each sequence's records, one a pass.
    pub records: Vec<[[u64; QUADS]; PASSES]>,
    /// The floating-point traps that are enabled (`ieee_fp_control`).
    pub ieee_control: u64,
}

impl Batch {
    /// The same seed makes the same batch, and a longer one that begins alike.
    pub fn random(kind: Kind, seed: u64, count: usize) -> Batch {
        let random = &mut Rng::with_seed(seed);
        let traps = kind == Kind::Full && random.bool();
        let ieee_control = if traps { random.u64(..1 << 14) } else { 0 };
        let one = |_| {
            let sequence = generator::sequence(random, kind);
            (sequence, std::array::from_fn(|_| record::random(random, kind)))
        };
        let (sequences, records) = (0..count).map(one).unzip();
        Batch { sequences, records, ieee_control }
    }

    /// Some of its sequences.
    pub fn part(&self, sequences: impl Iterator<Item = usize> + Clone) -> Batch {
        Batch {
            sequences: sequences.clone().map(|number| self.sequences[number].clone()).collect(),
            records: sequences.map(|number| self.records[number]).collect(),
            ..*self
        }
    }

    /// Bytes of all records.
    pub fn bytes(&self) -> usize {
        Batch::bytes_of(self.sequences.len())
    }

    /// Bytes of all records of so many sequences.
    pub fn bytes_of(sequences: usize) -> usize {
        sequences * PASSES * BYTES
    }

    /// Where a quadword is: which record's, and what it is there.
    pub fn place(quad: usize) -> (usize, String) {
        (quad / QUADS, record::name(quad % QUADS))
    }

    /// Writes the program.
    pub fn write(&self, path: &Path) {
        let text = driver::text(&self.sequences, self.sequences.len() * PASSES);
        let mut data = driver::data(self.ieee_control);
        data.reserve(self.bytes());
        for pass in 0..PASSES {
            for (records, entry) in self.records.iter().zip(&text.entries) {
                let mut record = records[pass];
                record[ENTRY] = *entry;
                data.extend(record.iter().flat_map(|quad| quad.to_le_bytes()));
            }
        }
        elf::write(path, &text.words, &data);
    }

    /// The sequences that left other records on one side than on the other.
    pub fn differing(&self, left: &[u8], right: &[u8]) -> Vec<usize> {
        let count = self.sequences.len();
        let mut numbers: Vec<usize> = (0..count * PASSES)
            .filter(|number| of(left, *number) != of(right, *number))
            .map(|number| number % count)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// A sequence's record after a pass.
    pub fn record(&self, all: &[u8], sequence: usize, pass: usize) -> [u64; QUADS] {
        let bytes = of(all, pass * self.sequences.len() + sequence);
        std::array::from_fn(|quad| u64::from_le_bytes(bytes[8 * quad..][..8].try_into().expect("8")))
    }
}

fn of(all: &[u8], number: usize) -> &[u8] {
    &all[number * BYTES..][..BYTES]
}
