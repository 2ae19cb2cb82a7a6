//! Files of counts: a line that names the format and its version, then a frame of zstd, with its checksum, that holds
//! [`RunCounts`] as JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{InstructionSums, RunCounts, UnitCounts};
use crate::mix;

/// The beginning of every version.
const FORMAT: &[u8] = b"pathlength counts ";
/// The beginning of this version.
const MAGIC: &[u8] = b"pathlength counts 1\n";
/// The most bytes of JSON that are read: a run of a large program has some megabytes.
const MOST: u64 = 256 << 20;
/// Greater numbers are not counts: floating point would not hold them exactly.
const LARGEST: u64 = 1 << 53;
const LEVEL: i32 = 9;

/// Why a file of counts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// By the system's error.
    #[error("cannot read {path}: {error}", path = .0.display(), error = .1)]
    File(PathBuf, io::Error),
    /// By its contents.
    #[error("{path}: {why}", path = .0.display(), why = .1)]
    Damaged(PathBuf, DamagedCounts),
}

/// The fault in a file of counts.
#[derive(Debug, thiserror::Error)]
pub enum DamagedCounts {
    /// A later version, or none.
    #[error("these counts are of another version: save them again with this version of pathlength")]
    Version,
    /// The frame of zstd or the JSON in it is incomplete or changed.
    #[error("the saved counts are damaged: {0}")]
    Encoding(String),
    /// Numbers contradict each other.
    #[error("the saved counts are damaged: {0} do not add up")]
    Inconsistent(&'static str),
    /// An instruction that does not exist.
    #[error("the saved counts are damaged: there is no instruction '{0}'")]
    Instruction(String),
}

impl RunCounts {
    /// Whether a file holds counts, by its first bytes.
    pub fn is_saved(path: &Path) -> bool {
        let mut start = [0; FORMAT.len()];
        path.metadata().is_ok_and(|there| there.is_file())
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == FORMAT
    }

    /// Reads a file.
    pub fn open(path: &Path) -> Result<RunCounts, ReadError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
        read.map_err(|error| ReadError::File(path.into(), error))?;
        RunCounts::decode(&bytes).map_err(|why| ReadError::Damaged(path.into(), why))
    }

    /// The contents of a file.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let mut encoder = zstd::Encoder::new(MAGIC.to_vec(), LEVEL)?;
        encoder.include_checksum(true)?;
        serde_json::to_writer(&mut encoder, self)?;
        encoder.finish()
    }

    /// Checks and decodes the contents of a file.
    pub fn decode(bytes: &[u8]) -> Result<RunCounts, DamagedCounts> {
        let damaged = |error: &dyn std::fmt::Display| DamagedCounts::Encoding(error.to_string());
        let frame = bytes.strip_prefix(MAGIC).ok_or(DamagedCounts::Version)?;
        let decoder = zstd::Decoder::with_buffer(frame).map_err(|error| damaged(&error))?;
        let mut json = Vec::new();
        decoder.take(MOST).read_to_end(&mut json).map_err(|error| damaged(&error))?;
        let counts: RunCounts = serde_json::from_slice(&json).map_err(|error| damaged(&error))?;
        counts.check()?;
        Ok(counts)
    }

    fn check(&self) -> Result<(), DamagedCounts> {
        let run = self.run.check()?;
        let processes = total(self.processes.iter().map(|process| process.instructions));
        if !self.processes.is_empty() && processes != Some(run) {
            return Err(DamagedCounts::Inconsistent("its processes"));
        }
        let (classes, outside) = (&self.owners.classes, &self.owners.outside);
        for class in classes {
            if total(class.lengths.iter().copied()) != Some(class.sums.check()?) || class.lengths.is_empty() {
                return Err(DamagedCounts::Inconsistent("its classes of units"));
            }
        }
        let sums = classes.iter().map(|class| &class.sums).chain(outside.iter().map(|outside| &outside.sums));
        let owned = sums.map(InstructionSums::check).collect::<Result<Vec<_>, _>>()?;
        if !owned.is_empty() && total(owned.into_iter()) != Some(run) {
            return Err(DamagedCounts::Inconsistent("its classes and processes"));
        }
        let Some(UnitCounts { sums, measurement, .. }) = &self.unit else { return Ok(()) };
        let units = &measurement.units;
        let lengths = total(units.iter().map(|unit| unit.instructions));
        let mut numbers = units.iter().map(|unit| unit.number).chain([measurement.warm_up]);
        let mut calls = units.iter().map(|unit| total(unit.system_calls.iter().map(|(_, n)| *n)));
        if lengths != Some(sums.check()?) || numbers.any(|n| n >= LARGEST) || calls.any(|n| n.is_none()) {
            return Err(DamagedCounts::Inconsistent("its units of work"));
        }
        Ok(())
    }
}

impl InstructionSums {
    /// Checks that functions and instructions have the same total, and returns it.
    fn check(&self) -> Result<u64, DamagedCounts> {
        if let Some(name) = self.instructions.keys().find(|name| mix::known(name).is_none()) {
            return Err(DamagedCounts::Instruction(name.clone()));
        }
        let instructions = total(self.instructions.values().copied());
        let functions = total(self.functions.values().flat_map(|functions| functions.values().copied()));
        match (instructions, functions) {
            (Some(a), Some(b)) if a == b => Ok(a),
            _ => Err(DamagedCounts::Inconsistent("its functions and instructions")),
        }
    }
}

/// The sum; none if it is no possible count.
fn total(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.try_fold(0_u64, |sum, n| sum.checked_add(n)).filter(|&sum| sum < LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_counts::RunDescription;
    use events::{Block, Counts};

    fn counts(executions: u64) -> RunCounts {
        let nop = 0x47ff_041f;
        let counts = Counts {
            blocks: vec![Block::new(&isa::Alpha, 0x1_2000_0000, vec![nop; 3])],
            executions: vec![executions],
            ..Counts::default()
        };
        let description = RunDescription { program: "p".into(), ..RunDescription::default() };
        RunCounts::new(description, &counts, None)
    }

    #[test]
    fn what_is_saved_is_read() {
        let saved = counts(7).encode().unwrap();
        let read = RunCounts::decode(&saved).unwrap();
        assert_eq!((read.profile().total, read.description.program.as_str()), (21.0, "p"));
        assert_eq!(read.encode().unwrap(), saved);
    }

    #[test]
    fn damaged_files_are_rejected() {
        let saved = counts(7).encode().unwrap();
        for length in 0..saved.len() {
            assert!(RunCounts::decode(&saved[..length]).is_err(), "{length} bytes");
        }
        for byte in 0..saved.len() {
            for bit in 0..8 {
                let mut flipped = saved.clone();
                flipped[byte] ^= 1 << bit;
                // A few bits of a frame's header have no meaning; no other flip may be taken for counts.
                if let Ok(read) = RunCounts::decode(&flipped) {
                    assert_eq!(read.run, counts(7).run, "byte {byte}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn files_with_impossible_numbers_are_rejected() {
        let broken: [fn(&mut RunCounts); 3] = [
            |counts| counts.run.instructions.extend([("nop".into(), u64::MAX)]),
            |counts| counts.run.instructions.extend([("none".into(), 0)]),
            |counts| counts.run.functions.clear(),
        ];
        for damage in broken {
            let mut counts = counts(7);
            damage(&mut counts);
            assert!(RunCounts::decode(&counts.encode().unwrap()).is_err(), "{:?}", counts.run);
        }
    }
}
