//! The file with the counts of an instrumented image: a header, then counters of 64 bits. The program maps it.

use crate::instrument::Update;

/// The size of a page of an Alpha system's memory, of which the file's size is a multiple.
pub const PAGE: u64 = 0x2000;
/// Bytes before the counters.
pub const HEADER_BYTES: u32 = 64;
/// The first bytes of a file; the last one is the version of the format.
const MAGIC: [u8; 8] = *b"PLCOUNT\x01";

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountsHeader {
    /// A hash of the instrumented code, and of the original one.
    pub id: u64,
    /// The number of slots for the last targets of calls, which are before the counters.
    pub calls: u64,
    /// Bytes of the file.
    pub size: u64,
    /// How the image counts.
    pub update: Update,
}

impl CountsHeader {
    /// A file without executions.
    pub fn empty_file(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        [self.id, self.calls, self.size, self.update as u64]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        file.resize(self.size as usize, 0);
        file
    }

    /// Checks that a file is one of the same image.
    pub fn check(&self, file: &[u8]) -> Result<(), String> {
        if file.len() < HEADER_BYTES as usize || file[..8] != MAGIC {
            return Err("is not a file of counts of this version of pathlength; spike instrument makes one beside the instrumented image".into());
        }
        if word(file, 8) != self.id {
            return Err("has the counts of another image, or of one that another version of pathlength instrumented; give the original image that was instrumented".into());
        }
        if file.len() as u64 != self.size {
            return Err(format!(
                "has {} bytes, not {}: it was truncated; instrument the image again",
                file.len(),
                self.size
            ));
        }
        Ok(())
    }
}

/// How the image with this file counts; anything, if it is no such file.
pub fn update(file: &[u8]) -> Update {
    match word(file, 32) {
        1 => Update::Single,
        _ => Update::Atomic,
    }
}

/// A hash of code, and of other code `before`, by its hash: FNV-1a, of words. Files hold it, so that it must not change with the compiler.
pub(crate) fn hash<'a>(before: u64, words: impl Iterator<Item = &'a u32>) -> u64 {
    words.fold(before ^ 0xcbf2_9ce4_8422_2325, |hash, &word| {
        (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The word at an offset of a file, or 0 behind its end.
pub(crate) fn word(file: &[u8], offset: usize) -> u64 {
    file.get(offset..offset + 8)
        .map_or(0, |bytes| u64::from_le_bytes(std::array::from_fn(|index| bytes[index])))
}

/// The value at an offset.
pub fn cell(file: &[u8], offset: u32) -> u64 {
    word(file, offset as usize)
}
