//! Many sequences in one program. Each runs several times from different records: first interpreted, then compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fastrand::Rng;

use super::record::{self, BYTES, ENTRY, QUADS};
use super::{Kind, Sequence, driver, elf, generator};

/// Number of passes of each sequence.
pub const PASSES: usize = 6;

/// Sequences, and their initial states.
#[derive(Clone)]
pub struct Batch {
    pub sequences: Vec<Sequence>,
    /// The records of each sequence, one for each pass.
    pub records: Vec<[[u64; QUADS]; PASSES]>,
    /// The floating-point traps that are enabled (`ieee_fp_control`).
    pub ieee_control: u64,
}

impl Batch {
    /// A batch of this size. The same seed gives the same sequences in batches of all sizes.
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

    /// A batch of some of its sequences.
    pub fn part(&self, sequences: impl Iterator<Item = usize> + Clone) -> Batch {
        Batch {
            sequences: sequences.clone().map(|number| self.sequences[number].clone()).collect(),
            records: sequences.map(|number| self.records[number]).collect(),
            ..*self
        }
    }

    /// Size of all records in bytes.
    pub fn bytes(&self) -> usize {
        Batch::bytes_of(self.sequences.len())
    }

    /// Size in bytes of all records of this number of sequences.
    pub fn bytes_of(sequences: usize) -> usize {
        sequences * PASSES * BYTES
    }

    /// The record that contains a quadword, and the quadword's meaning.
    pub fn quadword(quad: usize) -> (usize, String) {
        (quad / QUADS, record::name(quad % QUADS))
    }

    /// Writes the program to a file.
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

    /// The sequences with different results on the two sides; the first one if a difference belongs to none.
    pub fn differing(&self, left: &[u8], right: &[u8]) -> Vec<usize> {
        if left == right {
            return vec![];
        }
        let count = self.sequences.len();
        let differ = |number: &usize| of(left, *number) != of(right, *number);
        let mut numbers: Vec<usize> =
            (0..count * PASSES).filter(differ).map(|number| number % count).collect();
        let starts = self.starts();
        let owner = |(address, _, _)| starts.partition_point(|start| *start <= address).checked_sub(1);
        numbers.extend(Batch::counts_differing(self.bytes(), left, right).into_iter().filter_map(owner));
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() { vec![0] } else { numbers }
    }

    /// The address of each sequence's first word.
    pub fn starts(&self) -> Vec<u64> {
        let entries = driver::text(&self.sequences, self.sequences.len() * PASSES).entries;
        let sequences = entries.iter().zip(&self.sequences);
        sequences.map(|(entry, sequence)| entry - 4 * sequence.entry as u64).collect()
    }

    /// Addresses of instructions with different numbers of executions, and both numbers; address 0 stands for the
    /// number of unaligned accesses. Empty if executions were not counted.
    pub fn counts_differing(records: usize, left: &[u8], right: &[u8]) -> Vec<(u64, u64, u64)> {
        let [left, right] = [left, right].map(|side| counts(side.get(records..).unwrap_or_default()));
        let addresses: BTreeSet<u64> = left.keys().chain(right.keys()).copied().collect();
        let times = |side: &BTreeMap<u64, u64>, at| side.get(at).copied().unwrap_or(0);
        let both = addresses.iter().map(|at| (*at, times(&left, at), times(&right, at)));
        both.filter(|(_, left, right)| left != right).collect()
    }

    /// The record of a sequence after a pass.
    pub fn record(&self, all: &[u8], sequence: usize, pass: usize) -> [u64; QUADS] {
        let bytes = of(all, pass * self.sequences.len() + sequence);
        std::array::from_fn(|quad| u64::from_le_bytes(bytes[8 * quad..][..8].try_into().expect("8")))
    }
}

fn of(all: &[u8], number: usize) -> &[u8] {
    &all[number * BYTES..][..BYTES]
}

/// Executions by address, as [`super::run::engine`] writes them after the records.
fn counts(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let quads = bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8")));
    let quads: Vec<u64> = quads.collect();
    let Some((unaligned, pairs)) = quads.split_first() else { return BTreeMap::new() };
    pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).chain([(0, *unaligned)]).collect()
}
