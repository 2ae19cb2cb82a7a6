//! The file of a branch log: a header, then a ring of records. Patched programs map it.

use crate::counts::{PAGE, word};

/// The first bytes of a file; the last one is the version of the format.
const MAGIC: [u8; 8] = *b"PLBRLOG\x01";
const ID: usize = 8;
const IMAGES: usize = 16;
/// Whether programs log: 1, or 0. Other fields that code accesses are addressed from it.
pub const SWITCH: usize = 32;
/// Records that were ever reserved.
pub const POSITION: usize = 40;
const CAPACITY: usize = 48;
/// The link-time addresses of the switch in each image.
const SWITCHES: usize = 64;
/// Where the records begin.
pub const RECORDS: usize = PAGE as usize;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;
/// The fewest and the most records of a log, as powers of two.
pub const CAPACITIES: std::ops::RangeInclusive<u32> = 10..=26;
/// Images that one log may have: a record has seven bits for the number.
pub const MOST_IMAGES: usize = 128;

/// The fields of a record's first word, from its lowest bit: words of code between the record point and the log, the image's
/// number, the process, and how often the ring was full before.
pub const DISTANCE_BITS: u32 = 24;
/// The lowest bit of the process.
pub const PROCESS_SHIFT: u32 = 32;
/// The lowest bit of the lap.
pub const LAP_SHIFT: u32 = 54;

/// The header of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// A hash of the images that were patched.
    pub id: u64,
    /// The link-time address at which each of them has [`SWITCH`].
    pub switches: Vec<u64>,
    /// The binary logarithm of the number of records.
    pub capacity: u32,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The process.
    pub process: u32,
    /// The thread pointer, which tells the threads of a process apart.
    pub thread: u64,
    /// The number of the image.
    pub image: u32,
    /// The distance from the record point to the log's switch, in words of code.
    pub distance: u32,
}

/// The state of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Whether programs log.
    pub is_on: bool,
    /// Records that were ever made.
    pub made: u64,
    /// Records that the ring holds.
    pub held: u64,
    /// Records of which it has room.
    pub capacity: u64,
}

impl LogHeader {
    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        size(self.capacity)
    }

    /// A file without records.
    pub fn empty_file(&self, is_on: bool) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.resize(self.size() as usize, 0);
        let fields = [
            (ID, self.id),
            (IMAGES, self.switches.len() as u64),
            (SWITCH, u64::from(is_on)),
            (CAPACITY, u64::from(self.capacity)),
        ];
        let switches = self.switches.iter().zip(0..).map(|(&switch, number)| (SWITCHES + 8 * number, switch));
        for (at, value) in fields.into_iter().chain(switches) {
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        file
    }

    /// The header of a file.
    pub fn read(file: &[u8]) -> Result<LogHeader, String> {
        if file.len() < RECORDS || file[..8] != MAGIC {
            return Err(
                "is not a branch log of this version of pathlength; branch-log patch makes one".into()
            );
        }
        let capacity = u32::try_from(word(file, CAPACITY)).unwrap_or(u32::MAX);
        let images = word(file, IMAGES);
        if !CAPACITIES.contains(&capacity)
            || file.len() as u64 != size(capacity)
            || images > MOST_IMAGES as u64
        {
            return Err("is a damaged branch log; patch the images again".into());
        }
        let switches = (0..images as usize).map(|number| word(file, SWITCHES + 8 * number)).collect();
        Ok(LogHeader { id: word(file, ID), switches, capacity })
    }

    /// The state of a file with this header.
    pub fn state(&self, file: &[u8]) -> LogState {
        let (made, capacity) = (word(file, POSITION), 1 << self.capacity);
        LogState { is_on: word(file, SWITCH) != 0, made, held: made.min(capacity), capacity }
    }

    /// The records of a file with this header, oldest first; `None` for one that was reserved, but never written, because its thread
    /// was killed.
    pub fn records<'a>(&self, file: &'a [u8]) -> impl Iterator<Item = Option<LogRecord>> + use<'a> {
        let (state, capacity) = (self.state(file), self.capacity);
        (state.made - state.held..state.made).map(move |index| {
            let at = RECORDS + RECORD_BYTES * (index & (state.capacity - 1)) as usize;
            let (first, thread) = (word(file, at), word(file, at + 8));
            let is_current = first >> LAP_SHIFT == (index >> capacity) & ((1 << (64 - LAP_SHIFT)) - 1);
            let process = (first >> PROCESS_SHIFT) as u32 & ((1 << (LAP_SHIFT - PROCESS_SHIFT)) - 1);
            (is_current && process != 0).then_some(LogRecord {
                process,
                thread,
                image: (first as u32) >> DISTANCE_BITS,
                distance: first as u32 & ((1 << DISTANCE_BITS) - 1),
            })
        })
    }
}

/// Bytes of the file of a log with two to the power of `capacity` records.
pub fn size(capacity: u32) -> u64 {
    (RECORDS + (RECORD_BYTES << capacity)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(file: &mut [u8], at: usize, value: u64) {
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes the record with an index as the code of a patched image does.
    fn write(file: &mut [u8], header: &LogHeader, index: u64, process: u64, distance: u64) {
        let at = RECORDS + RECORD_BYTES * (index & ((1 << header.capacity) - 1)) as usize;
        put(file, at, (index >> header.capacity) << LAP_SHIFT | process << PROCESS_SHIFT | distance);
        put(file, POSITION, index + 1);
    }

    #[test]
    fn the_last_records_are_read_and_torn_ones_are_told() {
        let header = LogHeader { id: 7, switches: vec![0x1_2000_0000], capacity: 10 };
        let mut file = header.empty_file(true);
        assert_eq!(LogHeader::read(&file), Ok(header.clone()));
        assert_eq!(header.records(&file).count(), 0);
        (0..1500).for_each(|index| write(&mut file, &header, index, 42, index));
        // Reserved, not written: the slot still has the record of the lap before.
        put(&mut file, POSITION, 1501);
        let records: Vec<Option<LogRecord>> = header.records(&file).collect();
        assert_eq!(records.len(), 1024);
        let distances: Vec<u32> = records.iter().flatten().map(|record| record.distance).collect();
        assert_eq!(distances, (477..1500).collect::<Vec<u32>>());
        assert_eq!(records.last(), Some(&None));
    }

    #[test]
    fn damaged_files_are_refused() {
        let header = LogHeader { id: 7, switches: vec![0x1_2000_0000], capacity: 10 };
        let file = header.empty_file(false);
        assert!(LogHeader::read(&file[..file.len() - 1]).is_err());
        assert!(LogHeader::read(&[]).is_err());
        let mut other = file.clone();
        put(&mut other, CAPACITY, 77);
        assert!(LogHeader::read(&other).is_err());
        assert!(!header.state(&file).is_on);
    }
}
